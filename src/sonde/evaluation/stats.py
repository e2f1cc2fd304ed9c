"""Intervals, tests and distributions over plain numbers. Knows no facts, prompts or models."""

from collections.abc import Sequence
from math import ceil, erfc, inf, sqrt
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sonde.core.fingerprints import draw_key

Floats = NDArray[np.float64]
Ints = NDArray[np.signedinteger[Any]]
Bools = NDArray[np.bool_]

DRAWS, LEVEL, Z = 2000, 0.05, 1.959963984540054
FLAT = 1e-12  # an interval narrower than this is rounding
PICKS = 4_000_000  # random numbers held at once
CACHE = 2**15  # of them counted at once
THREADED = 10**6  # multiplications above which OpenBLAS starts threads: up to nine times slower
TABLE = 2_000_000  # cells of a table of characteristic functions


def random_generator(seed: int, name: str) -> np.random.Generator:
    """Random numbers that depend on a seed and a name alone."""
    return np.random.default_rng(draw_key(seed, name))


def _multiply(columns: Floats, counts: Floats) -> Floats:
    """columns [clusters, k] and counts [draws, clusters] to sums [k, draws]."""
    parts = min(columns.shape[1], ceil(len(counts) * columns.size / THREADED))
    if parts == 1:
        return np.asarray(columns.T @ counts.T)
    return np.concatenate([part.T @ counts.T for part in np.array_split(columns, parts, axis=1)])


