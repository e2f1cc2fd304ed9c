"""Refuse relations, templates and facts that share an id: by ids answers are joined to them.

Ids are noted while somebody else reads the facts, so that nothing is read for this alone. Knows
nothing of files; a reader that does says where facts stand (`Placed`).
"""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np

from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Fact, Relation

SHOWN = 5


@runtime_checkable
class Placed(Protocol):
    """A way of reading facts that can say where each stands, such as a file and a line."""

    def placed(self, relation: str) -> Iterator[tuple[str, Fact]]:
        """The facts of a relation, each after its place in words."""


class Watched:
    """Notes the ids of facts as they are read; give `dataset` to whoever is about to read them."""

    def __init__(self, dataset: Dataset) -> None:
        self._given = dataset
        self._noted: dict[str, array[int]] = {}
        self.dataset = replace(dataset, read=self._read)

    def refuse(self, relations: Sequence[Relation]) -> None:
        """Raise DataError if an id stands for two things; reads what was not read to its end."""
        self._tell(list(_repeated_templates(relations)))
        for relation in relations:
            if relation.id not in self._noted:
                deque(self._read(relation.id), maxlen=0)
        noted = [np.array(self._noted[relation.id]) for relation in relations]
        if noted and len(np.unique(np.concatenate(noted))) < sum(map(len, noted)):
            self._tell(list(self._repeated_facts(relations)))

    def _read(self, relation: str) -> Iterator[Fact]:
        noted = array("q")  # hashes: eight bytes a fact, however many there are
        for fact in self._given.read(relation):
            noted.append(hash(fact.id))
            yield fact
        self._noted[relation] = noted

    def _repeated_facts(self, relations: Sequence[Relation]) -> Iterator[str]:
        """Where the facts stand that have another's id, and where the other stands."""
        places: dict[str, str] = {}
        for relation in relations:
            for place, fact in _placed(self._given, relation.id):
                first = places.setdefault(fact.id, place)
                if first != place:
                    yield f"{place}: fact id {fact.id!r}, as in {first}"

    def _tell(self, found: Sequence[str]) -> None:
        if not found:
            return
        more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
        raise DataError(
            f"dataset {self._given.name!r} has {len(found)} ids that stand for something else "
            "already, so that answers would be mixed:\n  "
            + "\n  ".join([*found[:SHOWN], *more])
            + "\ngive each an id of its own; 'sonde data check' lists everything that is wrong"
        )


def _repeated_templates(relations: Sequence[Relation]) -> Iterator[str]:
    """Relations that have another's id, and templates that have that of another of the relation."""
    for id, count in Counter(relation.id for relation in relations).items():
        yield from [f"relation id {id!r}"] * (count - 1)
    for relation in relations:
        for id, count in Counter(template.id for template in relation.templates).items():
            yield from [f"relation {relation.id}: template id {id!r}"] * (count - 1)


def _placed(dataset: Dataset, relation: str) -> Iterator[tuple[str, Fact]]:
    if isinstance(dataset.read, Placed):
        yield from dataset.read.placed(relation)
        return
    for number, fact in enumerate(dataset.facts(relation), 1):
        yield f"relation {relation}, fact {number}", fact
