"""The report of in-context estimation, from its choices. Knows nothing of prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sonde.core.facts import Dataset, Relation
from sonde.core.reports import (
    Curve,
    Curves,
    Estimate,
    Estimates,
    Figure,
    Headline,
    Metric,
    Report,
    Table,
)
from sonde.core.words import NAMED, against_control, trust
from sonde.metrics.accuracy import accuracy_at_over
from sonde.metrics.calibration import Bin, calibration
from sonde.metrics.estimates import spread_of
from sonde.probes.lke.choices import Choices, put
from sonde.probes.lke.items import Census
from sonde.probes.lke.metrics import (
    ABOVE,
    ACCURACY,
    ALL_CHOICES,
    AT,
    AVERAGED,
    BY_SEED,
    CHOICES,
    CONFIDENCE,
    MAJORITY,
    MASS,
    OVER_SEEDS,
    RETAINED,
    at_level,
)
from sonde.reporting.build import figures as build
from sonde.reporting.build.multi_prompt.metrics import ECE, OVERCONF
from sonde.reporting.build.parts import above_on_relations, headline, shown
from sonde.reporting.build.tables import Field, browse, by_relation, drawn, table, titled
from sonde.reporting.catalogue import FACTS, RELATIONS

SHOWN = 50_000
ENDS = 90
"""How many characters of a prompt are shown at its beginning and at its end."""
GRID = (*(i / 20 for i in range(20)), 0.99)

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a run is read: what it was called, how much it asked for, and which levels count.

    `seeds` are those of the draws of examples. `prefixes` is one prompt of each relation, to be
    shown with `blank` behind it; `tables` are further ones.
    """

    name: str
    wanted: int
    options: int
    levels: tuple[float, ...]
    seeds: Sequence[int]
    prefixes: Mapping[str, str]
    blank: str = "___"
    notes: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()

    @property
    def first_level(self) -> tuple[float, ...]:
        """The level for the top of the page: the lowest from 0.5 on, else the highest there is."""
        high = [level for level in self.levels if level >= 0.5]
        return tuple(sorted(high)[:1] or sorted(self.levels)[-1:])


def build_report(dataset: Dataset, choices: Choices, census: Census, reading: Reading) -> Report:
    """Everything that is reported about some choices."""
    seed, several = dataset.selection.seed, len(reading.seeds) > 1
    estimates, bins = _measured(choices, reading, seed)
    return Report(
        title=f"{reading.name} on {dataset.name}",
        summary=_summary(estimates, choices),
        metrics=tuple(_metrics(reading)),
        estimates=estimates,
        counts={
            **dataset.notes,
            **choices.counts(),
            **reading.counts,
            **census.counts(reading.wanted),
        },
        headlines=tuple(_headlines(reading, several)),
        tables=shown(
            (
                _relation_table(estimates, choices, census, reading),
                _level_table(estimates, choices.asked.relations, reading.levels),
                *reading.tables,
                _prompt_table(choices.asked.relations, census, reading),
                _fact_table(choices, several, seed),
            )
        ),
        figures=shown(_figures(estimates, bins, choices, reading.seeds)),
        findings=shown(_findings(estimates, choices, census, reading)),
        notes=(*reading.notes, *_notes()),
    )


def _metrics(reading: Reading) -> Iterator[Metric]:
    yield from (*AVERAGED, *ALL_CHOICES)
    yield from (metric for k in reading.levels for metric in at_level(k))
    yield from (BY_SEED.of(s=seed) for seed in reading.seeds)
    yield OVER_SEEDS


def _measured(
    choices: Choices, reading: Reading, seed: int
) -> tuple[dict[str, Estimate], tuple[Bin, ...]]:
    """Every number by its name, and the bins behind the calibration figure."""
    estimates: dict[str, Estimate] = {}
    right, control = choices.means("right"), choices.means("control")
    values = (right, control, right, choices.means("mass"), choices.means("sure"))
    for metric, value in zip(AVERAGED, values, strict=True):
        samples = choices.samples(value, control if metric is ABOVE else None)
        put(estimates, metric, samples, seed, also=FACTS)
    facts, sure = choices.each("sure")
    for level in reading.levels:
        at, left = at_level(level)
        kept = sure >= level
        put(estimates, at, choices.samples(choices.each("right", kept)), seed, also=CHOICES)
        share = (facts, kept.astype(np.float64))
        put(estimates, left, choices.samples(share), seed, also=CHOICES)
    calibrated = calibration(sure, choices.column("right"), facts, seed=seed)
    unknown = Estimate.not_measured()
    estimates[OVERCONF.at()] = calibrated.overconf if calibrated else unknown
    estimates[ECE.at()] = calibrated.ece if calibrated else unknown
    _put_seeds(estimates, choices, reading.seeds, seed)
    return estimates, calibrated.bins if calibrated else ()


