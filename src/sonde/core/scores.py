"""What scored options amount to: the log-probability of each as a whole, and its share among them.

Every comparison of options goes through here. Knows numbers alone, nothing of what is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sonde.core.answers import Scored
from sonde.core.errors import NotFinite

Floats = NDArray[np.float64]
Normalise = Literal["none", "tokens"]


def option_logps(answer: Scored, normalise: Normalise = "none", *, suffix: bool = True) -> Floats:
    """Log-probability of each option up to the end of the text: summed, or averaged per token.

    Without `suffix` only the option's own tokens count, not those of the text after it.

    >>> answer = Scored(options=("a", "b"), logps=((-1.0, -2.0), (-2.5,)))
    >>> option_logps(answer).tolist(), option_logps(answer, "tokens").tolist()
    ([-3.0, -2.5], [-1.5, -2.5])
    """
    rows = answer.logps
    if suffix and answer.suffix_logps:
        rows = tuple(a + b for a, b in zip(answer.logps, answer.suffix_logps, strict=True))
    sums = np.array([sum(row) for row in rows], dtype=np.float64)
    return sums if normalise == "none" else sums / [len(row) for row in rows]


def shares(logps: Sequence[float] | Floats) -> Floats:
    """Probabilities renormalised over the options, which are the last axis.

    A probability of zero (-inf) is a share of zero; where all are, shares are equal. Models give no
    such number (a run refuses it), published tables do. What is not a number is never compared.

    >>> shares([-1000.0, -1000.0]).tolist(), shares([0.0, -np.inf]).tolist()
    ([0.5, 0.5], [1.0, 0.0])
    """
    given = np.asarray(logps, dtype=np.float64)
    top = given.max(axis=-1, keepdims=True)
    sound(top.flat)
    with np.errstate(invalid="ignore"):
        weights = np.exp(np.where(given == top, 0.0, given - top))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def sound(logps: Iterable[float]) -> None:
    """Refuse to compare what is no log-probability: NaN and +inf."""
    if not all(logp < inf for logp in logps):
        raise NotFinite("an answer has a log-probability that is not a number")