def resampled_sums(columns: Floats, rng: np.random.Generator, draws: int = DRAWS) -> Floats:
    """Sums over clusters when as many are drawn with replacement; [clusters, k] to [draws, k]."""
    n, sums = len(columns), []
    step, few = max(1, PICKS // n), max(8, CACHE // n)
    dtype = np.uint16 if n < 2**16 else np.uint32  # half the time of wider numbers
    for start in range(0, draws, step):
        picks = rng.integers(0, n, (min(step, draws - start), n), dtype=dtype)
        for block in (picks[i : i + few] for i in range(0, len(picks), few)):
            cells = np.arange(len(block))[:, None] * n + block
            counts = np.bincount(cells.ravel(), minlength=block.size).reshape(block.shape)
            sums.append(_multiply(columns, counts.astype(np.float64)))
    return np.concatenate(sums, axis=1).T


def flipped_sums(columns: Floats, rng: np.random.Generator, flips: int) -> Floats:
    """Sums over random sets of clusters, each in the set or not; [clusters, k] to [flips, k]."""
    n, sums = len(columns), []
    few = max(8, CACHE // n)
    for start in range(0, flips, few):
        size = min(few, flips - start)
        bits = np.frombuffer(rng.bytes(size * -(-n // 8)), dtype=np.uint8).reshape(size, -1)
        chosen = np.unpackbits(bits, axis=1, count=n)
        sums.append(_multiply(columns, chosen.astype(np.float64)))
    return np.concatenate(sums, axis=1).T


def wilson_interval(successes: Any, n: Any) -> tuple[Any, Any]:
    """Interval of a share of n independent trials; sensible at 0 and 1 too. Of arrays too.

    >>> tuple(round(float(x), 3) for x in wilson_interval(0, 30))
    (0.0, 0.114)
    """
    share = successes / n
    center = share + Z * Z / (2 * n)
    spread = Z * np.sqrt(np.maximum(share * (1 - share) / n, 0.0) + Z * Z / (4 * n * n))
    width = 1 + Z * Z / n
    # rounding can push the ends past the share itself at 0 and 1
    return np.minimum((center - spread) / width, share), np.maximum(
        (center + spread) / width, share
    )


def newcombe_interval(won: float, lost: float, n: float) -> tuple[float, float]:
    """Interval of won − lost, two shares of n trials, each won, lost or neither."""
    (low1, high1), (low2, high2) = wilson_interval(won * n, n), wilson_interval(lost * n, n)
    down = (won - low1) ** 2 + (high2 - lost) ** 2
    up = (high1 - won) ** 2 + (lost - low2) ** 2
    return won - lost - sqrt(down), won - lost + sqrt(up)


class IntervalAndP(NamedTuple):
    low: float
    high: float
    p: float


def sign_flip_test(
    differences: Floats, weights: Floats, rng: np.random.Generator, flips: int = 9999
) -> IntervalAndP:
    """Ends of the 95% interval of Σ differences / Σ weights, and p of no difference.

    Under a true difference δ each cluster's difference − δ·weight may as well have the other sign.
    For a random set of clusters with flipped signs the test does not reject exactly the δ between
    the ratio of that set and the ratio of the others (Hartigan's typical values). So one sample of
    sets gives p for every δ, the interval is the δ with p ≥ 0.05, and the two never contradict
    each other. For independent 0/1 outcomes the test is McNemar's.
    """
    columns = np.column_stack([differences, weights])
    flipped = flipped_sums(columns, rng, flips)
    return sign_flip_test_from_sums(
        flipped.T, columns.sum(axis=0), float((differences**2).sum()), len(columns)
    )


def sign_flip_test_from_sums(
    flipped: Floats, totals: Floats, squares: float, clusters: int
) -> IntervalAndP:
    """The interval and p of `sign_flip_test`, given sums over random sets; flipped [2, flips].

    Where no set reaches a difference of 0, p is the normal tail of the flip distribution, so that
    corrections for many comparisons can still reject; but not less than all 2**clusters sets give.
    """
    others = totals[:, None] - flipped
    empty = (np.abs(flipped[1]) < FLAT) | (np.abs(others[1]) < FLAT)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = flipped[0] / flipped[1], others[0] / others[1]
    # an empty set keeps every δ
    low = np.where(empty, -inf, np.minimum(*ratios))
    high = np.where(empty, inf, np.maximum(*ratios))
    flips = flipped.shape[1]
    reaching = int(((low <= FLAT) & (high >= -FLAT)).sum())
    p = (1 + reaching) / (1 + flips)
    if not reaching:
        tail = erfc(abs(totals[0]) / sqrt(2 * squares)) if squares else 1.0
        p = min(p, max(tail, 2.0 ** (1 - clusters)))
    rank = ceil(LEVEL * (1 + flips)) - 2
    return IntervalAndP(
        float(np.partition(low, rank)[rank]), float(-np.partition(-high, rank)[rank]), p
    )


def holm_corrected(p: Any) -> list[float]:
    """p values corrected for how many there are, in the order given.

    >>> [round(p, 2) for p in holm_corrected([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    steps = np.minimum(1.0, np.asarray(p)[order] * np.arange(len(p), 0, -1))
    adjusted: list[float] = np.maximum.accumulate(steps)[np.argsort(order)].tolist()
    return adjusted


def interval_widening(clusters: Any, strata: Any) -> Floats:
    """By how much intervals of few clusters have to be wider than their bootstrap draws.

    Draws of n clusters in s strata vary by √((n − s) / n) too little, and their quantiles are
    normal, not Student's. Without this 25 clusters in each of two strata cover 93 to 94 times in
    100, with it 94 to 96. It is 1.05 for 50 clusters, 1.01 for 200; inf if nothing can vary.

    >>> interval_widening(np.array([10, 50, 200]), 1).round(3).tolist()
    [1.217, 1.036, 1.009]
    """
    free = np.asarray(clusters - strata, dtype=np.float64)
    return np.asarray(np.sqrt(clusters / np.maximum(free, 1)) * student_half_width(free) / Z)


def bootstrap_interval(
    draws: Floats, clusters: Any, strata: Any = 1, centered: bool = False
) -> Floats:
    """Ends of the 95% intervals of estimates that come before their draws: [..., 1 + draws] to
    [2, ...]. nan if nothing varies.

    centered: resampling moves the number to one side, so that the draws are shifted back.
    """
    value, moved = draws[..., 0], draws[..., 1:]
    ends = np.quantile(moved, (LEVEL / 2, 1 - LEVEL / 2), axis=-1)
    ends -= moved.mean(axis=-1) if centered else value
    with np.errstate(invalid="ignore"):
        ends = value + ends * interval_widening(clusters, strata)
        # standard deviations, maxima and absolute values are never negative
        positive = centered & (draws.min(axis=-1) >= 0)
        ends = np.where(positive, np.maximum(ends, 0.0), ends)
        return np.where(ends[1] - ends[0] > FLAT, ends, np.nan)


class MaxT(NamedTuple):
    """Half-widths of simultaneous intervals, and p values, of several estimates."""

    half_widths: Floats
    p: Floats


def max_t_test(draws: Floats) -> MaxT:
    """Half-widths and p values of several estimates that hold together, 95 times in 100.

    draws [1 + draws, numbers], the first row the estimates. The largest |t| of each draw decides
    both, so an interval contains 0 exactly where p ≥ 0.05.
    """
    value, error = draws[0], draws[1:].std(axis=0)

    def t(x: Floats) -> Floats:
        return np.asarray(np.divide(np.abs(x), error, out=np.zeros_like(x), where=error > FLAT))

    largest = np.sort(t(draws[1:] - draws[1:].mean(axis=0)).max(axis=1))
    p = (1 + (largest[:, None] >= t(value)).sum(axis=0)) / (1 + len(largest))
    critical = largest[-(ceil(LEVEL * (1 + len(largest))) - 1)]
    return MaxT(critical * error, p)


def student_half_width(free: Any) -> Floats:
    """Half-width of Student's 95% interval in standard errors, to three digits; inf below 1.

    >>> student_half_width(np.array([1, 3, 29])).round(2).tolist()
    [12.71, 3.18, 2.05]
    """
    # Cornish and Fisher's series, as importing scipy takes longer than a report
    v, z2 = np.maximum(free, 1.0), Z * Z
    terms = (
        (z2 + 1) / 4,
        ((5 * z2 + 16) * z2 + 3) / 96,
        (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384,
        ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160,
    )
    series = Z * (1 + sum(term / v**power for power, term in enumerate(terms, 1)))
    return np.select([free < 1, free < 2, free < 3], [inf, 12.7062, 4.3027], series)


def ranks(values: Floats) -> Floats:
    """Ranks from 1, the smallest first; equal numbers share their mean rank."""
    return pl.Series(values).rank().to_numpy()


def pearson(a: Floats, b: Floats) -> tuple[float, float] | None:
    """Pearson's r with its two-sided p; None below three pairs or where a list is all equal."""
    from scipy.special import betainc

    if len(a) < 3 or not (np.ptp(a) > 0 and np.ptp(b) > 0):
        return None
    r = float(np.corrcoef(a, b)[0, 1].clip(-1, 1))
    return r, float(betainc(len(a) / 2 - 1, 0.5, (1 - r) * (1 + r)))


def kendall_tau_b(a: Floats, b: Floats) -> float | None:
    """Kendall's τ-b, which allows for ties; None where a list is all equal or too short.

    >>> kendall_tau_b(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0]))
    1.0
    """
    if len(a) < 2 or not (np.ptp(a) > 0 and np.ptp(b) > 0):
        return None
    one, other = (np.sign(x[:, None] - x) for x in (a, b))
    return float((one * other).sum() / sqrt(np.abs(one).sum() * np.abs(other).sum()))


def success_distribution(rates: Floats) -> Floats:
    """Distribution of the number of successes when trials share a way; [trials + 1].

    rates [trials, ways]: one way is drawn for all trials, then each trial succeeds independently
    with `rates[trial, way]`. Exact to rounding: the mean over ways of their characteristic
    functions, transformed back. With one way it is the Poisson binomial distribution.

    >>> success_distribution(np.array([[0.0, 1.0], [0.0, 1.0]])).round(3).tolist()
    [0.5, 0.0, 0.5]
    """
    trials, ways = rates.shape
    kinds, index = np.unique(rates, return_inverse=True)
    cells = index.reshape(rates.shape) + np.arange(ways) * len(kinds)
    counts = np.bincount(cells.ravel(), minlength=ways * len(kinds)).reshape(ways, -1)
    angles = np.exp(-2j * np.pi * np.arange((trials + 1) // 2 + 1) / (trials + 1)) - 1
    step = max(1, TABLE // max(len(kinds), ways))
    parts = []
    for start in range(0, len(angles), step):
        # never log 0: a half turn is not exact in floating point
        logs = np.log(1 + kinds[:, None] * angles[start : start + step])
        times = counts.astype(np.float64)
        parts.append(np.exp(times @ logs.real + 1j * (times @ logs.imag)).mean(axis=0))
    return _proper(np.fft.irfft(np.concatenate(parts), trials + 1))


def sum_distribution(parts: Sequence[Floats]) -> Floats:
    """Distribution of a sum of independent numbers."""
    size = sum(len(part) - 1 for part in parts) + 1
    length = 1 << size.bit_length()
    spectrum = np.ones(length // 2 + 1, dtype=np.complex128)
    for part in parts:
        spectrum *= np.fft.rfft(part, length)
    return _proper(np.fft.irfft(spectrum, length)[:size])


def _proper(distribution: Floats) -> Floats:
    positive = np.where(distribution < 1e-15, 0.0, distribution)  # rounding errors of 0
    return np.asarray(positive / positive.sum())
