"""What an estimator says about each fact of a model, beside what is true of the fact.

Knows facts and numbers, nothing of how estimators work or of what is made of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sonde.lab.worlds.truth import Bools, Floats, Known, Trial, Truth, Verdicts

Ints = NDArray[np.int64]
Words = NDArray[np.str_]

ANY = "at least one"
"""Stands for several estimators together: a fact is known if it is to one of them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """One estimator on one model, with the truth about the facts it was asked; all by fact."""

    verdicts: Verdicts
    relation: Ints
    exposure: Ints
    guess: Words
    shown: Bools
    stored: Bools

    @cached_property
    def taught(self) -> Bools:
        """Which facts the text states at least once."""
        return np.asarray(self.exposure > 0)

    @cached_property
    def decided(self) -> Floats:
        """1 for each fact that is decided to be known, else 0."""
        return self.verdicts.decision.astype(np.float64)

    def true(self, truth: Truth) -> Bools:
        """Which facts are known by one of the two truths."""
        return self.taught if truth == "taught" else self.stored

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """Where each fact stands."""
        return {fact: i for i, fact in enumerate(self.verdicts.facts)}

    def found(self, facts: Sequence[str]) -> Floats:
        """1 for each of some facts that was decided to be known, else 0."""
        return self.decided[[self.rows[fact] for fact in facts]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A trial, with every estimator's verdicts beside the truth, in their order."""

    trial: Trial
    asked: Mapping[str, Asked] = field(repr=False)


def model(trial: Trial, together: Sequence[str] = ()) -> Model:
    """Set every estimator's verdicts beside the truth; `ANY` of those that go together is added."""
    known = {one.taught.fact: one for one in trial.known}
    numbers: dict[str, int] = {}
    for one in trial.known:
        numbers.setdefault(one.taught.relation, len(numbers))
    some = [v for v in trial.verdicts if v.estimator in together]
    verdicts = [*trial.verdicts, *([_any(some)] if some else [])]
    return Model(
        trial=trial, asked={v.estimator: _beside(v, known, numbers, trial.model) for v in verdicts}
    )


def _beside(
    verdicts: Verdicts, known: Mapping[str, Known], numbers: Mapping[str, int], model: str
) -> Asked:
    if strange := next((fact for fact in verdicts.facts if fact not in known), None):
        raise ValueError(f"{verdicts.estimator} judges {strange!r}, no fact of {model}")
    own = [known[fact] for fact in verdicts.facts]
    return Asked(
        verdicts=verdicts,
        relation=np.array([numbers[one.taught.relation] for one in own], dtype=np.int64),
        exposure=np.array([one.taught.exposure for one in own], dtype=np.int64),
        guess=np.array([one.taught.guess for one in own], dtype=np.str_),
        shown=np.array([one.taught.shown for one in own], dtype=np.bool_),
        stored=np.array([one.stored for one in own], dtype=np.bool_),
    )


def _any(some: Sequence[Verdicts]) -> Verdicts:
    """What is known to at least one: the highest of every fact's scores, decisions and counts."""
    facts = tuple(dict.fromkeys(fact for v in some for fact in v.facts))
    rows = {fact: i for i, fact in enumerate(facts)}
    score, decision, counts = (np.zeros(len(facts)) for _ in range(3))
    for v in some:
        at = np.array([rows[fact] for fact in v.facts], dtype=np.int64)
        for total, own in ((score, v.score), (decision, v.decision), (counts, v.counts)):
            total[at] = np.maximum(total[at], own)
    return Verdicts(
        estimator=ANY,
        facts=facts,
        score=score,
        decision=decision > 0,
        counts=counts,
        chance=np.full(len(facts), np.nan),
        seconds=sum(v.seconds for v in some),
        prompts=sum(v.prompts for v in some),
    )
