"""What is true in a made-up world, where its text says so, and what an estimator says about it.

The nouns of the lab. Knows facts and numbers, nothing of sentences, training or models.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

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


USUAL, OTHER = 0, 1
"""Which of a subject's names."""


def drawn(taught: Taught, used: tuple[str, ...], objects: int, seed: int) -> tuple[Mention, ...]:
    """Every mention of a fact: the used templates in turn, its objects in turn, some aliases."""
    if not taught.exposure:
        return ()
    random = Random(f"{seed}:mentions:{taught.fact}")
    others = taught.exposure // 2 if taught.alias else 0
    names = [OTHER] * others + [USUAL] * (taught.exposure - others)
    random.shuffle(names)
    templates = _dealt(used, taught.exposure, random)
    return tuple(
        Mention(
            fact=taught.fact, template=template, name=name, object=n % objects, draw=random.random()
        )
        for n, (template, name) in enumerate(zip(templates, names, strict=True))
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Told:
    """All mentions, fact by fact and relation by relation, a column for each part of them.

    ids and worded: the facts and the templates that `facts` and `templates` count. relations: where
    the mentions of each begin and end.
    """

    ids: tuple[str, ...]
    worded: tuple[str, ...]
    relations: Mapping[str, tuple[int, int]]
    facts: NDArray[np.int32]
    templates: NDArray[np.int32]
    names: NDArray[np.int8]
    objects: NDArray[np.int8]
    draws: Floats

    def __len__(self) -> int:
        return len(self.draws)

    def __getitem__(self, place: int) -> Mention:
        return Mention(
            fact=self.ids[self.facts[place]],
            template=self.worded[self.templates[place]],
            name=int(self.names[place]),
            object=int(self.objects[place]),
            draw=float(self.draws[place]),
        )


def told(
    truth: Iterable[Taught],
    used: Mapping[str, tuple[str, ...]],
    mentions: Callable[[str], tuple[Mention, ...]],
) -> Told:
    """The mentions of every fact, which come relation by relation."""
    worded = tuple(id for ids in used.values() for id in ids)
    numbers = {id: number for number, id in enumerate(worded)}
    # of small numbers: there are many mentions
    columns: list[array[Any]] = [array(kind) for kind in "iibbd"]
    ids: list[str] = []
    relations: dict[str, tuple[int, int]] = {}
    for number, taught in enumerate(truth):
        ids.append(taught.fact)
        for m in mentions(taught.fact):
            row = number, numbers[m.template], m.name, m.object, m.draw
            for column, value in zip(columns, row, strict=True):
                column.append(value)
        stop = len(columns[0])
        start, _ = relations.get(taught.relation, (stop - taught.exposure, 0))
        relations[taught.relation] = start, stop
    facts, templates, names, objects, draws = (np.array(column) for column in columns)
    return Told(
        ids=tuple(ids),
        worded=worded,
        relations=relations,
        facts=facts,
        templates=templates,
        names=names,
        objects=objects,
        draws=draws,
    )


def _dealt(ids: tuple[str, ...], count: int, random: Random) -> list[str]:
    """So many ids, all of them in turn, in a new order each round."""
    found: list[str] = []
    while len(found) < count:
        found += random.sample(ids, len(ids))
    return found[:count]
