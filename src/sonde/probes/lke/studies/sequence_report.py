"""The report of `lke-sequence`: means by place and by what stands before, tables and figures.

Knows places of sequences, nothing of prompts or models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sonde.core.facts import Dataset, Relation
from sonde.core.reports import Curve, Curves, Estimate, Headline, Metric, Report, Table
from sonde.core.words import clearly, points
from sonde.metrics.estimates import Resampled, Sample
from sonde.probes.lke.choices import Bools
from sonde.probes.lke.metrics import (
    ABOVE_USUAL,
    ABOVE_USUALLY,
    AFTER_1,
    CHANGED,
    CLEAN,
    EFFECT,
    LIKELY,
    LOG_EFFECT,
    NEIGHBOURS,
    SEQUENCE,
    USUAL,
    USUALLY,
)
from sonde.probes.lke.studies.sequence_places import (
    FALSE,
    PARTS,
    Shape,
    follows,
    group_names,
    group_words,
)
from sonde.probes.lke.studies.study import numbered
from sonde.reporting.build.figures import curve
from sonde.reporting.build.parts import headline, shown
from sonde.reporting.build.tables import Field, browse, by_relation, measured, table, titled

if TYPE_CHECKING:
    from polars import DataFrame

WINDOW = 3
EACH = {metric.id for metric in (LIKELY, CLEAN, AFTER_1, NEIGHBOURS)}
"""What is given for every relation too."""
TENTHS = [f"part.{k}" for k in range(1, PARTS + 1)]

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The places of all sequences, and what was estimated from them."""

    places: DataFrame
    relations: tuple[Relation, ...]
    seed: int
    estimates: dict[str, Estimate] = field(default_factory=dict)

    def put(
        self, metric: Metric, kept: Bools, value: str, minus: str = "", place: str = ""
    ) -> None:
        """Add the mean over relations of some places, and of a few metrics each relation's own.

        A fact stands in several sequences, which makes it a cluster.
        """
        own = self.places[value].to_numpy().astype(np.float64)
        other = self.places[minus].to_numpy() if minus else np.zeros(len(own))
        kept = kept & ~np.isnan(own) & ~np.isnan(other)
        owners, clusters = self.places["relation"].to_numpy(), self.places["cluster"].to_numpy()
        samples = {}
        for relation in self.relations:
            at = kept & (owners == relation.id)
            less = other[at] if minus else None
            samples[relation.id] = Sample(values=own[at], clusters=clusters[at], minus=less)
        resampled = Resampled(samples, self.seed)
        name = metric.at(place)
        self.estimates[name] = resampled.mean_over_relations()
        for relation in self.relations if name in EACH else ():
            self.estimates[f"{name}.relation.{relation.id}"] = resampled.relation(relation.id)


def build_report(dataset: Dataset, places: DataFrame, shape: Shape, after: int) -> Report:
    """Everything that is reported about some sequences."""
    ids = places["relation"].unique(maintain_order=True)
    relations, changed = tuple(map(dataset.relation, ids)), shape.replace != "none"
    numbers = Numbers(places=places, relations=relations, seed=dataset.selection.seed)
    kinds = group_names(after)
    _put_clean(numbers)
    if changed:
        _put_changed(numbers, kinds)
    estimates = numbers.estimates
    return Report(
        title=f"Facts in a sequence on {dataset.name}",
        summary=_summary(numbers, shape),
        metrics=SEQUENCE,
        estimates=estimates,
        counts=_counts(dataset, places, changed),
        headlines=tuple(_headlines(shape)),
        tables=shown(
            (
                _group_table(estimates, kinds, shape) if changed else None,
                _part_table(estimates, changed),
                _relation_table(numbers, changed) if len(relations) > 1 else None,
                _example_table(places, changed),
                _place_table(numbers, changed),
            )
        ),
        figures=shown((_along(numbers, changed), _every_place(numbers, changed))),
        findings=shown(_findings(numbers, shape)),
        notes=_notes(shape),
    )


