"""Whether answers are righter where a number is higher, over all facts and within relations.

Knows numbers, relations and clusters, nothing of what the numbers are. A cluster, such as a subject
with several facts, is resampled as one, within its relation. Ranks and scales are those of all
facts, so that a draw only counts them otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sonde.core.fingerprints import draw_key
from sonde.core.reports import Estimate
from sonde.stats.correlation import ranks_by_row
from sonde.stats.intervals import percentile_interval, resampled_sums

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DECADES = 2
"""Positive numbers that span so many powers of ten are taken by their logarithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """How values go with a number.

    `overall` is Spearman's rank correlation over all facts, `within` that of facts with others of
    their relation alone: ranks of each relation, their covariances and variances added up. `slope`:
    how much the value rises, within relations, with each power of ten, or, where the number does
    not span several, with each standard deviation.
    """

    overall: Estimate
    within: Estimate
    slope: Estimate


def by_decades(numbers: Floats) -> bool:
    """Whether numbers are better taken by their logarithm."""
    return bool(numbers.min() > 0 and numbers.max() / numbers.min() >= 10**DECADES)


def trend(numbers: Floats, values: Floats, relations: Ints, clusters: Ints, seed: int) -> Trend:
    """The trend of one value a fact; relations are counted from 0."""
    scaled = np.log10(numbers) if by_decades(numbers) else numbers / (numbers.std() or 1.0)
    own = np.empty((2, len(numbers)))
    for number in np.unique(relations).tolist():
        at = relations == number
        own[:, at] = _ranks(numbers[at]) / at.sum(), _ranks(values[at]) / at.sum()
    pairs = {
        "all": (_ranks(numbers), _ranks(values)),
        "own": (own[0], own[1]),
        "line": (scaled, values),
    }
    drawn = {
        name: _moments(one, other, relations, clusters, seed)
        for name, (one, other) in pairs.items()
    }
    n = len(numbers)
    return Trend(
        overall=_estimate(_correlation(_spread(drawn["all"].sum(axis=0))), n),
        within=_estimate(_correlation(_spread(drawn["own"]).sum(axis=0)), n),
        slope=_estimate(_slope(_spread(drawn["line"]).sum(axis=0)), n),
    )


def _ranks(values: Floats) -> Floats:
    return np.asarray(ranks_by_row(values[None])[0])


def _moments(a: Floats, b: Floats, relations: Ints, clusters: Ints, seed: int) -> Floats:
    """Sums of 1, a, b, aa, bb and ab of each relation: over its facts, then in every draw.

    [relations, 1 + draws, 6]
    """
    a, b = a - a.mean(), b - b.mean()  # far from 0 the sums of squares would lose digits
    table = np.column_stack([np.ones_like(a), a, b, a * a, b * b, a * b])
    parts = []
    for number in np.unique(relations).tolist():
        at = relations == number
        _, index = np.unique(clusters[at], return_inverse=True)
        sums = np.zeros((int(index.max()) + 1, table.shape[1]))
        np.add.at(sums, index, table[at])
        rng = np.random.default_rng(draw_key(seed, f"trend:{number}"))
        parts.append(np.vstack([sums.sum(axis=0), resampled_sums(sums, rng)]))
    return np.array(parts)


def _spread(moments: Floats) -> Floats:
    """Sums of squares around the mean from moments: of a, of b, and of both together."""
    n, a, b, aa, bb, ab = np.moveaxis(moments, -1, 0)
    spread = np.stack([aa - a * a / n, bb - b * b / n, ab - a * b / n], axis=-1)
    return np.where(np.abs(spread) < 1e-9, 0.0, spread)


def _correlation(spread: Floats) -> Floats:
    a, b, ab = np.moveaxis(spread, -1, 0)
    size = np.sqrt(a * b)
    return np.asarray(np.divide(ab, size, out=np.full_like(size, np.nan), where=size > 0))


def _slope(spread: Floats) -> Floats:
    a, _, ab = np.moveaxis(spread, -1, 0)
    return np.asarray(np.divide(ab, a, out=np.full_like(a, np.nan), where=a > 0))


def _estimate(drawn: Floats, n: int) -> Estimate:
    """The first is the value, the others its draws; draws in which nothing varies tell nothing."""
    value, draws = float(drawn[0]), drawn[1:][~np.isnan(drawn[1:])]
    if np.isnan(value) or not len(draws):
        return Estimate.not_measured()
    low, high = percentile_interval(draws)
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=n)
