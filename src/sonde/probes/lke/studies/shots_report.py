"""The report of `lke-shots`: accuracy against the number of examples, and how many are enough.

Knows choices fact by fact, nothing of prompts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sonde.core.facts import Dataset
from sonde.core.fingerprints import draw_key
from sonde.core.reports import Cell, Column, Curve, Curves, Estimate, Headline, Report, Table
from sonde.metrics.choices import Floats
from sonde.probes.lke.items import Census
from sonde.probes.lke.studies.ask import ABOVE, CONTROL, Asked, census_findings, counts, put_control
from sonde.probes.lke.studies.fact_scores import Choices, FactScores, put, spread
from sonde.stats.draws import resampled_sums

OVER = "mean_over_relations"
FEW = 6

Estimates = Mapping[str, Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was asked and how it is read: the numbers of examples, and the share that is enough."""

    sizes: tuple[int, ...]
    wanted: int
    options: int
    seeds: int
    share: float


def sizes(wanted: Sequence[int], found: Sequence[Asked]) -> tuple[int, ...]:
    """The numbers of examples that some relation reaches; larger ones become the largest there is.

    >>> sizes((1, 5, 50), [])
    (1, 5, 50)
    """
    most = max((one.shown for one in found), default=max(wanted))
    return tuple(sorted({min(n, most) for n in wanted}))


def way(n: int, one: Asked) -> str:
    """The way of asking: how many examples a relation shows where n are wanted."""
    return f"n{min(n, one.shown)}"


def build_report(
    dataset: Dataset,
    found: list[Asked],
    census: Census,
    choices: Choices,
    reading: Reading,
) -> Report:
    """Everything that is reported about some numbers of examples."""
    seed = dataset.selection.seed
    estimates = _estimates(dataset, found, choices, reading, seed)
    return Report(
        title=f"Accuracy against the number of examples on {dataset.name}",
        summary=_summary(estimates, reading),
        estimates=estimates,
        counts=counts(found, census, choices.prompts, choices.ties),
        headlines=_headlines(reading),
        tables=(
            _size_table(estimates, reading),
            *_relation_table(dataset, found, estimates, reading),
        ),
        figures=(_figure(dataset, found, estimates, reading),),
        findings=(
            *_findings(estimates, reading),
            *census_findings(census, found, reading.wanted, reading.options),
        ),
        notes=(
            f"Every number of examples is asked with the same facts, options and {reading.seeds} "
            "draws of examples; more examples are those of fewer and some after them.",
            "Intervals are 95 %: a bootstrap over subjects within relations, of each fact's mean "
            "over the draws. The deviation is between the accuracies of single draws.",
            "Ties count as wrong.",
        ),
    )


def _estimates(
    dataset: Dataset, found: list[Asked], choices: Choices, reading: Reading, seed: int
) -> dict[str, Estimate]:
    made: dict[str, Estimate] = {}
    right, mass = choices.right, choices.mass
    last = _ways(found, reading.sizes[-1])
    for n in reading.sizes:
        ways = _ways(found, n)
        put(made, f"accuracy.n.{n}", right.samples(ways), seed)
        put(made, f"mass.n.{n}", mass.samples(ways), seed)
        if n != reading.sizes[-1]:
            put(made, f"less.n.{n}", right.samples(ways, minus=last), seed)
        made[f"deviation.n.{n}"] = spread(_by_turn(found, right, n))
    put_control(made, dataset, found, right, last)
    made["enough"] = enough(found, right, reading, seed)
    for one in found:
        made[f"enough.relation.{one.relation}"] = enough([one], right, reading, seed)
    return made


def _ways(found: list[Asked], n: int) -> dict[str, tuple[str, ...]]:
    return {one.relation: (way(n, one),) for one in found}


def _by_turn(found: list[Asked], right: FactScores, n: int) -> list[float]:
    """The accuracy of each draw, mean over relations."""
    tables = [right.turns(one.relation, way(n, one)).mean(axis=1) for one in found]
    return [float(value) for value in np.mean(tables, axis=0)]


def enough(found: list[Asked], right: FactScores, reading: Reading, seed: int) -> Estimate:
    """The smallest number of examples that reaches a share of the accuracy with the most.

    Its interval: the same number for subjects drawn anew, all numbers of examples with the same
    ones.
    """
    facts = sum(len(one.items) for one in found)
    curves = np.mean([_resampled(one, right, reading, seed) for one in found], axis=0)
    value = first_reaching(curves[0], reading)
    drawn = [n for curve in curves[1:] if (n := first_reaching(curve, reading)) is not None]
    if value is None or not drawn:
        return Estimate.not_measured()
    low, high = np.quantile(drawn, [0.025, 0.975], method="inverted_cdf").tolist()
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=facts)


def first_reaching(curve: Floats, reading: Reading) -> float | None:
    """The smallest number of examples with enough accuracy; None where there is none at all."""
    if not curve[-1] > 0:
        return None
    # rounding must not keep out an accuracy that is exactly the share
    reached = curve >= reading.share * curve[-1] - 1e-12
    return float(reading.sizes[int(np.argmax(reached))])


def _resampled(one: Asked, right: FactScores, reading: Reading, seed: int) -> Floats:
    """[1 + draws, sizes]: accuracies as they are, then with subjects drawn anew."""
    values = np.stack([right.mean(one.relation, (way(n, one),)) for n in reading.sizes], axis=1)
    _, index = np.unique([fact.subject.id for fact in one.facts], return_inverse=True)
    sums = np.stack([np.bincount(index, weights=column) for column in values.T], axis=1)
    rows = np.column_stack([sums, np.bincount(index)]).astype(np.float64)
    rng = np.random.default_rng(draw_key(seed, one.relation))
    totals = np.vstack([rows.sum(axis=0), resampled_sums(rows, rng)])
    return np.asarray(totals[:, :-1] / totals[:, -1:])


