"""The two passes over triples: draw facts and options, then collect what belongs to them.

The first counts each relation. It holds a bounded number of names, however many rows there are:
those with the smallest draws stay, whatever their order or repetition. Subjects and objects are
told apart by name, as a model reads them, whatever the case of their letters.

The second collects, of the facts that were drawn, names, identifiers, details, and everything that
any row calls correct for their subjects, by name or by identifier. Rows of other subjects leave
nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heappush, heappushpop

from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Entity
from sonde.core.fingerprints import draw_key
from sonde.data.builders.triples import Triple

POOL = 1000
BETWEEN = "\n"  # no name that was cleaned has one
NONE: frozenset[str] = frozenset()

Pair = tuple[str, str]


class Smallest:
    """The `size` names with the smallest draws among all that were offered, with their marks."""

    __slots__ = ("_heap", "_prefix", "_seed", "_size", "kept", "turned_away")

    def __init__(self, size: int, seed: int, prefix: str) -> None:
        self._size = size
        self._seed = seed
        self._prefix = prefix
        self._heap: list[tuple[int, str]] = []
        self.kept: dict[str, frozenset[str]] = {}
        self.turned_away = False

    def offer(self, name: str, mark: str = "") -> None:
        """Take a name in where its draw is small enough; all marks of a name that stays stay."""
        if name not in self.kept:
            entry = (-draw_key(self._seed, self._prefix + name), name)  # a heap gives its smallest
            if not self._room(entry):
                return
            self.kept[name] = NONE
        if mark and mark not in self.kept[name]:
            self.kept[name] |= {mark}

    def _room(self, entry: tuple[int, str]) -> bool:
        if len(self._heap) < self._size:
            heappush(self._heap, entry)
            return True
        self.turned_away = True
        if not self._heap or entry < self._heap[0]:
            return False
        _, gone = heappushpop(self._heap, entry)
        del self.kept[gone]
        return True

    def __len__(self) -> int:
        return len(self.kept)

    def ordered(self) -> list[str]:
        """The names, the smallest draw first."""
        return [name for _, name in sorted(self._heap, reverse=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a relation needs, and what is drawn from it."""

    least_facts: int = 500
    least_objects: int = 100
    train: int = 100
    test: int = 400
    options: int = 99
    seed: int = 0

    def __post_init__(self) -> None:
        least = {"least_facts": 1, "least_objects": 2, "train": 0, "test": 1, "options": 1}
        for name, smallest in least.items():
            given = getattr(self, name)
            if given < smallest:
                shown = name.replace("_", "-")
                raise UsageError(f"--{shown} must be at least {smallest}, not {given}")

    @property
    def drawn(self) -> int:
        """How many facts are drawn of a relation."""
        return self.train + self.test

    @property
    def needed(self) -> int:
        """How many facts a relation must have: at least one more than are for training."""
        return max(self.least_facts, self.train + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How many there are; there are `more` where counting stopped."""

    value: int
    more: bool = False

    def __str__(self) -> str:
        return f"{self.value:,}{'+' if self.more else ''}"


class Survey:
    """What the first pass keeps of one relation."""

    __slots__ = ("_facts", "_objects", "rows")

    def __init__(self, relation: str, recipe: Recipe) -> None:
        bound = max(recipe.needed, recipe.drawn)
        pool = max(POOL, recipe.least_objects, 2 * recipe.options)
        self.rows = 0
        self._facts = Smallest(bound, recipe.seed, f"fact:{relation}:")
        self._objects = Smallest(pool, recipe.seed, f"object:{relation}:")

    def add(self, triple: Triple) -> None:
        """Count one row."""
        self.rows += 1
        object = triple.object.casefold()
        self._objects.offer(object)
        mark = triple.things[0].id if triple.things is not None else ""
        self._facts.offer(f"{triple.subject.casefold()}{BETWEEN}{object}", mark)

    @property
    def facts(self) -> Count:
        """Distinct facts."""
        return Count(value=len(self._facts), more=self._facts.turned_away)

    @property
    def objects(self) -> Count:
        """Distinct objects."""
        return Count(value=len(self._objects), more=self._objects.turned_away)

    def lacks(self, recipe: Recipe) -> str:
        """What the relation has too few of; nothing where it qualifies."""
        few = {
            "facts": self.facts.value < recipe.needed,
            "objects": self.objects.value < recipe.least_objects,
        }
        return " and ".join(what for what, lacking in few.items() if lacking)

    def drawn(self, recipe: Recipe) -> dict[tuple[str, str], frozenset[str]]:
        """The facts drawn, in small letters, with the identifiers of their subjects."""
        chosen = self._facts.ordered()[: recipe.drawn]
        return {_pair(name): self._facts.kept[name] for name in chosen}

    def pool(self) -> list[str]:
        """The objects that options are drawn from, in small letters."""
        return self._objects.ordered()


def survey(triples: Iterable[Triple], recipe: Recipe) -> dict[str, Survey]:
    """The first pass: every relation, by its name."""
    found: dict[str, Survey] = {}
    for triple in triples:
        seen = found.get(triple.relation)
        if seen is None:
            seen = found[triple.relation] = Survey(triple.relation, recipe)
        seen.add(triple)
    return found


def _pair(name: str) -> tuple[str, str]:
    subject, _, object = name.partition(BETWEEN)
    return subject, object


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
                self.entity = Entity.named(name)
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
