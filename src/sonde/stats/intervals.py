"""95 % intervals: Wilson's for a share, a bootstrap within groups for averages over them."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DRAWS = 2000
Z = 1.959963984540054
BLOCK = 4_000_000


def wilson(successes: float, n: int) -> tuple[float, float]:
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
    p1, p2 = float(first.mean()), float(second.mean())
    (low1, high1), (low2, high2) = wilson(p1 * n, n), wilson(p2 * n, n)
    spread = sqrt(p1 * (1 - p1) * p2 * (1 - p2))
    phi = (float((first * second).mean()) - p1 * p2) / spread if spread else 0.0
    down = (p1 - low1) ** 2 - 2 * phi * (p1 - low1) * (high2 - p2) + (high2 - p2) ** 2
    up = (high1 - p1) ** 2 - 2 * phi * (high1 - p1) * (p2 - low2) + (p2 - low2) ** 2
    return p1 - p2 - sqrt(max(down, 0.0)), p1 - p2 + sqrt(max(up, 0.0))


def resampled_means(groups: Sequence[Floats], seed: int, draws: int = DRAWS) -> Floats:
    """Means of each group resampled with replacement within itself, [draws, groups].

    One value per fact and one group per relation: facts are drawn, relations stay. Each group has
    its own random stream, so that adding a group moves no other.
    """
    columns = [
        _means(group, np.random.default_rng([seed, i]), draws) for i, group in enumerate(groups)
    ]
    return np.stack(columns, axis=1)


def percentile_interval(draws: Floats) -> tuple[float, float]:
    """The middle 95 % of some draws."""
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)


def _means(values: Floats, rng: np.random.Generator, draws: int) -> Floats:
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= 8:  # few values: draw how often each comes instead of which fact comes
        picked = rng.multinomial(len(values), counts / len(values), size=draws)
        return np.asarray(picked @ distinct / len(values), dtype=np.float64)
    step = max(1, BLOCK // len(values))
    blocks = [
        values[rng.integers(0, len(values), (min(step, draws - start), len(values)))].mean(axis=1)
        for start in range(0, draws, step)
    ]
    return np.concatenate(blocks)
