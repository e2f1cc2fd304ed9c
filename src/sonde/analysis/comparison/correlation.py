"""Whether runs find the same relations easy. Knows accuracies by relation, nothing of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from sonde.core.reports import Estimate
from sonde.metrics.cells import around, stream
from sonde.metrics.grid import Floats
from sonde.stats.draws import resampled_sums

FEWEST = 3
"""Relations that a correlation needs: through two points there is always a line."""

EQUAL = 1e-12
"""Accuracies whose mean square distance from their mean is below this are all equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """runs[a][b]: Pearson's correlation of two runs' accuracies over relations; n counts these.

    mean: over all pairs of different runs, their number being n. within, between: the same over
    runs of one group, of two. groups: the mean for each two groups, in alphabetical order.
    """

    runs: tuple[tuple[Estimate, ...], ...]
    mean: Estimate
    within: Estimate
    between: Estimate
    groups: Mapping[tuple[str, str], Estimate]


def correlation(accuracies: Floats, groups: Sequence[str], seed: int = 0) -> Correlation:
    """The correlations of all runs, from their accuracies [runs, relations].

    Not measured for fewer than three relations, and where a run is equally good at all of them. The
    intervals are over relations, resampled for all runs together.
    """
    runs = range(len(accuracies))
    made = {
        (a, b): couple
        for (a, b), couple in zip(
            combinations_with_replacement(runs, 2), _couples(accuracies, seed), strict=True
        )
    }
    others = [(a, b) for a, b in made if a != b]
    same = [(a, b) for a, b in others if groups[a] == groups[b]]
    kinds = sorted({(min(groups[a], groups[b]), max(groups[a], groups[b])) for a, b in others})
    return Correlation(
        runs=tuple(tuple(made[min(a, b), max(a, b)].estimate for b in runs) for a in runs),
        mean=_mean([made[key] for key in others]),
        within=_mean([made[key] for key in same]),
        between=_mean([made[key] for key in others if key not in same]),
        groups={
            kind: _mean([made[a, b] for a, b in others if {groups[a], groups[b]} == set(kind)])
            for kind in kinds
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Couple:
    """A correlation, and what it would be with other relations; nan where it cannot be told."""

    estimate: Estimate
    draws: Floats


def _couples(accuracies: Floats, seed: int) -> list[_Couple]:
    """The correlation of every two runs, a run with itself included."""
    runs, relations = accuracies.shape
    centred = accuracies - accuracies.mean(axis=1, keepdims=True)
    couples = list(combinations_with_replacement(range(runs), 2))
    columns = [*centred, *(centred[a] * centred[b] for a, b in couples)]
    table = np.column_stack(columns)
    drawn = resampled_sums(table, stream(seed, "correlation")) / relations
    values = _pearson(table.mean(axis=0)[None], couples, runs)[0]
    draws = _pearson(drawn, couples, runs)
    if relations < FEWEST:
        values = np.full(len(couples), np.nan)
    return [
        _couple(value, of_couple, relations)
        for value, of_couple in zip(values, draws.T, strict=True)
    ]


def _couple(value: float, draws: Floats, relations: int) -> _Couple:
    if np.isnan(value):
        return _Couple(estimate=Estimate.not_measured(), draws=np.full(len(draws), np.nan))
    return _Couple(estimate=around(float(value), _known(draws), n=relations), draws=draws)


def _pearson(means: Floats, couples: Sequence[tuple[int, int]], runs: int) -> Floats:
    """Correlations from the means of values and of products; [draws, couples]."""
    own = {a: runs + couples.index((a, a)) for a in range(runs)}
    variance = means[:, [own[a] for a in range(runs)]] - means[:, :runs] ** 2
    variance = np.where(variance < EQUAL, np.nan, variance)
    first, second = np.array(couples).T
    covariance = means[:, runs:] - means[:, first] * means[:, second]
    made = covariance / np.sqrt(variance[:, first] * variance[:, second])
    return np.clip(made, -1.0, 1.0)


def _mean(couples: Sequence[_Couple]) -> Estimate:
    """The mean of the correlations that were measured."""
    there = [c for c in couples if c.estimate.value is not None]
    if not there:
        return Estimate.not_measured()
    value = float(np.mean([c.estimate.value for c in there]))
    # a draw in which one of them cannot be told says nothing of their mean
    draws = np.mean([c.draws for c in there], axis=0)
    return around(value, _known(draws), n=len(there))


def _known(draws: Floats) -> Floats:
    return draws[~np.isnan(draws)]