def _summary(estimates: Estimates, reading: Reading) -> str:
    last = reading.sizes[-1]
    accuracy, mark = estimates[f"accuracy.n.{last}.{OVER}"], estimates["enough"]
    if accuracy.value is None:
        return "No fact could be asked."
    first = f"With {last} examples the model chooses the right option for {accuracy.value:.1%}"
    if mark.value is None:
        return f"{first} of facts."
    return f"{first} of facts; {reading.share:.0%} of that is reached with {mark.value:.0f}."


def _headlines(reading: Reading) -> tuple[Headline, ...]:
    last = reading.sizes[-1]
    return (
        Headline(
            label=f"Accuracy with {last} examples, mean over relations",
            estimate=f"accuracy.n.{last}.{OVER}",
            control=f"{CONTROL}.{OVER}",
            control_label="always the commonest option",
            difference=f"{ABOVE}.{OVER}",
        ),
        Headline(
            label=f"Examples that reach {reading.share:.0%} of it",
            estimate="enough",
            kind="count",
        ),
    )


def _size_table(estimates: Estimates, reading: Reading) -> Table:
    columns = (
        Column(title="examples", kind="count"),
        Column(title="accuracy", kind="percent", help="mean over relations, facts and draws"),
        Column(
            title="deviation",
            kind="percent",
            help="standard deviation between the accuracies of single draws of examples",
        ),
        Column(
            title=f"less than {reading.sizes[-1]}",
            kind="percent",
            help="accuracy minus that with the most examples, paired by fact",
        ),
        Column(
            title="mass", kind="percent", help="mean probability of the right option", detail=True
        ),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            n,
            estimates[f"accuracy.n.{n}.{OVER}"],
            estimates[f"deviation.n.{n}"].value,
            estimates.get(f"less.n.{n}.{OVER}"),
            estimates[f"mass.n.{n}.{OVER}"],
        )
        for n in reading.sizes
    )
    return Table(id="by-examples", title="By number of examples", columns=columns, rows=rows)


def _relation_table(
    dataset: Dataset, found: list[Asked], estimates: Estimates, reading: Reading
) -> Iterator[Table]:
    if len(found) < 2:
        return
    last = reading.sizes[-1]
    columns = (
        Column(title="relation"),
        Column(title="label"),
        Column(title="examples", kind="count", help="the most there are to show"),
        Column(title="accuracy", kind="percent", help="with the most examples"),
        Column(title="enough", kind="number", help=f"examples that reach {reading.share:.0%}"),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            one.relation,
            dataset.relation(one.relation).label,
            min(one.shown, last),
            estimates[f"accuracy.n.{last}.relation.{one.relation}"],
            estimates[f"enough.relation.{one.relation}"],
        )
        for one in found
    )
    yield Table(id="by-relation", title="By relation", columns=columns, rows=rows)


def _figure(dataset: Dataset, found: list[Asked], estimates: Estimates, reading: Reading) -> Curves:
    """The mean, and beside it each relation where these are few."""
    named = {OVER: "mean over relations" if len(found) > 1 else "accuracy"}
    if 1 < len(found) <= FEW:
        for one in found:
            label = dataset.relation(one.relation).label
            named[f"relation.{one.relation}"] = f"{one.relation} {label}"
    mark = estimates["enough"].value
    marks = ((f"{reading.share:.0%} with {mark:.0f}", mark),) if mark is not None else ()
    return Curves(
        id="accuracy-by-examples",
        title="Accuracy against the number of examples",
        x_axis="examples",
        y_axis="accuracy",
        curves=tuple(_curve(estimates, reading, over, name) for over, name in named.items()),
        x_kind="number",
        marks=marks,
        note="Whiskers are 95 % intervals. The dashed line: the fewest examples that reach "
        f"{reading.share:.0%} of the accuracy with the most.",
    )


def _curve(estimates: Estimates, reading: Reading, over: str, name: str) -> Curve:
    got = [(n, estimates[f"accuracy.n.{n}.{over}"]) for n in reading.sizes]
    known = [(n, e.value, *e.ends) for n, e in got if e.value is not None]
    return Curve(
        name=name,
        x=tuple(float(n) for n, *_ in known),
        y=tuple(value for _, value, _, _ in known),
        low=tuple(low for *_, low, _ in known),
        high=tuple(high for *_, high in known),
    )


def _findings(estimates: Estimates, reading: Reading) -> Iterator[str]:
    mark, last = estimates["enough"], reading.sizes[-1]
    if mark.value is None:
        yield f"With {last} examples nothing is right, so that no number of them is enough."
    else:
        ends = f" (for other facts {mark.low:.0f} to {mark.high:.0f})" if mark.high else ""
        yield (
            f"{reading.share:.0%} of the accuracy with {last} examples is reached with "
            f"{mark.value:.0f}{ends}."
        )
    first, end = (estimates[f"deviation.n.{n}"].value for n in (reading.sizes[0], last))
    if first is not None and end is not None and len(reading.sizes) > 1:
        yield (
            f"Which examples are drawn moves the accuracy by {100 * first:.1f} points (standard "
            f"deviation) with {reading.sizes[0]}, by {100 * end:.1f} with {last}."
        )
