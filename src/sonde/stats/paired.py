"""Tests of a difference between two measurements, of the same things or of two samples of them.

Knows plain numbers alone. All are two-sided: p is the probability of a difference at least as
large, in either direction, if it were a matter of chance which of the two did better.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from sonde.stats.distributions import at_most

Floats = NDArray[np.float64]

DRAWS = 10_000
ROUNDING = 1e-9
PICKS = 4_000_000


def mcnemar(first: Floats, second: Floats) -> float:
    """Exact McNemar test of outcomes of 0 or 1: only things on which the two differ count.

    >>> round(mcnemar(np.array([1.0, 1, 1, 1, 1, 0]), np.array([0.0, 0, 0, 0, 0, 0])), 4)
    0.0625
    """
    better, worse = int((first > second).sum()), int((first < second).sum())
    return min(1.0, 2 * at_most(min(better, worse), better + worse))


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
    blocks = [
        (2 * rng.binomial(counts, 0.5, size=(size, len(counts))) - counts) @ sizes
        for size in _blocks(draws, len(counts))
    ]
    sums = np.concatenate(blocks)
    # sums of the same numbers in another order differ by rounding
    least = abs(float(differences.sum())) - ROUNDING * float(sizes @ counts)
    return (1 + int((np.abs(sums) >= least).sum())) / (1 + draws)


def student(differences: Floats) -> float:
    """Student's test of a mean difference over at least two repeats, such as worlds.

    Repeats that all differ by the same have no spread to go by: then the sign test's.

    >>> round(student(np.array([0.1, 0.2, 0.3])), 3), student(np.array([0.5, 0.5]))
    (0.074, 0.5)
    """
    from scipy.special import stdtr

    count, mean = len(differences), abs(float(differences.mean()))
    spread = float(differences.std(ddof=1)) / sqrt(count)
    if spread <= ROUNDING:
        return 1.0 if mean <= ROUNDING else min(1.0, 2 * 0.5**count)
    return 2 * float(stdtr(count - 1, -mean / spread))


def swapped(
    first: Sequence[Floats], second: Sequence[Floats], rng: np.random.Generator, draws: int = DRAWS
) -> float:
    """Permutation test of a difference between two means over groups of ratios of sums.

    first[g] and second[g] [things, 2]: what each thing of a group adds to part and whole. A thing
    may as well have had the two the other way round; so many times each is swapped or not.

    >>> ones, halves = np.ones((9, 2)), np.column_stack([np.full(9, 0.5), np.ones(9)])
    >>> swapped([ones], [halves], np.random.default_rng(0)) < 0.01
    True
    """
    found = np.zeros(draws + 1)
    for one, other in zip(first, second, strict=True):
        sizes = _blocks(draws, len(one))
        turned = [rng.integers(0, 2, (size, len(one))) @ (other - one) for size in sizes]
        moved = np.vstack([np.zeros(2), *turned])  # the first as they are
        ours, theirs = one.sum(axis=0) + moved, other.sum(axis=0) - moved
        with np.errstate(invalid="ignore", divide="ignore"):
            found += (ours[:, 0] / ours[:, 1] - theirs[:, 0] / theirs[:, 1]) / len(first)
    # what cannot be told counts as no less
    less = np.abs(found[1:]) < abs(found[0]) - ROUNDING
    return (1 + int((~less).sum())) / (1 + draws)


def shuffled(first: Floats, second: Floats, rng: np.random.Generator, draws: int = DRAWS) -> float:
    """Permutation test of a difference between the means of two samples of different things.

    Values are dealt anew to the two, so many times; equal ones are dealt together, by how many of
    them the first gets. Instead of values they may be [things, 2]: the sum and the number of the
    values of each thing, which are dealt together.

    >>> round(shuffled(np.array([1.0, 1, 1]), np.array([0.0, 0, 0]), np.random.default_rng(0)), 1)
    0.1
    """
    if first.ndim == 1:
        first, second = (np.column_stack([of, np.ones(len(of))]) for of in (first, second))
    kinds, counts = np.unique(np.concatenate([first, second]), axis=0, return_counts=True)
    dealt = rng.multivariate_hypergeometric(counts, len(first), size=draws, method="marginals")
    ours = np.vstack([first.sum(axis=0), dealt @ kinds])
    theirs = counts @ kinds - ours
    apart = np.abs(ours[:, 0] / ours[:, 1] - theirs[:, 0] / theirs[:, 1])
    return (1 + int((apart[1:] >= apart[0] - ROUNDING).sum())) / (1 + draws)


def _blocks(draws: int, width: int) -> list[int]:
    """Draws of so many numbers each, in parts that fit into memory."""
    step = max(1, PICKS // width)
    return [min(step, draws - start) for start in range(0, draws, step)]


def holm(found: Sequence[float]) -> list[float]:
    """p values corrected for how many there are, in the order given.

    >>> [round(p, 2) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    made, least = [1.0] * len(found), 0.0
    for k, i in enumerate(sorted(range(len(found)), key=lambda i: found[i])):
        least = max(least, min(1.0, (len(found) - k) * found[i]))
        made[i] = least
    return made
