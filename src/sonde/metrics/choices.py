"""Choosing between options: accuracy, probability mass on the right one, Accuracy@K.

Knows log-probabilities, nothing of prompts or facts. An option's log-probability is the sum over
its tokens, without regard to its length; probabilities are renormalised over the options. A tie
for the first place is wrong, whoever is in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sonde.core.scores import shares

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a model made of some options.

    `chosen` is the likeliest option (of several the first), `sure` its probability among the
    options, `mass` that of the right one, `rank` the right one's place (1 is best, ties against
    it), `tied` whether several options share the first place.
    """

    chosen: int
    sure: float
    mass: float
    rank: int
    tied: bool

    @property
    def right(self) -> bool:
        """Whether the right option is likelier than every other."""
        return self.rank == 1


def choose(logps: Sequence[float] | Floats, gold: int) -> Choice:
    """Judge one choice, given the log-probability of each option and which of them is right.

    >>> choose([-3.0, -1.0, -2.0], gold=1).right, choose([-1.0, -1.0], gold=1).right
    (True, False)
    """
    given = np.asarray(logps, dtype=np.float64)
    among = shares(given)
    better = given >= given[gold]
    return Choice(
        chosen=int(given.argmax()),
        sure=float(among.max()),
        mass=float(among[gold]),
        rank=int(better.sum()),
        tied=bool((given == given.max()).sum() > 1),
    )


def pooled(logps: Sequence[float] | Floats, own: Sequence[bool] | Bools) -> float:
    """Probability of several options together, such as all names of one thing.

    >>> round(pooled(np.log([0.2, 0.3, 0.5]), [True, True, False]), 6)
    0.5
    """
    return float(shares(logps)[np.asarray(own, dtype=np.bool_)].sum())


def choose_from(probabilities: Sequence[float], gold: int) -> Choice:
    """The same from probabilities, as published results keep them; they need not add up to 1."""
    with np.errstate(divide="ignore"):
        return choose(np.log(np.asarray(probabilities, dtype=np.float64)), gold)


def accuracy(choices: Sequence[Choice]) -> float:
    """Share of choices that are right; at least one choice."""
    return sum(choice.right for choice in choices) / len(choices)


def mass(choices: Sequence[Choice]) -> float:
    """Mean probability of the right option; at least one choice."""
    return sum(choice.mass for choice in choices) / len(choices)


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """Accuracy@K: among the choices that a model is at least K sure of, and how many these are.

    `accuracy` is None where none is left.
    """

    level: float
    retained: float
    accuracy: float | None


def accuracy_at(sure: Floats, right: Bools, level: float) -> At:
    """Accuracy among choices whose likeliest option has at least `level` probability.

    >>> accuracy_at(np.array([0.9, 0.4]), np.array([True, False]), 0.5)
    At(level=0.5, retained=0.5, accuracy=1.0)
    """
    kept = sure >= level
    found = float(right[kept].mean()) if kept.any() else None
    return At(level=level, retained=float(kept.mean()), accuracy=found)


def accuracy_at_over(sure: Floats, right: Bools, groups: Ints, level: float) -> At:
    """The same of every group, such as a relation, and then averaged over groups.

    A group of which nothing is left has a share, 0, and no accuracy to average.

    >>> accuracy_at_over(np.array([0.9, 0.4]), np.array([True, False]), np.array([0, 1]), 0.5)
    At(level=0.5, retained=0.5, accuracy=1.0)
    """
    parts = [groups == group for group in np.unique(groups)]
    found = [accuracy_at(sure[part], right[part], level) for part in parts]
    known = [one.accuracy for one in found if one.accuracy is not None]
    return At(
        level=level,
        retained=sum(one.retained for one in found) / len(found),
        accuracy=sum(known) / len(known) if known else None,
    )
