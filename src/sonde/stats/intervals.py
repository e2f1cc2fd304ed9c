"""95 % intervals: Wilson's for a share, a bootstrap within groups for averages over them, Student's
over clusters and over repeats. Knows plain numbers alone.

Metrics of one relation are resampled alike, from equal random streams, so what was drawn is kept
and found again by the state of the stream.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from math import inf, sqrt
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonde.stats.distributions import Z, chi_square, student_reach

Counts = NDArray[np.unsignedinteger]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROUNDING = 1e-12
DRAWS = 2000
MANY, MANY_KINDS = 20_000, 4096
"""Of more clusters than the first, in no more kinds than the second, kinds are resampled."""

PICKS = 4_000_000
"""Picks that are made at once."""

CACHED = 2**15
"""Picks that are counted and summed at once."""

SMALL = 10**6
"""Multiplications up to which OpenBLAS makes a product in its quick way, on the thread that asks
for it. Just above, threads that multiply side by side wait for each other, a hundred times as
long."""

KEPT = 2**27
"""Bytes of counts that are kept; those that were asked for last stay."""

_kept: OrderedDict[tuple[str, int, int], tuple[list[Counts], Any]] = OrderedDict()
_alone = Lock()


def resampled_sums(
    values: Floats, rng: np.random.Generator, draws: int = DRAWS, *, once: bool = False
) -> Floats:
    """Sums over rows when as many rows are drawn with replacement; [rows, k] to [draws, k].

    `once`: as many rows are not drawn by this stream again. Then a single column is summed as it is
    picked, which takes half as long as counting how often each row is.
    """
    if once and values.shape[1] == 1:
        column, ones = values[:, 0], np.ones(len(values))
        picks = (part for picked in _picked(len(values), rng, draws) for part in _few(picked))
        return np.concatenate([column.take(part) @ ones for part in picks])[:, None]
    wide = max(1, SMALL // max(CACHED, len(values)))
    columns = [values[:, at : at + wide].copy() for at in range(0, max(1, values.shape[1]), wide)]
    parts = (part for times in times_drawn(len(values), rng, draws) for part in _few(times))
    counts = (part.astype(np.float64) for part in parts)
    return np.concatenate([np.hstack([times @ some for some in columns]) for times in counts])


def resampled_at_once(
    columns: Sequence[Floats], stream: Callable[[], np.random.Generator]
) -> list[Floats]:
    """`resampled_sums` of each of several; those with as many rows are summed by one product."""
    sums: dict[int, Floats] = {}
    for rows in dict.fromkeys(map(len, columns)):
        alike = [i for i, column in enumerate(columns) if len(column) == rows]
        product = resampled_sums(np.hstack([columns[i] for i in alike]), stream())
        ends = np.cumsum([columns[i].shape[1] for i in alike])[:-1]
        sums |= dict(zip(alike, np.split(product, ends, axis=1), strict=True))
    return [sums[i] for i in range(len(columns))]


def resampled_rates(table: Floats, owners: NDArray[np.int64], rng: np.random.Generator) -> Floats:
    """The mean of every column: over all rows, then when the rows' owners are drawn anew.

    table [rows, k], nan where there is no value; to [1 + draws, k], nan where no row has one.
    """
    there = ~np.isnan(table)
    _, index = np.unique(owners, return_inverse=True)
    sums = np.zeros((int(index.max()) + 1, 2 * table.shape[1]))
    np.add.at(sums, index, np.hstack([np.where(there, table, 0.0), there]))
    drawn = np.vstack([sums.sum(axis=0), resampled_sums(sums, rng)])
    totals, counts = np.split(drawn, 2, axis=1)
    rates = np.divide(totals, counts, out=np.full_like(totals, np.nan), where=counts > 0)
    return np.asarray(rates)


def times_drawn(rows: int, rng: np.random.Generator, draws: int) -> Iterator[Counts]:
    """Counts of every row, [some draws, rows], until there were `draws`; moves the stream on."""
    if rows * draws > KEPT // 2:
        yield from _drawn(rows, rng, draws)
        return
    key = (str(rng.bit_generator.state), rows, draws)
    with _alone:
        found = _kept.pop(key, None)
    if found is None:
        found = list(_drawn(rows, rng, draws)), rng.bit_generator.state
    blocks, rng.bit_generator.state = found
    with _alone:  # several threads may draw at once
        _kept[key] = found  # the last one now
        while sum(rows * draws for _, rows, draws in _kept) > KEPT:  # a byte each
            _kept.popitem(last=False)
    yield from blocks


def _drawn(rows: int, rng: np.random.Generator, draws: int) -> Iterator[Counts]:
    return map(_counted, _picked(rows, rng, draws))


def _picked(rows: int, rng: np.random.Generator, draws: int) -> Iterator[Counts]:
    """The rows of each draw, [some draws, rows]."""
    step = max(1, PICKS // rows)
    kind = np.uint16 if rows < 2**16 else np.uint32  # half the time of wider numbers
    for start in range(0, draws, step):
        yield rng.integers(0, rows, (min(step, draws - start), rows), dtype=kind)


def _counted(picked: Counts) -> Counts:
    """How often each row was picked in each draw.

    That a row comes more than 255 times, 1 being expected, does not happen (p < 1e-500).
    """
    rows = picked.shape[1]
    times = np.empty(picked.shape, dtype=np.uint8)
    for part, counts in zip(_few(picked), _few(times), strict=True):
        cells = np.arange(len(part))[:, None] * rows + part
        counts[:] = np.bincount(cells.ravel(), minlength=part.size).reshape(part.shape)
    return times


def _few(draws: Counts) -> Iterator[Counts]:
    """Some draws after the other, so few that the processor's cache holds them."""
    step = max(1, CACHED // draws.shape[1])
    return (draws[start : start + step] for start in range(0, len(draws), step))


def wilson(successes: float, n: float) -> tuple[float, float]:
    """Interval of a share of independent trials; sensible at 0 and 1 too.

    >>> tuple(round(x, 3) for x in wilson(0, 30))
    (0.0, 0.114)
    """
    share = successes / n
    centre = share + Z * Z / (2 * n)
    spread = Z * sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    width = 1 + Z * Z / n
    # rounding can push the ends past the share itself at 0 and 1
    return min((centre - spread) / width, share), max((centre + spread) / width, share)


def paired_difference(first: Floats, second: Floats) -> tuple[float, float]:
    """Newcombe's interval of a difference between two shares of the same trials (0 or 1 each).

    Like Wilson's it stays sensible where one share is 0 or 1, or where all trials agree.
    """
    n = len(first)
    if bool((first == second).all()):
        return unvaried_difference(0.0, n)
    p1, p2 = float(first.mean()), float(second.mean())
    (low1, high1), (low2, high2) = wilson(p1 * n, n), wilson(p2 * n, n)
    spread = sqrt(p1 * (1 - p1) * p2 * (1 - p2))
    phi = (float((first * second).mean()) - p1 * p2) / spread if spread else 0.0
    down = (p1 - low1) ** 2 - 2 * phi * (p1 - low1) * (high2 - p2) + (high2 - p2) ** 2
    up = (high1 - p1) ** 2 - 2 * phi * (high1 - p1) * (p2 - low2) + (p2 - low2) ** 2
    return p1 - p2 - sqrt(max(down, 0.0)), p1 - p2 + sqrt(max(up, 0.0))


def widening(looks: int) -> float:
    """How many times as far the ends of an interval lie from its value where so many are looked at
    and all of them are to hold together, 95 times in 100 (Bonferroni).

    >>> widening(1), round(widening(20), 2)
    (1.0, 1.54)
    """
    from scipy.special import ndtri

    return float(ndtri(1 - 0.025 / looks)) / Z if looks > 1 else 1.0


def largest_distance(draws: Floats) -> Floats:
    """How far from its value each of several numbers lies at most, 95 times in 100 all together.

    draws [draws, numbers] of the bootstrap; numbers that depend on each other may. Distances are
    measured in standard errors, of which the largest of each draw counts (max-|t|); 0 where a
    number does not vary.
    """
    off = np.abs(draws - draws.mean(axis=0))
    spread = draws.std(axis=0)
    largest = np.divide(off, spread, out=np.zeros_like(off), where=spread > ROUNDING).max(axis=1)
    return np.where(spread > ROUNDING, np.quantile(largest, 0.95) * spread, 0.0)


def unvaried_difference(difference: float, n: float) -> tuple[float, float]:
    """Interval of a difference, from -1 to 1, that is the same in every trial.

    Newcombe's of the share of trials won and the share lost, one of which is 0.

    >>> tuple(round(x, 3) for x in unvaried_difference(0.0, 30))
    (-0.114, 0.114)
    """
    won, lost = max(difference, 0.0), max(-difference, 0.0)
    (low1, high1), (low2, high2) = wilson(won * n, n), wilson(lost * n, n)
    down = (won - low1) ** 2 + (high2 - lost) ** 2
    up = (high1 - won) ** 2 + (lost - low2) ** 2
    return difference - sqrt(down), difference + sqrt(up)


def resampled_means(
    sums: Floats,
    sizes: Floats,
    rng: np.random.Generator,
    draws: int = DRAWS,
    *,
    once: bool = False,
) -> Floats:
    """Means under resampling of whole clusters, given each cluster's sum and size.

    sums [clusters, k] to [draws, k]: every column is resampled alike; or [clusters] to [draws].
    Every cluster of size one is the ordinary bootstrap of single values. `once` as above.
    """
    single = bool((sizes == 1).all())
    columns = sums.reshape(len(sums), -1) if single else np.column_stack([sums, sizes])
    kinds, counts = columns, None
    if len(sums) > MANY:
        kinds, counts = np.unique(columns, axis=0, return_counts=True)
    if counts is not None and len(kinds) <= MANY_KINDS:
        totals = rng.multinomial(len(sums), counts / len(sums), size=draws) @ kinds
    else:
        totals = resampled_sums(columns, rng, draws, once=once)
    means = totals / len(sums) if single else totals[:, :-1] / totals[:, -1:]
    return np.asarray(means if sums.ndim > 1 else means[:, 0], dtype=np.float64)


def percentile_interval(draws: Floats) -> tuple[float, float]:
    """The middle 95 % of some draws."""
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)


