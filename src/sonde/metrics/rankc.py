"""How alike two rankings of the same candidates are: RankC, weighted towards the first ranks.

Of two rankings of N candidates it is the sum over j of w_j · s_j, where s_j is the share of the
first j of one that is also among the first j of the other, and the weights w_j = e^(N−j) / Σ_k
e^(N−k) add up to 1. Knows ranks, nothing of what is ranked.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import exp
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

FEWEST = 2
"""One candidate alone has no order."""


def consistency(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """RankC of two rankings, the first candidate of each in front; as it is defined.

    >>> consistency("abc", "abc"), round(consistency("ab", "ba"), 3)
    (1.0, 0.269)
    """
    n = len(one)
    weights = [exp(n - j) for j in range(1, n + 1)]
    shares = [len({*one[:j]} & {*other[:j]}) / j for j in range(1, n + 1)]
    total = sum(weights)
    return sum(weight / total * share for weight, share in zip(weights, shares, strict=True))


def consistencies(one: Floats, other: Floats, ranked: Bools, ties: tuple[Floats, Floats]) -> Floats:
    """RankC of many: rows of candidates' values, the higher the better; nan where too few count.

    `ranked` says which candidates of a row count. Of equal values the one with the lower number of
    `ties` comes first: a number for each candidate, on either side.
    """
    last = np.maximum(*(ranks(v, ranked, t) for v, t in zip((one, other), ties, strict=True)))
    counts = ranked.sum(axis=1)
    found = np.full(len(counts), np.nan)
    for n in np.unique(counts[counts >= FEWEST]).tolist():
        rows = np.flatnonzero(counts == n)
        # a candidate is among the first j of both from the later of its ranks on
        adds = np.append(_from_rank_on(n), 0.0)
        found[rows] = adds[np.where(ranked[rows], last[rows], n + 1) - 1].sum(axis=1)
    return found


def ranks(values: Floats, ranked: Bools, ties: Floats) -> NDArray[np.int64]:
    """The rank of each candidate in its row, from 1; those that do not count come last."""
    worth = np.where(ranked, -values, np.inf)
    order = np.lexsort((np.broadcast_to(ties, worth.shape), worth), axis=-1)
    places: NDArray[Any] = np.empty_like(order)
    np.put_along_axis(places, order, np.arange(1, order.shape[1] + 1)[None, :], axis=1)
    return places


def _from_rank_on(n: int) -> Floats:
    """Σ over j ≥ r of w_j / j, for every rank r up to n."""
    j = np.arange(1, n + 1)
    weights = np.exp(1.0 - j)
    return np.cumsum((weights / weights.sum() / j)[::-1])[::-1]
