"""The mean of a number that was measured several times over, such as once in every world.

Knows plain numbers alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from sonde.stats.clusters import clustered_mean

ROUNDING = 1e-12


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