def _put_seeds(
    estimates: dict[str, Estimate], choices: Choices, seeds: Sequence[int], seed: int
) -> None:
    """Add the accuracy with each draw of examples, and how far these lie apart."""
    for s in seeds:
        right = choices.each("right", choices.column("seed") == s)
        put(estimates, BY_SEED.of(s=s), choices.samples(right), seed)
    for over in (RELATIONS, *(f"relation.{r.id}" for r in choices.asked.relations)):
        values = (estimates[BY_SEED.of(s=s).at(over)].value for s in seeds)
        estimates[OVER_SEEDS.at(over)] = spread_of([v for v in values if v is not None])


def _summary(estimates: Estimates, choices: Choices) -> str:
    value, control = (estimates[metric.at(RELATIONS)].value for metric in (ACCURACY, MAJORITY))
    if value is None or control is None:
        return "No fact could be asked about."
    counts, offered = choices.counts(), choices.column("offered")
    over = f", averaged over {counts['relations']} relations" if counts["relations"] > 1 else ""
    low, high = int(offered.min()), int(offered.max())
    options = f"{high}" if low == high else f"{low} to {high}"
    return (
        f"The right option is the likeliest for {value:.1%} of facts{over} "
        f"({counts['facts']:,} facts, {options} options each); always choosing the commonest "
        f"object gives {control:.1%}."
    )


def _headlines(reading: Reading, several: bool) -> Iterator[Headline]:
    for over in (RELATIONS, FACTS):
        yield headline(ACCURACY.named("Accuracy"), over, control=MAJORITY, above=ABOVE)
    yield headline(MASS.named("Probability of the right option"), RELATIONS)
    for level in reading.first_level:
        accuracy, retained = at_level(level)
        words = f"Accuracy@{level:g}: where at least so sure"
        yield headline(accuracy.named(words), RELATIONS)
        words = f"Share of choices at least {level:g} sure"
        yield headline(retained.named(words), RELATIONS)
    if several:
        label = "Standard deviation of the accuracy over seeds"
        yield headline(OVER_SEEDS, RELATIONS, label=label)


def _relation_table(
    estimates: Estimates, choices: Choices, census: Census, reading: Reading
) -> Table:
    asked = choices.asked
    facts, offered = choices.each("offered")
    owners = asked.relation[facts]
    options = {
        r.id: float(offered[owners == number].mean())
        for number, r in enumerate(asked.relations)
        if number in owners
    }
    majority = dict(zip((r.id for r in asked.relations), asked.majority, strict=True))
    whole = set(census.examples.values()) <= {reading.wanted}  # then it says nothing new
    details = [*([OVER_SEEDS] if len(reading.seeds) > 1 else [])]
    details += [metric for level in reading.first_level for metric in at_level(level)]
    fields: list[Metric | Field[Relation]] = [
        *(ACCURACY, MAJORITY, ABOVE, MASS),
        *(metric.detail() for metric in (CONFIDENCE, *details)),
        Field(
            "examples",
            lambda r: census.examples.get(r.id, 0),
            "count",
            f"of {reading.wanted} asked for",
            detail=whole,
        ),
        Field(
            "options",
            lambda r: options.get(r.id),
            "number",
            f"mean, of {reading.options} asked for",
        ),
        Field("commonest object", lambda r: majority[r.id], detail=True),
    ]
    return by_relation(estimates, asked.relations, fields)


def _level_table(
    estimates: Estimates, relations: Sequence[Relation], levels: tuple[float, ...]
) -> Table:
    def left(level: float) -> int:
        retained = at_level(level)[1]
        return sum(bool(estimates[retained.at(f"relation.{r.id}")].value) for r in relations)

    def pooled(level: float) -> Estimate:
        return estimates[at_level(level)[0].at(CHOICES)]

    fields: list[Metric | Field[float]] = [
        Field("at least K sure", lambda k: f"{k:g}"),
        AT.named("accuracy", "mean over relations with choices left"),
        RETAINED.named("share left", "choices left, mean over relations"),
        Field("relations", left, "count", "of which a choice is left"),
        Field("pooled", pooled, "percent", "accuracy of all choices left together"),
    ]
    return table(
        levels,
        fields,
        lambda level, metric: estimates[metric.of(k=f"{level:g}").at(RELATIONS)],
        id="accuracy-at-k",
        title="Accuracy@K: where the model is sure",
        note="Sure is the probability of the chosen option among the options. A relation of which "
        "no choice is left has no accuracy and is not in the mean.",
    )


def _prompt_table(relations: Sequence[Relation], census: Census, reading: Reading) -> Table:
    def ends(relation: Relation) -> str:
        prompt = reading.prefixes[relation.id]
        if len(prompt) > 2 * ENDS:
            prompt = f"{prompt[:ENDS].rstrip()} … {prompt[-ENDS:].lstrip()}"
        return f"{prompt}{reading.blank}"

    fields: list[Field[Relation]] = [
        Field("relation", titled),
        Field("examples", lambda r: census.examples[r.id], "count"),
        Field("prompt", ends, help="its beginning and its end"),
    ]
    prompted = [r for r in relations if r.id in reading.prefixes and r.id in census.examples]
    return browse(prompted, fields, id="prompts", title="A prompt of each relation")