def _put_clean(numbers: Numbers) -> None:
    every, part = np.ones(numbers.places.height, dtype=np.bool_), numbers.places["part"].to_numpy()
    numbers.put(LIKELY, every, "likely")
    numbers.put(USUALLY, every, "usually")
    numbers.put(ABOVE_USUALLY, every, "likely", "usually")
    numbers.put(CLEAN, every, "clean")
    numbers.put(USUAL, every, "usual")
    numbers.put(ABOVE_USUAL, every, "clean", "usual")
    for k, tenth in enumerate(TENTHS, 1):
        numbers.put(CLEAN, part == k, "clean", place=tenth)


def _put_changed(numbers: Numbers, kinds: Sequence[str]) -> None:
    group, part = (numbers.places[name].to_numpy() for name in ("group", "part"))
    # of the facts that stayed: the replaced ones would only say how many they are
    stayed = group != "replaced"
    numbers.put(CHANGED, stayed, "changed")
    for k, tenth in enumerate(TENTHS, 1):
        numbers.put(CHANGED, stayed & (part == k), "changed", place=tenth)
    groups = {kind: group == kind for kind in kinds}
    groups["neighbours"] = np.array([follows(kind) for kind in group], dtype=np.bool_)
    for kind, kept in groups.items():
        numbers.put(CLEAN, kept, "clean", place=kind)
        numbers.put(CHANGED, kept, "changed", place=kind)
        if kind != "before":  # the same text: nothing can move
            numbers.put(EFFECT, kept, "changed", "clean", kind)
            numbers.put(LOG_EFFECT, kept, "changed_log", "clean_log", place=kind)


def _summary(numbers: Numbers, shape: Shape) -> str:
    estimates = numbers.estimates
    value = estimates[CLEAN.at()].value
    if value is None:
        return "Nothing was measured: no object has a token of its own."
    last, facts = estimates[CLEAN.at(TENTHS[-1])].value or 0.0, max(_lengths(numbers).values())
    first = (
        f"Along {facts} facts the model gives the right object a probability of {value:.1%} on "
        f"average, {last:.1%} in the last tenth."
    )
    effect = estimates.get(NEIGHBOURS.at())
    if effect is None or effect.value is None:
        return first
    return f"{first} After {FALSE[shape.replace]} the others move by {points(effect.value)} points."


def _lengths(numbers: Numbers) -> dict[str, int]:
    """How many facts the sequences of each relation have."""
    longest = numbers.places.group_by("relation", maintain_order=True).max()
    return dict(longest.select("relation", "place").iter_rows())


def _counts(dataset: Dataset, places: DataFrame, changed: bool) -> dict[str, int]:
    relations = places["relation"].n_unique()
    counts = {
        "relations": relations,
        "sequences": places.select("relation", "sequence").n_unique(),
        "facts": places["fact"].n_unique(),
        "places": places.height,
        "relations_with_too_few_facts": len(dataset.asked_relations()) - relations,
    }
    if changed:
        counts["replaced"] = int((places["group"] == "replaced").sum())
        counts["following"] = sum(map(follows, places["group"]))
    return counts


def _headlines(shape: Shape) -> Iterator[Headline]:
    label = "how often the object stands in the sequence"
    for metric, words, control, above in (
        (LIKELY, "Objects that are likelier than not", USUALLY, ABOVE_USUALLY),
        (CLEAN, "Probability of the object", USUAL, ABOVE_USUAL),
    ):
        yield headline(metric, label=words, control=control, above=above, control_label=label)
    if shape.replace == "none":
        return
    label, false = "the same facts in the clean sequence", FALSE[shape.replace]
    for group, words in (
        ("neighbours", f"The others, among {false}"),
        ("after_1", f"The fact right after one of the {false}"),
    ):
        yield headline(
            CHANGED, group, label=words, control=CLEAN, above=EFFECT, control_label=label
        )


