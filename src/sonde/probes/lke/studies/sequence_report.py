"""The report of `lke-sequence`: means by place and by what stands before, tables and figures.

Knows outcomes, nothing of prompts or models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isnan, nan

import numpy as np

from sonde.core.facts import Dataset
from sonde.core.reports import Estimate, Headline, Report
from sonde.core.words import clearly, points
from sonde.metrics.estimates import Resampled, Sample
from sonde.probes.lke.studies.ask import listed
from sonde.probes.lke.studies.sequence_figures import Number, along, dots
from sonde.probes.lke.studies.sequence_outcomes import (
    FALSE,
    PARTS,
    Place,
    Shape,
    follows,
    group_names,
)
from sonde.probes.lke.studies.sequence_tables import (
    example_table,
    group_table,
    part_table,
    place_table,
    relation_table,
)

CONTROL = "control.frequency"
ABOVE = "above_control.probability"
LIKELY = 0.5
EACH = ("likely", "probability.clean", "effect.after_1", "effect.neighbours")
"""What is given for every relation too."""


def build_report(dataset: Dataset, found: Sequence[Place], shape: Shape, after: int) -> Report:
    """Everything that is reported about some sequences."""
    kinds = group_names(after)
    changed = shape.replace != "none"
    estimates = _estimates(found, kinds if changed else (), dataset.selection.seed)
    return Report(
        title=f"Facts in a sequence on {dataset.name}",
        summary=_summary(estimates, found, shape),
        estimates=estimates,
        counts=_counts(dataset, found, changed),
        headlines=_headlines(changed, shape),
        tables=(
            *((group_table(estimates, kinds, shape),) if changed else ()),
            part_table(estimates, changed),
            *relation_table(dataset, found, estimates, changed),
            example_table(found, changed),
            place_table(dataset, found, changed),
        ),
        figures=(along(estimates, found, changed), dots(dataset, found, changed)),
        findings=_findings(estimates, found, shape),
        notes=_notes(shape),
    )


def _clean(place: Place) -> float:
    return place.clean


def _changed(place: Place) -> float:
    return place.changed


def _clean_log(place: Place) -> float:
    return place.clean_log


def _changed_log(place: Place) -> float:
    return place.changed_log


def _usual(place: Place) -> float:
    return place.usual


def _likely(place: Place) -> float:
    return nan if isnan(place.clean) else float(place.clean > LIKELY)


def _usually(place: Place) -> float:
    return float(place.usual > LIKELY)


def _estimates(found: Sequence[Place], kinds: Sequence[str], seed: int) -> dict[str, Estimate]:
    made: dict[str, Estimate] = {}
    relations = dict.fromkeys(place.told.relation for place in found)

    def put(name: str, chosen: Iterable[Place], value: Number, minus: Number | None = None) -> None:
        resampled = Resampled(_samples(chosen, value, minus), seed)
        made[name] = resampled.mean_over_relations()
        if name in EACH:
            for relation in relations:
                made[f"{name}.relation.{relation}"] = resampled.relation(relation)

    put("likely", found, _likely)
    put(f"{CONTROL}.likely", found, _usually)
    put("above_control.likely", found, _likely, _usually)
    put("probability.clean", found, _clean)
    put(f"{CONTROL}.probability", found, _usual)
    put(ABOVE, found, _clean, _usual)
    parts = {k: [p for p in found if p.part == k] for k in range(1, PARTS + 1)}
    for k, places in parts.items():
        put(f"probability.clean.part.{k}", places, _clean)
    if not kinds:
        return made
    # of the facts that stayed: the replaced ones would only say how many they are
    put("probability.changed", [p for p in found if p.group != "replaced"], _changed)
    for k, places in parts.items():
        stayed = [p for p in places if p.group != "replaced"]
        put(f"probability.changed.part.{k}", stayed, _changed)
    groups = {kind: [p for p in found if p.group == kind] for kind in kinds}
    groups["neighbours"] = [p for p in found if follows(p.group)]
    for kind, places in groups.items():
        put(f"probability.clean.{kind}", places, _clean)
        put(f"probability.changed.{kind}", places, _changed)
        if kind != "before":  # the same text: nothing can move
            put(f"effect.{kind}", places, _changed, _clean)
            put(f"log_effect.{kind}", places, _changed_log, _clean_log)
    return made


def _samples(places: Iterable[Place], value: Number, minus: Number | None) -> dict[str, Sample]:
    """Values by relation; a fact stands in several sequences, which makes it a cluster."""
    rows: dict[str, list[tuple[float, float, str]]] = {}
    for place in places:
        pair = value(place), 0.0 if minus is None else minus(place)
        if not any(map(isnan, pair)):
            rows.setdefault(place.told.relation, []).append((*pair, place.line.fact))
    return {
        relation: Sample(
            values=np.array([row[0] for row in own]),
            clusters=tuple(row[2] for row in own),
            minus=None if minus is None else np.array([row[1] for row in own]),
        )
        for relation, own in rows.items()
    }


def _summary(estimates: Mapping[str, Estimate], found: Sequence[Place], shape: Shape) -> str:
    value = estimates["probability.clean"].value
    if value is None:
        return "Nothing was measured: no object has a token of its own."
    last = estimates[f"probability.clean.part.{PARTS}"].value or 0.0
    facts = max(len(place.told.clean) for place in found)
    first = (
        f"Along {facts} facts the model gives the right object a probability of {value:.1%} on "
        f"average, {last:.1%} in the last tenth."
    )
    effect = estimates.get("effect.neighbours")
    if effect is None or effect.value is None:
        return first
    return f"{first} After {FALSE[shape.replace]} the others move by {points(effect.value)} points."


def _counts(dataset: Dataset, found: Sequence[Place], changed: bool) -> dict[str, int]:
    relations = {place.told.relation for place in found}
    made = {
        "relations": len(relations),
        "sequences": len({(p.told.relation, p.told.number) for p in found}),
        "facts": len({place.line.fact for place in found}),
        "places": len(found),
        "relations_with_too_few_facts": len(dataset.asked_relations()) - len(relations),
    }
    if changed:
        made["replaced"] = sum(place.group == "replaced" for place in found)
        made["following"] = sum(follows(place.group) for place in found)
    return made


def _headlines(changed: bool, shape: Shape) -> tuple[Headline, ...]:
    label = "how often the object stands in the sequence"
    first = Headline(
        label="Objects that are likelier than not",
        estimate="likely",
        control=f"{CONTROL}.likely",
        control_label=label,
        difference="above_control.likely",
    )
    second = Headline(
        label="Probability of the object",
        estimate="probability.clean",
        control=f"{CONTROL}.probability",
        control_label=label,
        difference=ABOVE,
    )
    if not changed:
        return (first, second)
    return (
        first,
        second,
        _effect(f"The others, among {FALSE[shape.replace]}", "neighbours"),
        _effect(f"The fact right after one of the {FALSE[shape.replace]}", "after_1"),
    )


def _effect(label: str, group: str) -> Headline:
    return Headline(
        label=label,
        estimate=f"probability.changed.{group}",
        control=f"probability.clean.{group}",
        control_label="the same facts in the clean sequence",
        difference=f"effect.{group}",
    )


def _findings(
    estimates: Mapping[str, Estimate], found: Sequence[Place], shape: Shape
) -> tuple[str, ...]:
    said = list(_short(found, shape))
    for group, words in (
        ("after_1", "the fact right after one"),
        ("neighbours", "all that follow"),
    ):
        effect = estimates.get(f"effect.{group}")
        if effect is not None and effect.value is not None:
            moved = clearly(effect, "raised", "lowered", "not clearly moved")
            said.append(f"Among {FALSE[shape.replace]} the probability of {words} is {moved}.")
    return tuple(said)


def _short(found: Sequence[Place], shape: Shape) -> Iterator[str]:
    """What is smaller than asked for."""
    lengths = {p.told.relation: len(p.told.clean) for p in found}
    short = {r: n for r, n in lengths.items() if n < shape.length}
    if short:
        yield f"Sequences of fewer than {shape.length} facts, for want of more: {listed(short)}."
    replaced = {p.told.relation: len(p.told.at) for p in found}
    fewer = {r: n for r, n in replaced.items() if n != shape.replaced}
    if fewer and shape.replace != "none":
        share = f"{shape.replaced} of {shape.length}"
        yield f"Replaced in a sequence, for the same share as {share}: {listed(fewer)}."


def _notes(shape: Shape) -> tuple[str, ...]:
    sequences = "one sequence" if shape.seeds == 1 else f"{shape.seeds} sequences"
    return (
        "Probabilities are of the whole object where it stands, not among options. A token that "
        "holds nothing but the space before it is not counted.",
        f"Each relation has {sequences} of its facts, asked about and for training alike.",
        "Intervals are 95 %: a bootstrap over facts within relations. They do not cover other "
        "ways of ordering the facts.",
    )
