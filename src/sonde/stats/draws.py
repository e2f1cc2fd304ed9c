"""Exact distributions of numbers of successes, and draws from them.

Knows success rates and counts, nothing of prompts or models. A distribution is an array of
probabilities: entry k is the probability of k successes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.fft import irfft, rfft
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROUNDING = 1e-15
NOTHING = 1e-300
STEPS = 2**12
"""Of equal width, by which numbers are drawn; a power of two, so that products are exact."""

TOGETHER = 512
TABLE = 2_000_000


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
    # most steps lie within one number; in the others one has to look closer
    first = np.searchsorted(below, np.arange(STEPS) / STEPS, side="right")
    found = first[(given * STEPS).astype(np.int64)]
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
    kept = np.where(distribution < ROUNDING, 0.0, distribution)
    return np.asarray(kept / kept.sum())


def _first(holds: Callable[[int], bool], last: int) -> int:
    """The smallest number in 0..last for which something holds that stays true from there on."""
    low, high = 0, last
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