def _group_table(estimates: Mapping[str, Estimate], kinds: Sequence[str], shape: Shape) -> Table:
    """What replaced facts do to each kind of place."""
    words = {kind: group_words(kind) for kind in kinds} | {"neighbours": "all that follow"}
    head = Field[str](
        "place", lambda kind: words[kind], help="what a place is to the replaced facts"
    )
    return table(
        words,
        [head, CLEAN, CHANGED, EFFECT, LOG_EFFECT.detail()],
        lambda kind, metric: estimates.get(metric.at(kind)),
        id="by-group",
        title=f"What {FALSE[shape.replace]} do to their neighbours",
        note="'Replaced' compares another fact at the same place. 'Before all' the model has read "
        "the same text, so that nothing moves.",
    )


def _part_table(estimates: Mapping[str, Estimate], changed: bool) -> Table:
    """Probability along the sequence, a tenth at a time."""
    return table(
        TENTHS,
        [
            Field[str]("tenth of the sequence", lambda tenth: tenth.removeprefix("part.")),
            CLEAN.named("clean"),
            *([CHANGED] if changed else []),
        ],
        lambda tenth, metric: estimates[metric.at(tenth)],
        id="along",
        title="Along the sequence",
        note="In the changed sequence the facts that were not replaced." if changed else "",
    )


def _relation_table(numbers: Numbers, changed: bool) -> Table:
    lengths = _lengths(numbers)
    fields: list[Metric | Field[Relation]] = [
        Field("facts", lambda r: lengths[r.id], "count", "in a sequence"),
        CLEAN.named("probability"),
        *([AFTER_1, NEIGHBOURS] if changed else []),
    ]
    return by_relation(numbers.estimates, numbers.relations, fields)