def clustered_mean(values: Floats, clusters: Ints) -> tuple[float, float, float]:
    """Mean with the ends of its 95 % interval: Student's, from the spread between clusters.

    For where a bootstrap would take too long. A single cluster says nothing of others: its interval
    has no ends.

    >>> clustered_mean(np.array([1.0, 1.0]), np.array([0, 0]))
    (1.0, -inf, inf)
    """
    _, means, reaches, _ = clustered_means(values, clusters, np.zeros(len(values), dtype=np.int64))
    mean, reach = float(means[0]), float(reaches[0])
    return mean, mean - reach, mean + reach


def clustered_means(
    values: Floats, clusters: Ints, groups: Ints
) -> tuple[Ints, Floats, Floats, Ints]:
    """The same of many groups: their numbers, means, how far the intervals reach, and sizes.

    Groups and clusters are counted from 0; a group has values of some clusters, maybe not of all.
    """
    shape = int(clusters.max(initial=-1)) + 1, int(groups.max(initial=-1)) + 1
    cells = clusters.astype(np.int64) * shape[1] + groups
    sums, sizes = (
        np.bincount(cells, weights=of, minlength=shape[0] * shape[1]).reshape(shape)
        for of in (values, None)
    )
    n, counts = sizes.sum(axis=0), np.count_nonzero(sizes, axis=0)
    numbers = np.flatnonzero(n)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = sums.sum(axis=0) / n
        off = sums - sizes * means
        spread = np.sqrt((off * off).sum(axis=0) * counts / (counts - 1)) / n
        distinct, index = np.unique(counts, return_inverse=True)
        reaches = np.array([student_reach(each - 1) if each > 1 else inf for each in distinct])
        reach = np.where(counts > 1, reaches[index] * spread, inf)
    return numbers, means[numbers], reach[numbers], n[numbers]


