"""Distributions: Student's, chi-square and binomial, and exact ones of numbers of successes.

The first are what every report needs, summed here because a report is read in less time than it
takes to import scipy. From the others numbers are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import acos, comb, erfc, exp, lgamma, log, pi, sqrt

import numpy as np
from numpy.fft import irfft, rfft
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Z = 1.959963984540054
"""So many standard errors the normal distribution's 95 % reach on each side."""

ROUNDING = 1e-12
STEPS = 50
MANY_TOSSES = 20_000
"""From which on counting the ways takes longer than importing scipy does."""

IMPOSSIBLE = 1e-15
"""What rounding leaves of a probability that is none."""

NOTHING = 1e-300
PLACES = 2**12
"""Of equal width, by which numbers are drawn; a power of two, so that products are exact."""

TOGETHER = 512
TABLE = 2_000_000


@cache
def student_reach(free: int) -> float:
    """How many standard errors Student's 95 % interval reaches, with so many degrees of freedom.

    Newton's steps from the normal distribution's upwards, on the share within (Abramowitz and
    Stegun's Handbook, 26.7.3 and 26.7.4).

    >>> round(student_reach(1), 3), round(student_reach(29), 3)
    (12.706, 2.045)
    """
    height = exp(lgamma((free + 1) / 2) - lgamma(free / 2)) / sqrt(free * pi)
    reach, moved = Z, Z
    while moved > ROUNDING * reach:  # each step falls short, until rounding ends them
        cosine = sqrt(free / (free + reach * reach))
        moved = (0.95 - _within(free, cosine)) / (2 * height * cosine ** (free + 1))
        reach += moved
    return reach


def _within(free: int, cosine: float) -> float:
    """The share of Student's distribution within √free times the tangent that goes with it."""
    odd = free % 2
    steps = np.arange(2, free - odd, 2, dtype=np.float64)
    ratios = (steps - 1 + odd) / (steps + odd)
    terms = 1 + float(np.cumprod(ratios * cosine**2).sum()) if free > 1 else 0.0
    within = sqrt(1 - cosine * cosine) * terms
    return 2 / pi * (acos(cosine) + within * cosine) if odd else within


@cache
def chi_square(free: int, upper: bool) -> float:
    """Where 2.5 % of the chi-square distribution lie above, or below (26.4.4 and 26.4.5 there).

    >>> round(chi_square(1, True), 3), round(chi_square(10, False), 3)
    (5.024, 3.247)
    """
    above, spread = 0.025 if upper else 0.975, sqrt(2 / (9 * free))
    # Wilson and Hilferty's; with few degrees of freedom the first term of a series
    found = free * (1 - spread**2 + (Z if upper else -Z) * spread) ** 3
    found = max(found, 2 * (0.025 * exp(lgamma(free / 2 + 1))) ** (2 / free) if free < 9 else 0.0)
    for _ in range(STEPS):
        half = found / 2
        density = exp((free / 2 - 1) * log(half) - half - lgamma(free / 2)) / 2
        moved = (_beyond(free, half) - above) / density
        found += moved
        if abs(moved) < ROUNDING * found:
            break
    return found


