"""Tests of a difference between two measurements of the same things. Knows plain numbers alone.

Both are two-sided: p is the probability of a difference at least as large, in either direction, if
it were a matter of chance which of the two did better.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DRAWS = 10_000
ROUNDING = 1e-9


def mcnemar(first: Floats, second: Floats) -> float:
    """Exact McNemar test of outcomes of 0 or 1: only things on which the two differ count.

    >>> round(mcnemar(np.array([1.0, 1, 1, 1, 1, 0]), np.array([0.0, 0, 0, 0, 0, 0])), 4)
    0.0625
    """
    from scipy.special import bdtr

    better, worse = int((first > second).sum()), int((first < second).sum())
    if better + worse == 0:
        return 1.0
    return min(1.0, 2 * float(bdtr(min(better, worse), better + worse, 0.5)))


def sign_flip(differences: Floats, rng: np.random.Generator, draws: int = DRAWS) -> float:
    """Permutation test of a sum of differences: each may as well have had the other sign.

    Signs are drawn so many times; p is never smaller than 1 / (draws + 1). Differences of the same
    size are drawn together, by how many of them are positive.

    >>> round(sign_flip(np.array([0.5, 0.5, 0.25]), np.random.default_rng(0)), 1)
    0.2
    """
    sizes, counts = np.unique(np.abs(differences[differences != 0]), return_counts=True)
    if not len(sizes):
        return 1.0
    positive = rng.binomial(counts, 0.5, size=(draws, len(counts)))
    sums = (2 * positive - counts) @ sizes
    # sums of the same numbers in another order differ by rounding
    least = abs(float(differences.sum())) - ROUNDING * float(sizes @ counts)
    return (1 + int((np.abs(sums) >= least).sum())) / (1 + draws)
