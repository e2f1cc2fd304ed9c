"""The second pass over triples: what belongs to the facts that were drawn.

That is names, identifiers, details, and everything that any row calls correct for their subjects,
by name or by identifier. Rows of other subjects leave nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sonde.core.errors import DataError
from sonde.core.facts import Entity
from sonde.data.builders.survey import BETWEEN, Recipe, Survey
from sonde.data.builders.triples import Triple, named

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """One fact that was drawn: its subject, its own object first among all that are correct."""

    subject: Entity
    objects: tuple[Entity, ...]
    details: Mapping[str, str]
    correct: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An object of the pool, with all its names and identifiers."""

    entity: Entity
    marks: frozenset[str]

    @property
    def name(self) -> str:
        """What it is called among the options."""
        return self.entity.name


class Thing:
    """A thing that rows name; of its forms one with an identifier stays, then the first by name."""

    __slots__ = ("entity", "marks")

    def __init__(self, marks: set[str]) -> None:
        self.entity: Entity | None = None
        self.marks = marks

    def add(self, name: str, entity: Entity | None) -> None:
        """Take in one row's form of it."""
        if entity is None:
            known = self.entity
            if known is None or (known.id == known.name and name < known.name):
                self.entity = named(name)
            return
        self.marks |= marks(entity)
        if self.entity is None or _rank(entity) < _rank(self.entity):
            self.entity = entity


class Collection:
    """What the second pass keeps of one relation."""

    __slots__ = ("_by_id", "_correct", "_details", "_drawn", "_pool", "_subjects")

    def __init__(self, survey: Survey, recipe: Recipe) -> None:
        self._drawn = survey.drawn(recipe)
        self._pool = {object: Thing({object}) for object in survey.pool()}
        self._details: dict[Pair, dict[str, str]] = {}
        self._subjects = {subject: Thing(set()) for subject, _ in self._drawn}
        self._correct: dict[str, dict[str, Thing]] = {subject: {} for subject in self._subjects}
        self._by_id: dict[str, set[str]] = {}
        for (subject, _), ids in self._drawn.items():
            for id in ids:
                self._by_id.setdefault(id, set()).add(subject)

    def add(self, triple: Triple) -> None:
        """Take from a row what belongs to a fact that was drawn, or to an object of the pool."""
        object = triple.object.casefold()
        subject, thing = triple.things or (None, None)
        if (option := self._pool.get(object)) is not None:
            option.add(triple.object, thing)
        name = triple.subject.casefold()
        if (own := self._subjects.get(name)) is not None:
            # an identifier of other facts only would bring objects that no one has looked for
            known = subject is not None and name in self._by_id.get(subject.id, ())
            own.add(triple.subject, subject if known else None)
            self._right(name, object, triple)
            self._detail((name, object), triple)
        for other in self._by_id.get(subject.id, ()) if subject is not None else ():
            self._right(other, object, triple)

    def _right(self, subject: str, object: str, triple: Triple) -> None:
        known = self._correct[subject]
        if object not in known:
            known[object] = Thing({object})
        known[object].add(triple.object, triple.things and triple.things[1])

    def _detail(self, pair: Pair, triple: Triple) -> None:
        if pair not in self._drawn:
            return
        found, known = triple.details(), self._details.get(pair, {})
        if found and _fullness(found) < _fullness(known):
            self._details[pair] = found

    def facts(self) -> Iterable[Drawn]:
        """The facts drawn, in the order of their draws."""
        for subject, object in self._drawn:
            right = self._correct[subject]
            others = (right[name] for name in sorted(right) if name != object)
            correct = frozenset(mark for thing in right.values() for mark in thing.marks)
            yield Drawn(
                subject=_entity(self._subjects[subject]),
                objects=_distinct([_entity(right.get(object)), *map(_entity, others)]),
                details=self._details.get((subject, object), {}),
                correct=correct,
            )

    def options(self) -> list[Option]:
        """The pool that options are drawn from."""
        found = self._pool.values()
        return [Option(entity=_entity(thing), marks=frozenset(thing.marks)) for thing in found]


def collect(
    triples: Iterable[Triple], surveys: Mapping[str, Survey], recipe: Recipe
) -> dict[str, Collection]:
    """The second pass, over the relations that qualify."""
    found = {relation: Collection(survey, recipe) for relation, survey in surveys.items()}
    for triple in triples:
        if (collection := found.get(triple.relation)) is not None:
            collection.add(triple)
    return found


def marks(entity: Entity) -> set[str]:
    """What a thing can be recognised by: its names in small letters, and its identifier."""
    names = {" ".join(name.split()).casefold() for name in entity.names}
    return names | {BETWEEN + entity.id}


def _fullness(details: Mapping[str, str]) -> tuple[int, list[tuple[str, str]]]:
    """Of several rows of one fact the one that says most stays, then the first by its words."""
    return -len(details), sorted(details.items())


def _rank(entity: Entity) -> tuple[bool, str, int, tuple[str, ...]]:
    return entity.id == entity.name, entity.id, -len(entity.names), entity.names


def _distinct(entities: Iterable[Entity]) -> tuple[Entity, ...]:
    """Entities of different identifiers; of two the first stays."""
    by_id: dict[str, Entity] = {}
    for entity in entities:
        by_id.setdefault(entity.id, entity)
    return tuple(by_id.values())


def _entity(thing: Thing | None) -> Entity:
    if thing is None or thing.entity is None:
        raise DataError("the triples changed while they were read; run the same command again")
    return thing.entity
