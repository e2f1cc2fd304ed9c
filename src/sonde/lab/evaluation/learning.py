"""Learning told from recall: what a method that learns gains, beside its control.

The gain is over LAMA on the same facts. The control is the same method on random
weights, which hold no fact: what it gains was learnt from the facts that it was trained on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from sonde.lab.evaluation.asked import Asked, Model
from sonde.lab.evaluation.measured import MISSING, Measured, mean
from sonde.lab.worlds.truth import Bools

BASE = "lama"

SUBSETS: Mapping[str, str] = {
    "guessable": "guessable",
    "not_guessable": "not guessable",
    "untaught": "all untaught",
    "unshown": "never shown",
    "taught": "taught",
}


def controls_of(name: str, names: Sequence[str], controls: Collection[str]) -> tuple[str, ...]:
    """The controls that are named after an estimator: `optiprompt-random` after `optiprompt`.

    >>> names = ["optiprompt", "optiprompt-manual", "optiprompt-manual-random"]
    >>> controls_of("optiprompt", names, names[2:]), controls_of(names[1], names, names[2:])
    ((), ('optiprompt-manual-random',))
    """
    return tuple(one for one in names if one in controls and _owner(one, names, controls) == name)


def _owner(control: str, names: Sequence[str], controls: Collection[str]) -> str:
    named = [one for one in names if one not in controls and control.startswith(one + "-")]
    return max(named, key=len, default="")


def gains(model: Model, name: str) -> Iterator[tuple[str, Measured]]:
    """`gain.SUBSET` of a method, or of a control, over LAMA."""
    for subset in SUBSETS:
        yield f"gain.{subset}", _difference(model.asked.get(name), model.asked.get(BASE), subset)


def against(model: Model, name: str, control: str) -> Iterator[tuple[str, Measured]]:
    """`matched.SUBSET` of a control: what its method finds less what it finds itself, paired."""
    own, other = model.asked.get(name), model.asked.get(control)
    for subset in SUBSETS:
        yield f"matched.{subset}", _difference(own, other, subset)


def _difference(one: Asked | None, other: Asked | None, subset: str) -> Measured:
    """Share found by one less that found by the other, on the facts of both."""
    if one is None or other is None:
        return MISSING
    facts = [fact for fact in one.verdicts.facts if fact in other.rows]
    if not facts:
        return MISSING
    at = np.array([one.rows[fact] for fact in facts], dtype=np.int64)
    found, theirs = one.found(facts), other.found(facts)
    return mean(found, one.relation[at], _where(one, subset)[at], minus=theirs)


def _where(asked: Asked, subset: str) -> Bools:
    guessable: Bools = np.asarray(asked.guess != "", dtype=np.bool_)
    parts: dict[str, Bools] = {
        "guessable": ~asked.taught & guessable,
        "not_guessable": ~asked.taught & ~guessable,
        "untaught": ~asked.taught,
        "unshown": ~asked.shown,
        "taught": asked.taught,
    }
    return parts[subset]