def _beyond(free: int, half: float) -> float:
    """The share of the chi-square distribution above twice a number."""
    odd = free % 2
    steps = np.arange(1, free // 2) + odd / 2
    first = -half + odd * (log(half) / 2 - lgamma(1.5))
    logs = first + np.cumsum(np.append(0.0, log(half) - np.log(steps)))
    terms = float(np.exp(logs).sum()) if free > 1 else 0.0
    return terms + (erfc(sqrt(half)) if odd else 0.0)


def at_most(heads: int, tosses: int) -> float:
    """The probability of so many heads, at most half of the tosses, or fewer.

    >>> at_most(1, 3)
    0.5
    """
    if tosses > MANY_TOSSES:
        from scipy.special import bdtr

        return float(bdtr(heads, tosses, 0.5))
    fewer = np.arange(heads, 0, -1.0)
    ways, bits = comb(tosses, heads), max(0, tosses - 1000)
    most = float(ways >> bits) / 2.0 ** (tosses - bits)  # a float holds no number of 1024 bits
    return most * (1 + float(np.cumprod(fewer / (tosses - fewer + 1)).sum()))


def successes(rates: Floats) -> Floats:
    """Distribution of the number of successes when trials share a way; [trials + 1].

    rates [trials, ways]: one way is drawn for all trials, each as likely; then every trial succeeds
    on its own with `rates[trial, way]`. Exact to rounding: the mean over the ways of their
    characteristic functions, transformed back.

    >>> successes(np.array([[0.0, 1.0], [0.0, 1.0]])).round(3).tolist()
    [0.5, 0.0, 0.5]
    """
    trials, ways = rates.shape
    kinds, index = np.unique(rates, return_inverse=True)
    cells = index.reshape(rates.shape) + np.arange(ways) * len(kinds)
    counts = np.bincount(cells.ravel(), minlength=ways * len(kinds)).reshape(ways, len(kinds))
    turns = np.exp(-2j * np.pi * np.arange((trials + 1) // 2 + 1) / (trials + 1)) - 1
    step = max(1, TABLE // max(len(kinds), ways))
    parts = [_spectrum(counts, kinds, turns[i : i + step]) for i in range(0, len(turns), step)]
    return _proper(irfft(np.concatenate(parts), trials + 1))


def independent(rates: Floats) -> Floats:
    """Distribution of the number of successes of independent trials: a Poisson binomial.

    >>> independent(np.array([0.5, 0.5])).round(3).tolist()
    [0.25, 0.5, 0.25]
    """
    # sorted, because equal rates in one part are worked out once
    parts = np.array_split(np.sort(rates), max(1, -(-len(rates) // TOGETHER)))
    return summed([successes(part[:, None]) for part in parts])


def summed(parts: Sequence[Floats]) -> Floats:
    """Distribution of a sum of independent numbers."""
    size = sum(len(part) - 1 for part in parts) + 1
    length = 1 << size.bit_length()
    spectrum = np.ones(length // 2 + 1, dtype=np.complex128)
    for part in parts:
        spectrum *= rfft(part, length)
    return _proper(irfft(spectrum, length)[:size])


def drawn(distribution: Floats, n: int, rng: np.random.Generator) -> Ints:
    """n independent numbers from a distribution."""
    below = np.cumsum(distribution)
    below /= below[-1]
    given = rng.random(n)
    # most places lie within one number; in the others one has to look closer
    first = np.searchsorted(below, np.arange(PLACES) / PLACES, side="right")
    found = first[(given * PLACES).astype(np.int64)]
    beyond = np.flatnonzero(below[found] <= given)
    found[beyond] = np.searchsorted(below, given[beyond], side="right")
    return found


def range_interval(distribution: Floats, n: int) -> tuple[int, int]:
    """The middle 95 % of what max − min of n draws can be; exact.

    >>> range_interval(np.array([0.5, 0.5]), 50)
    (1, 1)
    """
    within = np.flatnonzero(distribution)
    kept = distribution[within[0] : within[-1] + 1]
    below = np.concatenate([[0.0], np.cumsum(kept) / kept.sum()])

    least = NOTHING ** (1 / n)

    def at_most(width: int) -> float:
        # the smallest is exactly a, the largest no more than a + width
        top = below[np.minimum(np.arange(len(kept)) + width + 1, len(kept))]
        near = np.flatnonzero(top - below[:-1] > least)
        none_below, none_at = (top - below[:-1])[near], np.maximum(top - below[1:], 0.0)[near]
        return float((none_below**n - none_at**n).sum())

    last = len(kept) - 1
    return _first(lambda w: at_most(w) >= 0.025, last), _first(lambda w: at_most(w) >= 0.975, last)


def _spectrum(counts: Ints, kinds: Floats, turns: NDArray[np.complex128]) -> NDArray[np.complex128]:
    # never log 0: a half turn is not exact in floating point
    logs = np.log(1 + kinds[:, None] * turns)
    times = counts.astype(np.float64)
    return np.asarray(np.exp(times @ logs.real + 1j * (times @ logs.imag)).mean(axis=0))


def _proper(distribution: Floats) -> Floats:
    kept = np.where(distribution < IMPOSSIBLE, 0.0, distribution)
    return np.asarray(kept / kept.sum())


def _first(holds: Callable[[int], bool], last: int) -> int:
    """The smallest number in 0..last for which something holds that stays true from there on."""
    low, high = 0, last
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