def _fact_table(choices: Choices, several: bool, seed: int) -> Table:
    items, frame = choices.asked.items, choices.frame
    titles = {r.id: titled(r) for r in choices.asked.relations}
    seeds = [Field[Row]("seed", kind="count", help="of the draw of examples")] if several else []
    fields: list[Field[Row]] = [
        Field("relation", lambda row: titles[row["relation"]]),
        Field("subject", lambda row: items[row["fact"]].fact.subject.name),
        *seeds,
        Field("right", lambda row: items[row["fact"]].gold, help="the fact's own object"),
        Field("chosen", help="the likeliest of the options"),
        Field("sure", kind="percent", help="probability of the chosen option"),
        Field("mass", kind="percent", help="probability of the right option"),
        Field("rank", kind="count", help="of the right option; 1 is best"),
        Field("options", lambda row: row["offered"], "count"),
        Field("verdict", _verdict, "verdict"),
    ]
    kept = drawn([items[i].fact.id for i in choices.column("fact")], seed, SHOWN)
    rows = frame[kept].iter_rows(named=True)
    return browse(rows, fields, id="facts", title="Facts", total=frame.height, what="choices")


def _verdict(row: Row) -> str:
    return "right" if row["right"] else "tied" if row["tied"] else "wrong"


def _figures(
    estimates: Estimates, bins: tuple[Bin, ...], choices: Choices, seeds: Sequence[int]
) -> Iterator[Figure]:
    relations = choices.asked.relations
    yield build.dots_by_relation(
        estimates,
        relations,
        {"model": ACCURACY, "majority control": MAJORITY},
        id="accuracy-by-relation",
        title="Accuracy of every relation beside the majority control",
        axis="accuracy",
    )
    if choices.frame.height:
        yield _accuracy_at(choices)
    confidence = "probability of the chosen option"
    yield build.calibration({"model": bins}, confidence=f"{confidence} in the bin", what="choices")
    yield build.distribution(
        choices.column("sure"),
        id="confidence",
        title="How sure the model is of what it chooses",
        axis=confidence,
    )
    if len(seeds) > 1:
        found = {
            r: [
                (estimates[BY_SEED.of(s=s).at(f"relation.{r.id}")].value, f"seed {s}")
                for s in seeds
            ]
            for r in relations
        }
        yield build.strip(
            ((titled(r), [(v, s) for v, s in own if v is not None]) for r, own in found.items()),
            id="seeds",
            title="Accuracy with every draw of the examples",
            axis="accuracy with one draw",
            note="One dot a seed. The facts and their options stay the same.",
        )


def _accuracy_at(choices: Choices) -> Curves:
    (facts, sure), right = choices.each("sure"), choices.column("right")
    owners = choices.asked.relation[facts]
    points = [accuracy_at_over(sure, right, owners, level) for level in GRID]
    found = [(p.level, p.accuracy) for p in points if p.accuracy is not None]
    return Curves(
        id="accuracy-at-k",
        title="Accuracy@K: accuracy where the model is at least K sure",
        x_axis="K, the least probability of the chosen option",
        y_axis="share",
        curves=(
            Curve(name="accuracy", x=tuple(k for k, _ in found), y=tuple(a for _, a in found)),
            Curve(name="share of choices left", x=GRID, y=tuple(p.retained for p in points)),
        ),
        note="Means over relations; the accuracy over those of which a choice is left. Where few "
        "are left it is uncertain; the table gives intervals.",
    )


def _findings(
    estimates: Estimates, choices: Choices, census: Census, reading: Reading
) -> Iterator[str]:
    yield against_control("Accuracy", estimates[ABOVE.at(RELATIONS)])
    if len(choices.asked.relations) > 1:
        yield above_on_relations(estimates, ABOVE, choices.asked.relations, NAMED)
    yield trust(estimates[OVERCONF.at()])
    spread = estimates[OVER_SEEDS.at(RELATIONS)].value
    if spread is not None:
        values = [estimates[BY_SEED.of(s=s).at(RELATIONS)].value or 0.0 for s in reading.seeds]
        yield (
            f"Over {len(values)} draws of the examples the accuracy is {min(values):.1%} to "
            f"{max(values):.1%} (standard deviation {100 * spread:.1f} points)."
        )
    yield from census.sentences(reading.wanted, reading.options)
    if ties := choices.counts()["ties"]:
        several = "1 choice" if ties == 1 else f"{ties:,} choices"
        yield f"{several} have several likeliest options; they count as wrong."


def _notes() -> tuple[str, ...]:
    return (
        "The probability of an option is the product of its tokens' probabilities, whatever its "
        "length, and is renormalised over the options. Ties for the first place count as wrong.",
        "The majority control chooses the option that is commonest among the objects of the split "
        "that is asked about.",
        "Intervals are 95 %. Within one relation: Wilson's for a share, Newcombe's for the paired "
        "difference to the control, a bootstrap over subjects where a subject has several facts or "
        "several draws. Averages: a bootstrap over subjects within relations.",
    )
