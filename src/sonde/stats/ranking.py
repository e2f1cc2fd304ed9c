"""How well a score ranks one sort of things above the other. Knows plain numbers alone."""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from sonde.stats.intervals import Z, wilson

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


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
    from scipy.stats import rankdata

    return np.asarray(rankdata(score), dtype=np.float64)


def _variance(values: Floats) -> float:
    return float(values.var(ddof=1)) if len(values) > 1 else 0.0


def _logistic(x: float) -> float:
    return 1 / (1 + exp(-x)) if x > -700 else 0.0
