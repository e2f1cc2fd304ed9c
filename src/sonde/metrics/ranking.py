"""How options are ranked: the share of (correct, wrong) pairs in which the correct one is likelier.

`ranked` looks at one prompt and is what `ranked_each`, which takes many at once, is held against.
Knows numbers alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


def ranked(values: Sequence[float], right: Sequence[bool]) -> float | None:
    """Of one prompt; ties count against the correct option. None without a pair.

    >>> ranked([0.5, 0.3, 0.2], [False, True, False]), ranked([0.5, 0.5], [True, False])
    (0.5, 0.0)
    """
    correct = list(compress(values, right))
    wrong = list(compress(values, (not own for own in right)))
    pairs = [one > other for one in correct for other in wrong]
    return sum(pairs) / len(pairs) if pairs else None


def ranked_each(values: Floats, right: Bools, owners: Ints, count: int) -> Floats:
    """Of `count` prompts whose options are laid end to end, `owners` being the prompt of each.

    nan for a prompt without a pair.
    """
    places, wrong = np.flatnonzero(right), np.flatnonzero(~right)
    correct = np.bincount(owners[places], minlength=count)
    pairs = np.bincount(owners[wrong], minlength=count) * correct
    number = np.arange(len(places)) - (np.cumsum(correct) - correct)[owners[places]]
    own, value = owners[wrong], values[wrong]
    won = np.zeros(count)
    for each in range(int(correct.max(initial=0))):  # the first correct option of all, the second
        left = correct[own] > each
        own, value = own[left], value[left]
        target, at = np.empty(count), places[number == each]
        target[owners[at]] = values[at]
        won += np.bincount(own[value < target[own]], minlength=count)
    return np.asarray(np.divide(won, pairs, out=np.full(count, np.nan), where=pairs > 0))