def deviation(values: Sequence[float]) -> tuple[float, float, float]:
    """Standard deviation of at least two measurements, with the ends of its 95 % interval.

    The interval takes them for draws from one normal distribution; with few of them it is wide.

    >>> tuple(round(x, 3) for x in deviation([0.4, 0.5, 0.6]))
    (0.1, 0.052, 0.628)
    """
    free = len(values) - 1
    found = float(np.std(values, ddof=1))
    low, high = (found * sqrt(free / chi_square(free, upper)) for upper in (True, False))
    return found, low, high


def vary(values: Sequence[float]) -> bool:
    """Whether repeats differ by more than rounding."""
    return max(values) - min(values) > ROUNDING


def repeats_mean(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean of at least two repeats with the ends of its 95 % interval: Student's.

    >>> tuple(round(x, 3) for x in repeats_mean([0.4, 0.5, 0.6]))
    (0.5, 0.252, 0.748)
    """
    return clustered_mean(np.asarray(values, dtype=np.float64), np.arange(len(values)))


def unvaried_mean(value: float, ends: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Interval of the mean of repeats that are all equal, from the interval of each.

    Equal repeats have no spread of their own, which would be too sure of others. Their intervals
    are put together as those of independent measurements: the distances to the ends by squares.

    >>> tuple(round(x, 3) for x in unvaried_mean(0.0, [(0.0, 0.1)] * 4))
    (0.0, 0.05)
    """
    down, up = (sqrt(sum((value - pair[side]) ** 2 for pair in ends)) for side in (0, 1))
    return value - down / len(ends), value + up / len(ends)
