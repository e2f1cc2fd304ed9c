"""What a multi-prompt probe asks about: pairs of a subject and a relation, with all their names.

Knows facts, nothing of prompts or answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sonde.core.facts import Dataset, Fact, commonest_objects


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A subject of a relation with every object that is correct for it.

    `fact` is the id of the pair's first fact, by which its prompts are known. `names` of the
    subject and of each of the `objects`, the usual one first. `majority`: whether the relation's
    commonest object is correct.
    """

    fact: str
    names: tuple[str, ...]
    objects: tuple[tuple[str, ...], ...]
    majority: bool


def asked_pairs(dataset: Dataset, relation: str) -> Iterator[Pair]:
    """The pairs of a relation that the selection asks about, in the dataset's order.

    Facts with the same subject are one pair, and so are their objects, whatever their split.
    """
    firsts: dict[str, Fact] = {}
    for fact in dataset.asked(relation):
        firsts.setdefault(fact.subject.id, fact)
    names: dict[str, dict[str, None]] = {id: {} for id in firsts}
    objects: dict[str, dict[str, tuple[str, ...]]] = {id: {} for id in firsts}
    for fact in dataset.facts(relation):
        if fact.subject.id in firsts:
            names[fact.subject.id].update(dict.fromkeys(fact.subject.names))
            own = objects[fact.subject.id]
            for entity in fact.objects:
                own[entity.id] = tuple(dict.fromkeys((*own.get(entity.id, ()), *entity.names)))
    ranked = commonest_objects(dataset.of_split(relation))
    for id, fact in firsts.items():
        yield Pair(
            fact=fact.id,
            names=tuple(dict.fromkeys((*fact.subject.names, *names[id]))),
            objects=tuple(objects[id].values()),
            majority=any(own[0] == ranked[0][0] for own in objects[id].values()),
        )