def _example_table(places: DataFrame, changed: bool) -> Table:
    """One sequence around one place: of the first, right after a replaced fact, the best known."""
    first = places.filter(
        (places["relation"] == places["relation"][0])
        & (places["sequence"] == places["sequence"][0])
    )
    known = first.filter(first["clean"].is_not_nan())
    after = known.filter(known["group"] == "after_1")
    among = next(frame for frame in (after, known[known.height // 2 :], places[:1]) if frame.height)
    star = among.sort("clean", "place", descending=[True, False]).row(0, named=True)
    near = first.filter((first["place"] - star["place"]).abs() <= WINDOW)
    return table(
        near.iter_rows(named=True),
        _columns(changed),
        id="example",
        title=f"One fact traced: {star['line']}",
        note="The best-known fact right after a replaced one in the first sequence."
        if changed
        else "The best-known fact in the second half of the first sequence.",
    )


def _columns(changed: bool) -> list[Field[Row]]:
    """What is told of a place."""
    clean = "of the object in the clean sequence"
    fields: list[Field[Row]] = [
        Field("place", kind="count"),
        Field("fact", lambda row: row["line"]),
        Field("probability", lambda row: measured(row["clean"]), "percent", clean),
    ]
    if not changed:
        return fields
    return [
        *fields,
        Field(
            "changed to",
            lambda row: "" if row["changed_line"] == row["line"] else row["changed_line"],
        ),
        Field(
            "probability then",
            lambda row: measured(row["changed"]),
            "percent",
            "in the changed sequence",
        ),
    ]


def _place_table(numbers: Numbers, changed: bool) -> Table:
    titles = {r.id: titled(r) for r in numbers.relations}
    what = Field[Row](
        "what it is", lambda row: group_words(row["group"]), help="to the replaced facts"
    )
    fields: list[Field[Row]] = [
        Field("relation", lambda row: titles[row["relation"]]),
        Field("sequence", lambda row: row["sequence"] + 1, "count"),
        *_columns(changed),
        *([what] if changed else []),
    ]
    rows = numbers.places.iter_rows(named=True)
    return browse(rows, fields, id="places", title="Every place")


def _along(numbers: Numbers, changed: bool) -> Curves:
    """Means of tenths, drawn at the middle of each tenth of the longest sequence."""
    longest = max(_lengths(numbers).values())

    def drawn(name: str, metric: Metric, aside: float) -> Curve:
        means = (numbers.estimates[metric.at(tenth)] for tenth in TENTHS)
        middles = ((k + 0.5) * longest / PARTS + 0.5 + aside for k in range(PARTS))
        return curve(name, zip(middles, means, strict=True))

    clean = drawn("as it is", CLEAN, 0.0)
    return Curves(
        id="along-the-sequence",
        title="Probability of the object along the sequence",
        x_axis="place in the sequence",
        y_axis="mean probability of the object",
        # aside, so that neither hides the other
        curves=(clean, drawn("changed", CHANGED, longest / 150)) if changed else (clean,),
        x_kind="number",
        note="Each point averages a tenth of the sequence, less the replaced facts where it is "
        "changed; whiskers are 95 % intervals.",
    )


def _every_place(numbers: Numbers, changed: bool) -> Curves:
    """Each place of the first relation, averaged over its sequences; by group where changed."""
    from polars import mean

    places, relation = numbers.places, numbers.relations[0]
    value = "changed" if changed else "clean"
    kept = places.filter((places["relation"] == relation.id) & places[value].is_not_nan())
    kinds = {"replaced": "replaced", "after_1": "1 after"} if changed else {}
    rest = "all others" if changed else "all"
    kind = kept["group"].replace_strict(kinds, default=rest, return_dtype=kept["group"].dtype)
    means = kept.group_by(kind.alias("kind"), "place").agg(mean(value)).sort("place")
    dots = {name: means.filter(means["kind"] == name) for name in (*kinds.values(), rest)}
    return Curves(
        id="every-place",
        title=f"Every place of the sequence: {titled(relation)}",
        x_axis="place in the sequence",
        y_axis="probability of the object",
        curves=tuple(
            Curve(
                name=name,
                x=tuple(map(float, own["place"])),
                y=tuple(own[value]),
                joined=False,
            )
            for name, own in dots.items()
        ),
        x_kind="number",
        note="A dot is the mean over the sequences of one relation"
        + (", in the changed sequence." if changed else "."),
    )


def _findings(numbers: Numbers, shape: Shape) -> Iterator[str]:
    lengths = _lengths(numbers)
    if short := {id: n for id, n in lengths.items() if n < shape.length}:
        yield f"Sequences of fewer than {shape.length} facts, for want of more: {numbered(short)}."
    if shape.replace == "none":
        return
    replaced = dict(numbers.places.select("relation", "replaced").unique().iter_rows())
    fewer = {id: replaced[id] for id in lengths if replaced[id] != shape.replaced}
    if fewer:
        share = f"{shape.replaced} of {shape.length}"
        yield f"Replaced in a sequence, for the same share as {share}: {numbered(fewer)}."
    for metric, words in (
        (AFTER_1, "the fact right after one"),
        (NEIGHBOURS, "all that follow"),
    ):
        effect = numbers.estimates[metric.at()]
        if effect.value is not None:
            moved = clearly(effect, "raised", "lowered", "not clearly moved")
            yield f"Among {FALSE[shape.replace]} the probability of {words} is {moved}."


def _notes(shape: Shape) -> tuple[str, ...]:
    sequences = "one sequence" if shape.seeds == 1 else f"{shape.seeds} sequences"
    return (
        "Probabilities are of the whole object where it stands, not among options. A token that "
        "holds nothing but the space before it is not counted.",
        f"Each relation has {sequences} of its facts, asked about and for training alike.",
        "Intervals are 95 %: a bootstrap over facts within relations. They do not cover other "
        "ways of ordering the facts.",
    )
