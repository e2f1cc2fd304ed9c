"""Read more names, and more correct objects, for facts whose entities have Wikidata identifiers.

    en.tsv            identifier, then names, separated by tabs
    multi_valued.tsv  optional: subject, relation, and the correct objects separated by spaces

The names a fact already has stay first. Only what the facts mention is kept in memory. An
identifier that is missing here leaves its entity as it is; a missing object is left out, counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from sonde.core.errors import DataError
from sonde.core.facts import APART, Card, Dataset, Entity, Fact
from sonde.core.fingerprints import fingerprint
from sonde.data.format import hash_files
from sonde.data.joining import united_entities
from sonde.data.lines import read_lines

NAMES = "en.tsv"
OBJECTS = "multi_valued.tsv"

Pair = tuple[str, str]
"""A subject and a relation, by their identifiers."""


@dataclass(frozen=True, slots=True)
class AliasReader:
    """English aliases and multi-valued objects by Wikidata identifier."""

    name: ClassVar[str] = "aliases"
    summary: ClassVar[str] = "more names by identifier: en.tsv, and multi_valued.tsv if there"

    def card(self) -> Card:
        """Where the names come from."""
        return Card(name=self.name, licence="none stated", sources=("Wikidata aliases",))

    def extend(self, dataset: Dataset, folder: Path) -> Dataset:
        """The same facts with more names and more correct objects."""
        usual, pairs = _mentioned(dataset)
        objects = dict(_objects(folder, pairs))
        wanted = set(usual) | {id for ids in objects.values() for id in ids}
        names = {id: found for id, found in _names(folder) if id in wanted}
        table = _Table(names=names, usual=usual, objects=objects)
        paths = [p for p in (folder / NAMES, folder / OBJECTS) if p.is_file()]
        return replace(
            dataset,
            read=lambda id: (
                fact if APART in fact.tags else table.extended(fact) for fact in dataset.facts(id)
            ),
            fingerprint=fingerprint([dataset.fingerprint, self.name, hash_files(folder, paths)]),
            notes={**dataset.notes, **_notes(dataset, table)},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """What the files say about the entities of a dataset.

    `usual` is the name that the facts themselves use, for every entity they mention.
    """

    names: Mapping[str, tuple[str, ...]]
    usual: Mapping[str, str]
    objects: Mapping[Pair, tuple[str, ...]]

    def extended(self, fact: Fact) -> Fact:
        """A fact with all the names of its entities, and all its correct objects."""
        known = {entity.id for entity in fact.objects}
        more = [Entity(id=id, names=self._all(id)) for id in self.added(fact, known)]
        return replace(
            fact,
            subject=self._entity(fact.subject),
            objects=united_entities([*map(self._entity, fact.objects), *more]),
        )

    def added(self, fact: Fact, known: set[str]) -> list[str]:
        """The correct objects that the fact does not have and that can be named."""
        ids = self.objects.get((fact.subject.id, fact.relation), ())
        return [id for id in ids if id not in known and self._all(id)]

    def unnamed(self, pair: Pair) -> int:
        """Correct objects of a pair that nothing names."""
        return sum(not self._all(id) for id in self.objects.get(pair, ()))

    def _all(self, id: str) -> tuple[str, ...]:
        usual = (self.usual[id],) if id in self.usual else ()
        return tuple(dict.fromkeys((*usual, *self.names.get(id, ()))))

    def _entity(self, entity: Entity) -> Entity:
        more = self.names.get(entity.id, ())
        return Entity(id=entity.id, names=tuple(dict.fromkeys((*entity.names, *more))))


def _identified(dataset: Dataset, relation: str) -> Iterator[Fact]:
    """The facts whose entities may have identifiers; those collected apart have names alone."""
    return (fact for fact in dataset.facts(relation) if APART not in fact.tags)


def _mentioned(dataset: Dataset) -> tuple[dict[str, str], set[Pair]]:
    """The usual name of each entity that the facts mention, and their pairs."""
    usual: dict[str, str] = {}
    pairs: set[Pair] = set()
    for relation in dataset.relations:
        for fact in _identified(dataset, relation.id):
            pairs.add((fact.subject.id, relation.id))
            for entity in (fact.subject, *fact.objects):
                usual.setdefault(entity.id, entity.name)
    return usual, pairs


def _notes(dataset: Dataset, table: _Table) -> dict[str, int]:
    nameless: set[str] = set()
    names = objects = unnamed = 0
    for relation in dataset.relations:
        for fact in _identified(dataset, relation.id):
            extended = table.extended(fact)
            names += len(extended.subject.names) - len(fact.subject.names)
            objects += len(extended.objects) - len(fact.objects)
            unnamed += table.unnamed((fact.subject.id, relation.id))
            if fact.subject.id not in table.names:
                nameless.add(fact.subject.id)
    return {
        "subjects_without_aliases": len(nameless),
        "subject_names_added": names,
        "objects_added": objects,
        "objects_without_names": unnamed,
    }


def _names(folder: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    path = folder / NAMES
    for number, line in read_lines(path):
        id, *names = line.split("\t")
        found = tuple(name.strip() for name in names if name.strip())
        if line.strip() and not (id.strip() and found):
            raise DataError(f"{path}, line {number}: expected an identifier, a tab and names")
        if found:
            yield id.strip(), found


def _objects(folder: Path, pairs: set[Pair]) -> Iterator[tuple[Pair, tuple[str, ...]]]:
    path = folder / OBJECTS
    if not path.is_file():
        return
    for number, line in read_lines(path):
        if not line.strip():
            continue
        parts = line.split("\t")
        if len(parts) != 3 or not all(part.strip() for part in parts):
            raise DataError(
                f"{path}, line {number}: expected a subject, a relation and objects, "
                f"separated by tabs, found {line[:80]!r}"
            )
        if (parts[0], parts[1]) in pairs:
            yield (parts[0], parts[1]), tuple(parts[2].split())


COMPONENT = AliasReader()
