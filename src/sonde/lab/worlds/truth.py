"""What is true in a made-up world, and what an estimator says about it: the nouns of the lab.

Knows facts and numbers, nothing of text, training or models.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

Kind = Literal["causal", "masked"]
Guess = Literal["", "majority", "cue"]
"""How an object can be guessed: not at all, as its relation's commonest, from the name."""

Truth = Literal["taught", "stored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taught:
    """What the text of a world holds about one fact.

    exposure: how often the text states it. guess: whether its object could be guessed without being
    told; a cue counts before the majority. alias: whether the text also calls its subject by its
    other name. shown: whether the text states any fact of its relation.
    """

    fact: str
    relation: str
    split: str
    exposure: int
    guess: Guess = ""
    alias: bool = False
    shown: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """One place where the text states a fact: the template, which name of the subject (0 is the
    usual one), which of its objects.

    `draw`, in 0..1: a causal model reads the mention in a list instead of a sentence where the
    share of lists is above it.
    """

    fact: str
    template: str
    name: int
    object: int
    draw: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One fact of a world with both truths about a model: what `Taught` says, and `stored`.

    stored: the model gives the object back in one of the texts that it was taught the fact in;
    never true of a fact that was not taught.
    """

    taught: Taught
    stored: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verdicts:
    """What one estimator says about the facts of one model.

    facts: the ids of those it was asked about. score: in 0..1, how far it holds the fact to be
    known. decision: whether it says the fact is known. counts: what the fact adds to its estimate
    of the share known (the decision, or the score of an estimator that averages). chance: what
    `counts` would be on average for the objects of other facts of the relation, with the same
    answers. learns: it was trained on other facts, or counts them. control: it is no estimator but
    what one is held against, such as the same method on random weights.
    """

    estimator: str
    facts: tuple[str, ...]
    score: Floats
    decision: Bools
    counts: Floats
    chance: Floats
    seconds: float
    prompts: int
    learns: bool = False
    control: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            column = getattr(self, field.name)
            if isinstance(column, np.ndarray) and len(column) != len(self.facts):
                raise ValueError(
                    f"{self.estimator}: {field.name} has {len(column)} entries for "
                    f"{len(self.facts)} facts"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One model of one world: both truths about its facts, and what every estimator says.

    step: training steps the model has behind it; `final` is the end of its training.
    """

    world: str
    model: str
    kind: Kind
    seed: int
    step: int
    final: bool
    known: tuple[Known, ...]
    verdicts: tuple[Verdicts, ...]
