"""How far repeated measurements lie apart."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np


def deviation(values: Sequence[float]) -> tuple[float, float, float]:
    """Standard deviation of at least two measurements, with the ends of its 95 % interval.

    The interval takes them for draws from one normal distribution; with few of them it is wide.

    >>> tuple(round(x, 3) for x in deviation([0.4, 0.5, 0.6]))
    (0.1, 0.052, 0.628)
    """
    from scipy.special import chdtri

    free = len(values) - 1
    found = float(np.std(values, ddof=1))
    low, high = (found * sqrt(free / chdtri(free, tail)) for tail in (0.025, 0.975))
    return found, low, high
