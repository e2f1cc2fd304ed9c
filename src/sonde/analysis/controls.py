"""A run beside its controls: how far above each, and whether that could be chance.

Knows judged prompts and numbers, nothing of files or models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sonde.analysis.runs import Aligned
from sonde.core.reports import Cell, Column, Estimate, Headline, Table
from sonde.core.words import above_zero, clearly
from sonde.metrics.estimates import Resampled, Sample, p_value
from sonde.metrics.judged import Judged

MEAN = "mean_over_relations"
SMALL = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What the report of a run gains from its controls."""

    estimates: Mapping[str, Estimate]
    tables: tuple[Table, ...]
    findings: tuple[str, ...]
    notes: tuple[str, ...]


def paired(aligned: Aligned, subjects: Mapping[str, str], seed: int) -> Beside:
    """The first run beside the others, on the prompts that all of them were asked.

    `subjects`: the subject of each fact; pairs of one subject are not independent of each other.
    """
    scores = [outcomes(run.judged, subjects) for run in aligned.runs]
    names = [run.name for run in aligned.runs[1:]]
    estimates = dict(_averaged("controls.accuracy", scores[0], seed))
    for name, own in zip(names, scores[1:], strict=True):
        less = _less(scores[0], own)
        estimates |= _averaged(f"controls.{name}.accuracy", own, seed)
        estimates |= _averaged(f"controls.{name}.above", less, seed)
        estimates |= _tested(f"controls.{name}.p_value", less, seed)
    return Beside(
        estimates=estimates,
        tables=(_summary_table(names, scores[0], estimates), _relation_table(aligned, estimates)),
        findings=tuple(_finding(name, estimates) for name in names),
        notes=(_note(aligned),),
    )


def side_by_side(
    headlines: Sequence[Headline], runs: Mapping[str, Mapping[str, Estimate]]
) -> Beside:
    """The headline numbers of some runs, the first being the model's; nothing is paired."""
    first = next(iter(runs))
    shown = [line for line in headlines if line.estimate in runs[first]]
    missing = Estimate.not_measured()
    estimates = {
        f"controls.{name}.{line.estimate}": own.get(line.estimate, missing)
        for name, own in runs.items()
        if name != first
        for line in shown
    }
    tables = tuple(
        Table(
            id=f"controls-{kind}",
            title="Beside the controls",
            columns=(
                Column(title="number"),
                *(Column(title=name, kind=kind) for name in runs),
            ),
            rows=tuple(
                (line.label, *(own.get(line.estimate, missing) for own in runs.values()))
                for line in shown
                if line.kind == kind
            ),
            note="This probe judges no single prompts, so that differences are not tested.",
        )
        for kind in dict.fromkeys(line.kind for line in shown)
    )
    return Beside(estimates=estimates, tables=tables, findings=(), notes=())


def outcomes(judged: Judged, subjects: Mapping[str, str]) -> dict[str, Sample]:
    """The share of every pair's prompts that are right, by relation; a subject is a cluster."""
    grid = judged.grid
    asked = np.bincount(grid.pair, minlength=len(judged.pairs))
    right = np.bincount(grid.pair, grid.right.astype(np.float64), minlength=len(judged.pairs))
    known: dict[str, int] = {}
    owners = [subjects.get(id, id) for id in judged.pairs]
    clusters = np.array([known.setdefault(s, len(known)) for s in owners], dtype=np.int64)
    found = {}
    for number, relation in enumerate(judged.relations):
        own = (grid.relations == number) & (asked > 0)
        found[relation.id] = Sample(values=right[own] / asked[own], clusters=clusters[own])
    return {id: sample for id, sample in found.items() if len(sample.values)}


def _less(first: Mapping[str, Sample], second: Mapping[str, Sample]) -> dict[str, Sample]:
    return {id: replace(own, minus=second[id].values) for id, own in first.items()}


def _averaged(
    name: str, samples: Mapping[str, Sample], seed: int
) -> Iterator[tuple[str, Estimate]]:
    resampled = Resampled(samples, seed)
    yield f"{name}.{MEAN}", resampled.mean_over_relations()
    for relation in samples:
        yield f"{name}.relation.{relation}", resampled.relation(relation)


def _tested(name: str, less: Mapping[str, Sample], seed: int) -> dict[str, Estimate]:
    """The p of the mean over relations and of every relation; n is the number of pairs."""
    parts = {MEAN: less, **{f"relation.{id}": {id: own} for id, own in less.items()}}
    found = {}
    for over, own in parts.items():
        value = p_value(own, seed, f"{name}.{over}")
        n = sum(len(sample.values) for sample in own.values())
        found[f"{name}.{over}"] = Estimate(value=value, low=None, high=None, n=n)
    return found


