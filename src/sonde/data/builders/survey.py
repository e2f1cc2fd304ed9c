"""The first pass over triples: count each relation, and draw its facts and its options.

Per relation it holds a bounded number of names, however many rows there are: those with the
smallest draws stay, whatever their order or repetition. Subjects and objects are told apart by
name, as a model reads them, whatever the case of their letters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappush, heappushpop

from sonde.core.errors import UsageError
from sonde.core.fingerprints import draw_key
from sonde.data.builders.triples import Triple

NONE: frozenset[str] = frozenset()


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


POOL = 1000
BETWEEN = "\n"  # no name that was cleaned has one


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
