"""How far two lists of numbers go together, and how well a score ranks one sort of things above
the other. Knows nothing of what they are numbers of."""

from __future__ import annotations

from math import exp, isnan, log, sqrt

import numpy as np
from numpy.typing import NDArray

from sonde.stats.distributions import Z
from sonde.stats.intervals import wilson

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

FEWEST = 3
"""Pairs that a line needs: through two points there is always one."""


def kendall_tau_b(a: Floats, b: Floats) -> float | None:
    """Kendall's τ-b, which allows for ties, in -1..1; None where a list is all equal or too short.

    >>> kendall_tau_b(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0]))
    1.0
    """
    if not _comparable(a, b):
        return None
    one, other = ((x[:, None] > x).astype(np.int8) - (x[:, None] < x) for x in (a, b))
    untied = np.count_nonzero(one), np.count_nonzero(other)
    tau = int((one * other).sum(dtype=np.int64)) / sqrt(untied[0] * untied[1])
    return max(-1.0, min(1.0, tau))


def pearson(a: Floats, b: Floats) -> tuple[float, float] | None:
    """Pearson's r in -1..1 with its two-sided p; None below three pairs or where a list is equal.

    >>> r, p = pearson(np.array([1.0, 2.0, 3.0]), np.array([6.0, 4.0, 2.0]))
    >>> round(r, 6), round(p, 6)
    (-1.0, 0.0)
    """
    from scipy.special import betainc

    if len(a) < FEWEST or not _comparable(a, b):
        return None
    one, other = (x - x.mean() for x in (a, b))
    r = float(np.dot(one / np.linalg.norm(one), other / np.linalg.norm(other)))
    r = max(-1.0, min(1.0, r))
    return None if isnan(r) else (r, float(betainc(len(a) / 2 - 1, 0.5, (1 - r) * (1 + r))))


def pearson_by_row(a: Floats, b: Floats) -> Floats:
    """Pearson's r of two tables row by row, [rows, n] to [rows]; nan where a row is all equal."""
    one, other = (x - x.mean(axis=1, keepdims=True) for x in (a, b))
    spread = np.sqrt((one**2).sum(axis=1) * (other**2).sum(axis=1))
    known = (np.ptp(a, axis=1) > 0) & (np.ptp(b, axis=1) > 0) & (spread > 0)
    made = np.divide((one * other).sum(axis=1), spread, out=np.full(len(a), np.nan), where=known)
    return np.asarray(np.clip(made, -1.0, 1.0))


def ranks_by_row(a: Floats) -> Floats:
    """Each row's numbers by their ranks, 1 is the smallest; equal ones share their mean rank."""
    order = np.argsort(a, axis=1, kind="stable")
    sorted = np.take_along_axis(a, order, axis=1)
    places = np.broadcast_to(np.arange(a.shape[1]), a.shape)
    edge = np.ones((len(a), 1), dtype=np.bool_)
    differ = sorted[:, 1:] != sorted[:, :-1]
    first = np.maximum.accumulate(np.where(np.hstack([edge, differ]), places, 0), axis=1)
    ends = np.where(np.hstack([differ, edge]), places, a.shape[1])
    last = np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]
    ranks = np.empty(a.shape)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=1)
    return ranks


def _comparable(a: Floats, b: Floats) -> bool:
    if len(a) != len(b):
        raise ValueError(f"{len(a)} numbers cannot be paired with {len(b)}")
    return len(a) > 1 and bool(np.ptp(a) > 0) and bool(np.ptp(b) > 0)


def auroc(score: Floats, positive: Bools) -> float | None:
    """Area under the ROC curve: how often a positive scores above a negative, a tie being half.

    Worked out from midranks; None where there are only positives or only negatives.

    >>> auroc(np.array([0.1, 0.4, 0.4, 0.9]), np.array([False, False, True, True]))
    0.875
    """
    ours, theirs = int(positive.sum()), int((~positive).sum())
    if not ours or not theirs:
        return None
    least = ours * (ours + 1) / 2
    return float((_ranks(score)[positive].sum() - least) / (ours * theirs))


def auroc_interval(score: Floats, positive: Bools) -> tuple[float, float]:
    """The ends of the 95 % interval of an AUROC that is measured: DeLong's, made on the logit.

    Where the score parts the two perfectly, or tells nothing at all, nothing varies: then that of a
    share of as many independent trials as the rarer of the two has members.

    >>> tuple(round(x, 2) for x in auroc_interval(np.arange(20.0), np.arange(20) > 9))
    (0.72, 1.0)
    """
    value = auroc(score, positive)
    if value is None:
        raise ValueError("an AUROC needs positives and negatives")
    ranks, ours, theirs = _ranks(score), int(positive.sum()), int((~positive).sum())
    above = (ranks[positive] - _ranks(score[positive])) / theirs
    below = (ranks[~positive] - _ranks(score[~positive])) / ours
    spread = sqrt(_variance(above) / ours + _variance(below) / theirs)
    if not spread or not 0 < value < 1:
        few = min(ours, theirs)
        return wilson(value * few, few)
    centre, reach = log(value / (1 - value)), Z * spread / (value * (1 - value))
    return _logistic(centre - reach), _logistic(centre + reach)


def _ranks(score: Floats) -> Floats:
    return np.asarray(ranks_by_row(score[None])[0])


def _variance(values: Floats) -> float:
    return float(values.var(ddof=1)) if len(values) > 1 else 0.0


def _logistic(x: float) -> float:
    return 1 / (1 + exp(-x)) if x > -700 else 0.0