def _summary_table(
    names: Sequence[str], first: Mapping[str, Sample], estimates: Mapping[str, Estimate]
) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        clear = sum(_above(name, f"relation.{id}", estimates) for id in first)
        rows.append(
            (
                name,
                estimates[f"controls.accuracy.{MEAN}"],
                estimates[f"controls.{name}.accuracy.{MEAN}"],
                estimates[f"controls.{name}.above.{MEAN}"],
                shown_p(estimates[f"controls.{name}.p_value.{MEAN}"]),
                f"{clear} of {len(first)}",
            )
        )
    return Table(
        id="controls",
        title="Beside the controls",
        columns=(
            Column(title="control"),
            Column(title="model", kind="percent", help="share of prompts right, over relations"),
            Column(title="control", kind="percent", help="the same of the control"),
            Column(title="above", kind="percent", help="the difference, paired by fact"),
            Column(title="p", help="paired test of the difference, two-sided"),
            Column(title="relations", help="on which the model is clearly above the control"),
        ),
        rows=tuple(rows),
        note="Means over relations, on what the model and all controls were asked.",
    )


def _above(name: str, over: str, estimates: Mapping[str, Estimate]) -> bool:
    """Whether the model is above a control, by the interval and by the test."""
    above, p = (estimates[f"controls.{name}.{what}.{over}"] for what in ("above", "p_value"))
    return above_zero(above, p.value)


def _relation_table(aligned: Aligned, estimates: Mapping[str, Estimate]) -> Table:
    names = [run.name for run in aligned.runs[1:]]
    first = "controls.accuracy.relation."
    rows = [
        *(
            (r.id, r.label, *_cells(names, estimates, f"relation.{r.id}"))
            for r in aligned.first.relations
            if first + r.id in estimates
        ),
        ("all", "mean", *_cells(names, estimates, MEAN)),
    ]
    return Table(
        id="controls-by-relation",
        title="Beside the controls, by relation",
        columns=(
            Column(title="relation"),
            Column(title="label"),
            *(Column(title=name, kind="percent") for name in ("model", *names)),
            Column(title="pairs", kind="count", help="that the model and all controls were asked"),
            Column(title="model", kind="percent", detail=True),
            *(column for name in names for column in _above_columns(name)),
        ),
        rows=tuple(rows),
        note="The last row averages over relations. p of a single relation is not corrected for "
        "how many relations there are.",
    )


def _above_columns(name: str) -> tuple[Column, ...]:
    return (
        Column(title=f"above {name}", kind="percent", help="paired by fact", detail=True),
        Column(title=f"p, {name}", help="paired test, two-sided", detail=True),
    )


def _cells(names: Sequence[str], estimates: Mapping[str, Estimate], over: str) -> Iterator[Cell]:
    own = estimates[f"controls.accuracy.{over}"]
    yield own.value
    for name in names:
        yield estimates[f"controls.{name}.accuracy.{over}"].value
    yield own.n
    yield own
    for name in names:
        yield estimates[f"controls.{name}.above.{over}"]
        yield shown_p(estimates[f"controls.{name}.p_value.{over}"])


def shown_p(p: Estimate) -> str:
    """A p value as it is read.

    >>> shown_p(Estimate(value=0.0312, low=None, high=None, n=9))
    '0.031'
    """
    if p.value is None:
        return "–"
    return f"<{SMALL}" if p.value < SMALL else f"{p.value:.3f}"


def _finding(name: str, estimates: Mapping[str, Estimate]) -> str:
    above, p = (estimates[f"controls.{name}.{what}.{MEAN}"] for what in ("above", "p_value"))
    told = clearly(above, "above", "below", "not told from", p.value)
    word, _, rest = told.partition(" (")
    return f"The model is {word} the control {name} ({rest.rstrip(')')}; p {shown_p(p)})."


def _note(aligned: Aligned) -> str:
    prompts = len(aligned.first.grid)
    left = [
        f"{run.name} {count:,}"
        for run, count in zip(aligned.runs, aligned.left_out, strict=True)
        if count
    ]
    return (
        f"The controls were asked the same {prompts:,} prompts as the model. p: McNemar's exact "
        "test for a relation whose facts are right or wrong and have different subjects, else a "
        "permutation of signs, of all facts of a subject together."
        + (f" Left out, because not all could answer: {', '.join(left)} prompts." if left else "")
    )
