"""95 % intervals: Wilson's for a share, a bootstrap within groups for averages over them."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from sonde.stats.resampling import DRAWS as DRAWS
from sonde.stats.resampling import resampled_sums

Floats = NDArray[np.float64]

Z = 1.959963984540054
MANY, MANY_KINDS = 20_000, 4096
"""Of more clusters than the first, in no more kinds than the second, kinds are resampled."""


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
    sums: Floats, sizes: Floats, rng: np.random.Generator, draws: int = DRAWS
) -> Floats:
    """Means under resampling of whole clusters, given each cluster's sum and size.

    sums [clusters, k] to [draws, k]: every column is resampled alike; or [clusters] to [draws].
    Every cluster of size one is the ordinary bootstrap of single values.
    """
    columns = np.column_stack([sums, sizes])
    kinds, counts = columns, None
    if len(sums) > MANY:
        kinds, counts = np.unique(columns, axis=0, return_counts=True)
    if counts is not None and len(kinds) <= MANY_KINDS:
        totals = rng.multinomial(len(sums), counts / len(sums), size=draws) @ kinds
    else:
        totals = resampled_sums(columns, rng, draws)
    means = totals[:, :-1] / totals[:, -1:]
    return np.asarray(means if sums.ndim > 1 else means[:, 0], dtype=np.float64)


def percentile_interval(draws: Floats) -> tuple[float, float]:
    """The middle 95 % of some draws."""
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)
