"""The report of `lke-separators`: the same facts under several separators, side by side.

Knows choices fact by fact, nothing of prompts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sonde.core.facts import Dataset
from sonde.core.reports import Cell, Column, DotPlot, Estimate, Headline, Report, Series, Table
from sonde.core.words import clearly, named, told_apart
from sonde.metrics.estimates import p_value
from sonde.metrics.leading import lead
from sonde.probes.lke.items import Census
from sonde.probes.lke.studies.ask import ABOVE, CONTROL, Asked, census_findings, counts, put_control
from sonde.probes.lke.studies.fact_scores import Choices, FactScores, put, spread
from sonde.prompting.separators import named_separators
from sonde.prompting.sequences import Line, told
from sonde.stats.paired import holm

OVER = "mean_over_relations"
FEW = 5

Estimates = Mapping[str, Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was asked: the separators, the first of which the others are held against."""

    ways: tuple[str, ...]
    n: int
    options: int
    seeds: int


def build_report(
    dataset: Dataset,
    found: list[Asked],
    census: Census,
    choices: Choices,
    reading: Reading,
) -> Report:
    """Everything that is reported about some separators."""
    seed = dataset.selection.seed
    estimates = _estimates(dataset, found, choices, reading, seed)
    return Report(
        title=f"Separators of in-context examples on {dataset.name}",
        summary=_summary(estimates, reading),
        estimates=estimates,
        counts=counts(found, census, choices.prompts, choices.ties),
        headlines=_headlines(reading),
        tables=(_table(found, estimates, reading),),
        figures=(_figure(dataset, found, estimates, reading),),
        findings=(
            *_best(estimates, choices.right, reading, seed),
            *_against_first(estimates, choices.right, reading, seed),
            *census_findings(census, found, reading.n, reading.options),
        ),
        notes=(
            "Every separator is asked with the same facts, options and draws of examples "
            f"({reading.seeds} of up to {reading.n}).",
            "Intervals are 95 %: a bootstrap over subjects within relations; of one relation with "
            "one draw Wilson's, and Newcombe's for a difference. A separator is called better "
            "where a paired test says so, corrected for how many there are (Holm).",
            "Ties count as wrong.",
        ),
    )


def _estimates(
    dataset: Dataset, found: list[Asked], choices: Choices, reading: Reading, seed: int
) -> dict[str, Estimate]:
    made: dict[str, Estimate] = {}
    right, mass = choices.right, choices.mass
    usual = right.everywhere(reading.ways[0])
    for k, way in enumerate(reading.ways, 1):
        chosen = right.everywhere(way)
        put(made, f"accuracy.separator.{k}", right.samples(chosen), seed)
        put(made, f"mass.separator.{k}", mass.samples(chosen), seed)
        if k > 1:
            put(made, f"above_first.separator.{k}", right.samples(chosen, minus=usual), seed)
        made[f"deviation.separator.{k}"] = spread(right.by_turn(way))
    put_control(made, dataset, found, right, usual)
    return made


def _values(estimates: Estimates, reading: Reading) -> dict[str, float]:
    """The accuracy under each separator."""
    got = (
        (way, estimates[f"accuracy.separator.{k}.{OVER}"].value) for k, way in _numbered(reading)
    )
    return {way: value for way, value in got if value is not None}


def _numbered(reading: Reading) -> Iterator[tuple[int, str]]:
    yield from enumerate(reading.ways, 1)


def _summary(estimates: Estimates, reading: Reading) -> str:
    values = _values(estimates, reading).values()
    low, high = min(values), max(values)
    return f"Under {len(values)} separators accuracy lies between {low:.1%} and {high:.1%}."


def _headlines(reading: Reading) -> tuple[Headline, ...]:
    return (
        Headline(
            label=f"Accuracy with {reading.ways[0]}, mean over relations",
            estimate=f"accuracy.separator.1.{OVER}",
            control=f"{CONTROL}.{OVER}",
            control_label="always the commonest option",
            difference=f"{ABOVE}.{OVER}",
        ),
    )


def _table(found: list[Asked], estimates: Estimates, reading: Reading) -> Table:
    columns = (
        Column(title="separators", help="inside a pair / between two pairs"),
        Column(title="accuracy", kind="percent", help="mean over relations, facts and draws"),
        Column(
            title=f"above {reading.ways[0]}",
            kind="percent",
            help="accuracy minus that with the first separators, paired by fact",
        ),
        Column(title="deviation", kind="percent", help="between single draws of examples"),
        Column(title="mass", kind="percent", help="probability of the right option", detail=True),
        Column(title="looks like", detail=True),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            way,
            estimates[f"accuracy.separator.{k}.{OVER}"],
            estimates.get(f"above_first.separator.{k}.{OVER}"),
            estimates[f"deviation.separator.{k}"].value,
            estimates[f"mass.separator.{k}.{OVER}"],
            _look(found[0].draws[0][:2], way),
        )
        for k, way in _numbered(reading)
    )
    return Table(id="by-separator", title="By separator", columns=columns, rows=rows)


def _look(lines: tuple[Line, ...], way: str) -> str:
    return told(lines, named_separators(way)).replace("\n", "⏎")


def _figure(
    dataset: Dataset, found: list[Asked], estimates: Estimates, reading: Reading
) -> DotPlot:
    """One row per separator; relations are series of their own where they are few."""
    named = {OVER: "mean over relations"} if len(found) != 1 else {OVER: "accuracy"}
    if 1 < len(found) <= FEW:
        for one in found:
            label = dataset.relation(one.relation).label
            named[f"relation.{one.relation}"] = f"{one.relation} {label}"
    return DotPlot(
        id="accuracy-by-separator",
        title="Accuracy under each separator",
        axis="accuracy",
        labels=reading.ways,
        series=tuple(
            Series(
                name=name,
                values=tuple(
                    estimates[f"accuracy.separator.{k}.{over}"] for k, _ in _numbered(reading)
                ),
            )
            for over, name in named.items()
        ),
        note="Inside a pair / between two pairs. Whiskers are 95 % intervals.",
    )


def _best(estimates: Estimates, right: FactScores, reading: Reading, seed: int) -> Iterator[str]:
    first = lead(_values(estimates, reading), lambda a, b: _p(right, a, b, seed))
    if first is not None:
        share = f"{first.value:.1%}"
        yield named(
            f"{first.best} is right most often: {share} of facts.",
            "Which separator is right most often",
            f"{first.best} ({share})",
            first.tied,
        )


def _against_first(
    estimates: Estimates, right: FactScores, reading: Reading, seed: int
) -> Iterator[str]:
    usual, *others = reading.ways
    chances = holm([_p(right, way, usual, seed) for way in others])
    moved = []
    for (k, way), p in zip(enumerate(others, 2), chances, strict=True):
        change = estimates[f"above_first.separator.{k}.{OVER}"]
        if told_apart(change, p):
            moved.append(f"{way} is {clearly(change, 'better', 'worse', '')}")
    against = f"{usual} on these facts"
    if moved:
        yield f"Against {against}: {'; '.join(moved)}."
    elif others:
        yield f"No separator is told from {against}."


def _p(right: FactScores, one: str, other: str, seed: int) -> float:
    samples = right.samples(right.everywhere(one), minus=right.everywhere(other))
    return p_value(samples, seed, f"separators:{one}:{other}")
