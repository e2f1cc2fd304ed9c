"""A run beside its controls: how far above each, and whether that could be chance.

Knows judged prompts and numbers, nothing of files or models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sonde.analysis.runs import Aligned
from sonde.core.fingerprints import draw_key
from sonde.core.reports import Cell, Column, Estimate, Headline, Table
from sonde.core.words import clearly
from sonde.metrics.estimates import Resampled, Sample
from sonde.metrics.grid import Floats, Ints
from sonde.metrics.judged import Judged
from sonde.stats.paired import mcnemar, sign_flip

MEAN = "mean_over_relations"
SMALL = 0.001


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """Pairs of one relation: the share of each that is right, and which pairs share a subject."""

    values: Floats
    clusters: Ints


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
    estimates = dict(_averaged("controls.accuracy", _alone(scores[0]), seed))
    for name, own in zip(names, scores[1:], strict=True):
        estimates |= _averaged(f"controls.{name}.accuracy", _alone(own), seed)
        estimates |= _averaged(f"controls.{name}.above", _less(scores[0], own), seed)
        estimates |= _tested(f"controls.{name}.p_value", scores[0], own, seed)
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


def outcomes(judged: Judged, subjects: Mapping[str, str]) -> dict[str, Outcome]:
    """The share of every pair's prompts that are right, by relation."""
    grid = judged.grid
    asked = np.bincount(grid.pair, minlength=len(judged.pairs))
    right = np.bincount(grid.pair, grid.right.astype(np.float64), minlength=len(judged.pairs))
    known: dict[str, int] = {}
    owners = [subjects.get(id, id) for id in judged.pairs]
    clusters = np.array([known.setdefault(s, len(known)) for s in owners], dtype=np.int64)
    found = {}
    for number, relation in enumerate(judged.relations):
        own = (grid.relations == number) & (asked > 0)
        found[relation.id] = Outcome(values=right[own] / asked[own], clusters=clusters[own])
    return {id: outcome for id, outcome in found.items() if len(outcome.values)}


def p_value(
    first: Mapping[str, Outcome], second: Mapping[str, Outcome], seed: int, name: str
) -> float:
    """Of the mean difference over relations; McNemar's exact one where that is what is asked.

    That is for a single relation, outcomes of 0 or 1 and pairs of different subjects. Else signs
    are flipped, of all pairs of a subject together.
    """
    if len(first) == 1:
        (one,), (other,) = first.values(), second.values()
        alone = len(np.unique(one.clusters)) == len(one.clusters)
        if alone and bool(np.isin([one.values, other.values], (0.0, 1.0)).all()):
            return mcnemar(one.values, other.values)
    sums = [_cluster_sums(own, second[id]) for id, own in first.items()]
    return sign_flip(np.concatenate(sums), np.random.default_rng(draw_key(seed, f"p:{name}")))


def _cluster_sums(one: Outcome, other: Outcome) -> Floats:
    """What each subject adds to the mean difference of its relation."""
    _, index = np.unique(one.clusters, return_inverse=True)
    return np.asarray(np.bincount(index, one.values - other.values) / len(one.values))


def _alone(outcome: Mapping[str, Outcome]) -> dict[str, Sample]:
    return {id: Sample(values=o.values, clusters=o.clusters) for id, o in outcome.items()}


def _less(first: Mapping[str, Outcome], second: Mapping[str, Outcome]) -> dict[str, Sample]:
    return {
        id: Sample(values=own.values, clusters=own.clusters, minus=second[id].values)
        for id, own in first.items()
    }


def _averaged(
    name: str, samples: Mapping[str, Sample], seed: int
) -> Iterator[tuple[str, Estimate]]:
    resampled = Resampled(samples, seed)
    yield f"{name}.{MEAN}", resampled.mean_over_relations()
    for relation in samples:
        yield f"{name}.relation.{relation}", resampled.relation(relation)


def _tested(
    name: str, first: Mapping[str, Outcome], second: Mapping[str, Outcome], seed: int
) -> dict[str, Estimate]:
    """The p of the mean over relations and of every relation; n is the number of pairs."""
    parts = {MEAN: tuple(first), **{f"relation.{id}": (id,) for id in first}}
    found = {}
    for over, ids in parts.items():
        one, other = ({id: side[id] for id in ids} for side in (first, second))
        value = p_value(one, other, seed, f"{name}.{over}")
        n = sum(len(side.values) for side in one.values())
        found[f"{name}.{over}"] = Estimate(value=value, low=None, high=None, n=n)
    return found


def _summary_table(
    names: Sequence[str], first: Mapping[str, Outcome], estimates: Mapping[str, Estimate]
) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        above = [estimates[f"controls.{name}.above.relation.{id}"] for id in first]
        clear = sum(1 for e in above if e.low is not None and e.low > 0)
        rows.append(
            (
                name,
                estimates[f"controls.accuracy.{MEAN}"],
                estimates[f"controls.{name}.accuracy.{MEAN}"],
                estimates[f"controls.{name}.above.{MEAN}"],
                shown_p(estimates[f"controls.{name}.p_value.{MEAN}"]),
                f"{clear} of {len(above)}",
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
    told = clearly(estimates[f"controls.{name}.above.{MEAN}"], "above", "below", "not told from")
    word, _, rest = told.partition(" (")
    p = shown_p(estimates[f"controls.{name}.p_value.{MEAN}"])
    return f"The model is {word} the control {name} ({rest.rstrip(')')}; p {p})."


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
