"""Where a text states its facts: drawn fact by fact, and all of them in little space.

Knows what is taught, nothing of sentences.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from sonde.lab.worlds.truth import Floats, Mention, Taught

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
    facts, templates, names = array("i"), array("i"), array("b")
    objects, draws = array("b"), array("d")
    ids: list[str] = []
    relations: dict[str, tuple[int, int]] = {}
    for number, taught in enumerate(truth):
        ids.append(taught.fact)
        for mention in mentions(taught.fact):
            facts.append(number)
            templates.append(numbers[mention.template])
            names.append(mention.name)
            objects.append(mention.object)
            draws.append(mention.draw)
        start, _ = relations.get(taught.relation, (len(draws) - taught.exposure, 0))
        relations[taught.relation] = start, len(draws)
    return Told(
        ids=tuple(ids),
        worded=worded,
        relations=relations,
        facts=np.array(facts, dtype=np.int32),
        templates=np.array(templates, dtype=np.int32),
        names=np.array(names, dtype=np.int8),
        objects=np.array(objects, dtype=np.int8),
        draws=np.array(draws, dtype=np.float64),
    )


def _dealt(ids: tuple[str, ...], count: int, random: Random) -> list[str]:
    """So many ids, all of them in turn, in a new order each round."""
    found: list[str] = []
    while len(found) < count:
        found += random.sample(ids, len(ids))
    return found[:count]
