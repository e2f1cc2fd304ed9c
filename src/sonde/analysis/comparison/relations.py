"""What each run gets right in each relation. Knows aligned runs, nothing of tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sonde.analysis.runs import UNKNOWN, Aligned, Lineage, pair_shares, samples
from sonde.core.reports import Estimate
from sonde.metrics.estimates import Lead, Resampled, Sample, lead
from sonde.metrics.grid import Floats, Ints, around, stream
from sonde.stats.intervals import DRAWS
from sonde.stats.paired import shuffled

USUAL_SIZE = 7_000_000_000
"""Families are ordered by their model of about this size, which most of them have."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ByRelation:
    """Accuracies: of a pair the share of its prompts that are right, averaged over pairs.

    accuracies[run][relation]; mean[run] is over relations, each counting the same, and stdev[run]
    their standard deviation (n - 1), not measured for one relation. relations[relation]: the mean
    over runs. best_first: the relations by that mean; best and least: the first and the last of
    them, with those that are not told from it. runs: the order in which runs are shown.
    """

    accuracies: tuple[tuple[Estimate, ...], ...]
    mean: tuple[Estimate, ...]
    stdev: tuple[Estimate, ...]
    relations: tuple[Estimate, ...]
    best_first: tuple[int, ...]
    best: Lead | None
    least: Lead | None
    runs: tuple[int, ...]

    @property
    def values(self) -> Floats:
        """The accuracies as numbers; [runs, relations]."""
        return np.array([[e.value for e in row] for row in self.accuracies], dtype=np.float64)

    @property
    def leaders(self) -> list[int]:
        """The runs, the most accurate first."""
        return sorted(range(len(self.mean)), key=lambda run: -(self.mean[run].value or 0.0))


def by_relation(aligned: Aligned, seed: int = 0) -> ByRelation:
    """The accuracy of every run in every relation; intervals are over pairs within relations."""
    first, ids = aligned.first, [relation.id for relation in aligned.first.relations]
    shares = [pair_shares(run.judged) for run in aligned.runs]
    of_runs = [Resampled(samples(first, row), seed) for row in shares]
    mean = tuple(run.mean_over_relations() for run in of_runs)
    together = Resampled(samples(first, np.mean(shares, axis=0)), seed)
    relations = tuple(together.relation(id) for id in ids)
    order = sorted(range(len(ids)), key=lambda r: (-(relations[r].value or 0.0), ids[r]))
    return ByRelation(
        accuracies=tuple(tuple(run.relation(id) for id in ids) for run in of_runs),
        mean=mean,
        stdev=tuple(_stdev(run) for run in of_runs),
        relations=relations,
        best_first=tuple(order),
        best=_lead(together, seed),
        least=_lead(together, seed, lowest=True),
        runs=run_order([run.lineage for run in aligned.runs], [e.value or 0.0 for e in mean]),
    )


def paired(aligned: Aligned, one: int, other: int) -> dict[str, Sample]:
    """What each of two runs gets right of every pair, by relation."""
    first, second = (pair_shares(aligned.runs[run].judged) for run in (one, other))
    return samples(aligned.first, first, minus=second)


def differences(aligned: Aligned, one: int, other: int, seed: int = 0) -> Resampled:
    """How much more often one run is right than another on the same pairs, relation by relation."""
    return Resampled(paired(aligned, one, other), seed)


def run_order(lineages: Sequence[Lineage], accuracies: Sequence[float]) -> tuple[int, ...]:
    """Runs with their families together: the family whose model of about 7 billion parameters is
    best first, and within a family the best run first.

    A family of which no size is known goes by its best run; a model without a family is alone.
    """
    families: dict[str, list[int]] = {}
    for i, lineage in enumerate(lineages):
        alone = lineage.family == UNKNOWN
        families.setdefault(f"alone:{i}" if alone else lineage.family, []).append(i)

    def standing(members: Sequence[int]) -> tuple[float, str]:
        off = {i: abs(size - USUAL_SIZE) for i in members if (size := lineages[i].size) is not None}
        near = [i for i in off if off[i] == min(off.values())] or members
        return -max(accuracies[i] for i in near), min(lineages[i].model for i in members)

    return tuple(
        i
        for members in sorted(families.values(), key=standing)
        for i in sorted(members, key=lambda i: (-accuracies[i], lineages[i].model))
    )


def extremes(values: Floats, ids: Sequence[str], most: int = 3) -> tuple[Ints, Ints]:
    """The best and the worst relations of a run, the best first; no relation is in both.

    >>> extremes(np.array([0.2, 0.9, 0.5]), "abc")
    (array([1]), array([0]))
    """
    order = np.array(sorted(range(len(ids)), key=lambda r: (-values[r], ids[r])), dtype=np.int64)
    shown = min(most, len(order) // 2)
    return order[:shown], order[len(order) - shown :]


def _lead(of: Resampled, seed: int, *, lowest: bool = False) -> Lead | None:
    """The relation known best, or least; each has facts of its own, so that nothing is paired."""
    values = {id: float(sample.values.mean()) for id, sample in of.samples.items()}

    def test(one: str, other: str) -> float:
        first, second = (of.samples[id].values for id in (one, other))
        return shuffled(first, second, stream(seed, f"relations:{one}:{other}"), DRAWS)

    return lead(values, test, lowest=lowest)


def _stdev(of: Resampled) -> Estimate:
    """The standard deviation over relations; resampling makes them differ more, which is moved
    back."""
    means = np.array([sample.values.mean() for sample in of.samples.values()])
    if len(means) < 2:
        return Estimate.not_measured()
    value = float(means.std(ddof=1))
    draws = np.stack(list(of.draws.values())).std(axis=0, ddof=1)
    return around(value, np.maximum(draws - draws.mean() + value, 0.0), n=len(means))
