"""How far two lists of numbers go together. Knows nothing of what they are numbers of."""

from __future__ import annotations

from math import isnan

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def kendall_tau_b(a: Floats, b: Floats) -> float | None:
    """Kendall's τ-b, which allows for ties, in -1..1; None where a list is all equal or too short.

    >>> kendall_tau_b(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0]))
    1.0
    """
    from scipy.stats import kendalltau

    if not _comparable(a, b):
        return None
    return _known(float(kendalltau(a, b, variant="b").statistic))


def _comparable(a: Floats, b: Floats) -> bool:
    if len(a) != len(b):
        raise ValueError(f"{len(a)} numbers cannot be paired with {len(b)}")
    return len(a) > 1 and bool(np.ptp(a) > 0) and bool(np.ptp(b) > 0)


def _known(value: float) -> float | None:
    return None if isnan(value) else value
