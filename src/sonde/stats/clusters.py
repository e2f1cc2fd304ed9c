"""A mean over things that come in clusters, with an interval that allows for it."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def clustered_mean(values: Floats, clusters: Ints) -> tuple[float, float, float]:
    """Mean with the ends of its 95 % interval: Student's, from the spread between clusters.

    For where a bootstrap would take too long. A single cluster says nothing of others: its interval
    has no ends.

    >>> clustered_mean(np.array([1.0, 1.0]), np.array([0, 0]))
    (1.0, -inf, inf)
    """
    from scipy.special import stdtrit

    mean = float(values.mean())
    _, index = np.unique(clusters, return_inverse=True)
    count = int(index.max()) + 1
    if count == 1:
        return mean, -inf, inf
    off = np.bincount(index, weights=values - mean)
    spread = sqrt(float(off @ off) * count / (count - 1)) / len(values)
    reach = float(stdtrit(count - 1, 0.975)) * spread
    return mean, mean - reach, mean + reach
