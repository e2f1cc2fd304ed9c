"""Whether answers are righter where a number is higher, over all facts and within relations.

Knows numbers, relations and clusters, nothing of what the numbers are. A cluster, such as a subject
with several facts, is resampled as one, within its relation. Ranks and scales are those of all
facts, so that a draw only counts them otherwise. Where few values differ, or many numbers are
equal, such draws are too sure of a trend; a permutation test, in which numbers are dealt anew to
the clusters, is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sonde.core.fingerprints import draw_key
from sonde.core.reports import Estimate
from sonde.core.words import LEVEL
from sonde.metrics.verdicts import Floats, Ints
from sonde.stats.correlation import ranks_by_row
from sonde.stats.intervals import percentile_interval, resampled_sums

DECADES = 2
"""Positive numbers that span so many powers of ten are taken by their logarithm."""

PERMUTATIONS = 2000
PICKS = 2_000_000
"""Of the numbers, and how many picks are made at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """How values go with a number.

    `overall` is Spearman's rank correlation over all facts, `within` that of facts with others of
    their relation alone: ranks of each relation, their covariances and variances added up. `slope`:
    how much the value rises, within relations, with each power of ten, or, where the number does
    not span several, with each standard deviation.

    The p of each is that of a permutation test; an interval reaches to 0 where the test does not
    tell the trend from none.
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
    anywhere = np.zeros_like(relations)
    (p,) = permuted([pairs["all"]], anywhere, clusters, seed)
    p_within, p_slope = permuted([pairs["own"], pairs["line"]], relations, clusters, seed)
    n = len(numbers)
    return Trend(
        overall=_estimate(_correlation(_spread(drawn["all"].sum(axis=0))), n, p),
        within=_estimate(_correlation(_spread(drawn["own"]).sum(axis=0)), n, p_within),
        slope=_estimate(_slope(_spread(drawn["line"]).sum(axis=0)), n, p_slope),
    )


def permuted(
    pairs: Sequence[tuple[Floats, Floats]], strata: Ints, clusters: Ints, seed: int
) -> list[float]:
    """The p of permutation tests that two columns of facts go together within strata, two-sided.

    The first column is dealt anew to the clusters of a stratum: a cluster gets what another with as
    many facts has, in its order, so that what holds within clusters stays. Spreads stay too, hence
    sums of products tell the same as correlations. p is never below 1 / (1 + PERMUTATIONS).
    """
    centred = [(one, _centred(other, strata)) for one, other in pairs]
    sums = np.zeros((len(pairs), 1 + PERMUTATIONS))  # the first as they are
    rng = np.random.default_rng(draw_key(seed, "trend:permuted"))
    for rows in _alike(strata, clusters):
        done = 1
        sums[:, 0] += [(one[rows] * other[rows]).sum() for one, other in centred]
        for dealt in _dealt(len(rows), rng):
            block = slice(done, done + len(dealt))
            for at, (one, other) in enumerate(centred):
                for own, theirs in zip(one[rows].T, other[rows].T, strict=True):
                    sums[at, block] += own[dealt] @ theirs
            done += len(dealt)
    sizes = [float(np.abs(one) @ np.abs(other)) for one, other in centred]
    least = np.abs(sums[:, :1]) - 1e-9 * np.array(sizes)[:, None]  # sums in another order
    return list(((np.abs(sums) >= least).sum(axis=1) / (1 + PERMUTATIONS)).tolist())


def _centred(values: Floats, strata: Ints) -> Floats:
    _, index = np.unique(strata, return_inverse=True)
    return np.asarray(values - (np.bincount(index, values) / np.bincount(index))[index])


def _alike(strata: Ints, clusters: Ints) -> Iterator[Ints]:
    """The facts of clusters that may change places: of one stratum, of one size; [clusters, size].

    A cluster is in one stratum.
    """
    order = np.argsort(clusters, kind="stable")
    _, starts, sizes = np.unique(clusters[order], return_index=True, return_counts=True)
    own = strata[order[starts]]
    for stratum, size in np.unique(np.column_stack([own, sizes]), axis=0).tolist():
        first = starts[(own == stratum) & (sizes == size)]
        yield order[first[:, None] + np.arange(size)]


def _dealt(count: int, rng: np.random.Generator) -> Iterator[Ints]:
    """Orders of so many things, [some, count], until there were PERMUTATIONS."""
    step = max(1, PICKS // count)
    for start in range(0, PERMUTATIONS, step):
        size = min(step, PERMUTATIONS - start)
        yield rng.permuted(np.tile(np.arange(count), (size, 1)), axis=1)


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


def _estimate(drawn: Floats, n: int, p: float) -> Estimate:
    """The first is the value, the others its draws; in one in which nothing varies is no trend."""
    value = float(drawn[0])
    if np.isnan(value):
        return Estimate.not_measured()
    nothing = 0.0 if p >= LEVEL else value
    ends = (*percentile_interval(np.nan_to_num(drawn[1:])), value, nothing)
    return Estimate(value=value, low=min(ends), high=max(ends), n=n, p=p)
