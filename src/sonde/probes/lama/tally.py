"""LAMA's outcomes in columns: some bytes per fact, so that millions fit in memory.

Knows judged answers, nothing of estimates or tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappush, heappushpop
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Fact, commonest_objects
from sonde.core.fingerprints import draw_key
from sonde.metrics.answers import Judgement
from sonde.prompting.uhn import object_in_subject

SHOWN = 50_000
BLOCK = 8192

Bools = NDArray[np.bool_]
Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One fact with its judged answer, as the table of facts shows it."""

    fact: Fact
    prompt: str
    judgement: Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Judged facts in the dataset's order, an entry each; they may be of one relation or of all.

    `ranks` of the best correct name, 0 where none could be answered; `by_majority`: whether the
    commonest object is right; `guessable` facts are left out of UHN; `clusters`: facts of a
    relation with the same number have the same subject.
    """

    ranks: Whole
    tied: Bools
    by_majority: Bools
    guessable: Bools
    clusters: Whole

    def where(self, kept: Bools) -> Columns:
        """The facts for which `kept` holds."""
        return Columns(
            ranks=self.ranks[kept],
            tied=self.tied[kept],
            by_majority=self.by_majority[kept],
            guessable=self.guessable[kept],
            clusters=self.clusters[kept],
        )

    def scored(self) -> Columns:
        """The facts that could be answered."""
        return self.where(self.ranks > 0)

    def __len__(self) -> int:
        return len(self.ranks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Every judged fact by relation, the majority's answers, and the facts that can be shown."""

    relations: dict[str, Columns]
    majority: dict[str, str]
    shown: tuple[Shown, ...]

    @property
    def asked(self) -> int:
        """How many facts were judged."""
        return sum(map(len, self.relations.values()))

    def scored(self) -> dict[str, Columns]:
        """The facts that could be answered, of the relations that have any."""
        found = {relation: columns.scored() for relation, columns in self.relations.items()}
        return {relation: columns for relation, columns in found.items() if len(columns)}


class Facts:
    """Finds the facts that answers belong to, with their place in the dataset.

    Answers in the order they were asked need one fact at a time; for any other order all facts
    are held. An id that two facts have is refused.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._ahead = self._stream()
        self._here: tuple[int, Fact] | None = None
        self._all: dict[str, tuple[int, Fact]] | None = None

    def find(self, id: str) -> tuple[int, Fact]:
        """The place and the fact of that id."""
        if self._all is not None:
            return self._all[id]
        if self._here is None or self._here[1].id != id:
            self._here = next(self._ahead, None)
        if self._here is None or self._here[1].id != id:
            self._all = {}
            for place, fact in self._stream():
                if self._all.setdefault(fact.id, (place, fact))[0] != place:
                    raise _repeated(fact)
            return self._all[id]
        return self._here

    def _stream(self) -> Iterator[tuple[int, Fact]]:
        relations, last = self._dataset.asked_relations(), ""
        facts = (fact for r in relations for fact in self._dataset.asked(r.id))
        for place, fact in enumerate(facts):
            if fact.id == last:  # others of the same id are found by their order
                raise _repeated(fact)
            last = fact.id
            yield place, fact


def _repeated(fact: Fact) -> DataError:
    return DataError(f"two facts have the id {fact.id!r}; give each fact an id of its own")


class Tally:
    """Takes judged facts in any order and gives them back in the dataset's.

    At most `most` facts are kept to be shown: all, or those a draw by the selection's seed picks.
    """

    def __init__(self, dataset: Dataset, most: int = SHOWN) -> None:
        self._ids = [relation.id for relation in dataset.asked_relations()]
        self._numbers = {id: number for number, id in enumerate(self._ids)}
        ranked = ((id, commonest_objects(dataset.split_frame(id))) for id in self._ids)
        self._majority = {id: objects[0][0] for id, objects in ranked if objects}
        self._seed, self._most = dataset.selection.seed, most
        self._kept: list[tuple[int, int, int, Shown]] = []
        self._arrived = 0
        self._guessed = _Column(np.int64)
        self._places, self._relations = _Column(np.int64), _Column(np.int32)
        self._ranks, self._subjects = _Column(np.int64), _Column(np.bytes_)
        self._flags = _Column(np.bool_)

    def add(self, place: int, fact: Fact, prompt: str, judgement: Judgement) -> None:
        """Count one judged fact; of two for the same place the later one counts."""
        commonest = self._majority[fact.relation]
        self._places.add(place)
        self._relations.add(self._numbers[fact.relation])
        self._ranks.add(judgement.rank or 0)
        self._subjects.add(fact.subject.id.encode("utf-8", "surrogatepass"))
        right = any(entity.name == commonest for entity in fact.objects)
        self._flags.add((judgement.tied, right, object_in_subject(fact)))
        self._show(place, fact, prompt, judgement)

    def guessed(self, place: int) -> None:
        """Note that a part of the subject's name suggests the answer."""
        self._guessed.add(place)

    def outcomes(self) -> Outcomes:
        """Everything that was counted."""
        places = self._places.array()
        order = np.argsort(places, kind="stable")
        last = np.append(places[order][1:] != places[order][:-1], True)[: len(order)]
        order = order[last]
        flags = self._flags.array().reshape(-1, 3)[order]
        guessable = flags[:, 2] | np.isin(places[order], self._guessed.array())
        relations, subjects = self._relations.array()[order], self._subjects.array()[order]
        ranks = self._ranks.array()[order]
        columns = {}
        for number, id in enumerate(self._ids):
            own = relations == number
            columns[id] = Columns(
                ranks=ranks[own],
                tied=flags[own, 0],
                by_majority=flags[own, 1],
                guessable=guessable[own],
                clusters=np.unique(subjects[own], return_inverse=True)[1],
            )
        return Outcomes(relations=columns, majority=self._majority, shown=self._to_show())

    def _show(self, place: int, fact: Fact, prompt: str, judgement: Judgement) -> None:
        key = -draw_key(self._seed, fact.id)
        full = len(self._kept) >= self._most
        if full and key < self._kept[0][0]:
            return
        self._arrived += 1  # decides between equal keys, so that no facts are compared
        shown = Shown(fact=fact, prompt=prompt, judgement=judgement)
        entry = (key, self._arrived, place, shown)
        if full:
            heappushpop(self._kept, entry)
        else:
            heappush(self._kept, entry)

    def _to_show(self) -> tuple[Shown, ...]:
        by_place = {place: shown for _, _, place, shown in sorted(self._kept, key=lambda e: e[1])}
        return tuple(by_place[place] for place in sorted(by_place))


class _Column:
    """Values of one kind, folded into arrays as they come."""

    def __init__(self, kind: type[np.generic]) -> None:
        self._kind = kind
        self._fresh: list[Any] = []
        self._folded: list[NDArray[Any]] = []

    def add(self, value: object) -> None:
        self._fresh.append(value)
        if len(self._fresh) >= BLOCK:
            self._fold()

    def array(self) -> NDArray[Any]:
        self._fold()
        return np.concatenate(self._folded) if self._folded else np.array([], dtype=self._kind)

    def _fold(self) -> None:
        if self._fresh:
            self._folded.append(_array(self._fresh, self._kind))
            self._fresh = []


def _array(values: Sequence[Any], kind: type[np.generic]) -> NDArray[Any]:
    return np.array(values, dtype=kind)
