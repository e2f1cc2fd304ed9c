"""What every report needs of Student's, the chi-square and the binomial distribution.

They are summed here because a report is read in less time than it takes to import scipy.
"""

from __future__ import annotations

from functools import cache
from math import acos, comb, erfc, exp, lgamma, log, pi, sqrt

import numpy as np

Z = 1.959963984540054
"""So many standard errors the normal distribution's 95 % reach on each side."""

ROUNDING = 1e-12
STEPS = 50
MANY_TOSSES = 20_000
"""From which on counting the ways takes longer than importing scipy does."""


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
