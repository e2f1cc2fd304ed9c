"""The sequences that `lke-sequence` shows, and what a model made of each place in them.

Knows facts and traced answers, nothing of estimates or tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from sonde.core.columns import Given, in_blocks
from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Fact
from sonde.probes.lke.choices import Floats
from sonde.prompting.options import correct_for, correct_names
from sonde.prompting.replacing import Layout, places, with_unknown, with_wrong
from sonde.prompting.sequences import TRAIN, Line, drawn, line_of

if TYPE_CHECKING:
    from polars import DataFrame

Replace = Literal["none", "unknown", "incorrect"]

FALSE = {"unknown": "made-up facts", "incorrect": "incorrect facts"}
"""What stands in the place of some facts, in words."""

LEAST = 3
PARTS = 10
LIKELY = 0.5
FOLLOWING = ("after_", "other")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How sequences are made; `replaced` counts in a sequence of full length."""

    length: int
    replace: Replace
    replaced: int
    layout: Layout
    seeds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One sequence of a relation, as it is and, at the places `at`, changed; not always changed."""

    relation: str
    number: int
    clean: tuple[Line, ...]
    changed: tuple[Line, ...] = ()
    at: tuple[int, ...] = ()


def sequences(dataset: Dataset, shape: Shape) -> Iterator[Told]:
    """Every relation's sequences; a relation with too few facts is left out, all are refused."""
    some = False
    names = _names(dataset) if shape.replace == "unknown" else frozenset()
    for relation in dataset.asked_relations():
        facts = _facts(dataset, relation.id)
        false = _Falsehoods(dataset, relation.id, names, shape)
        for number in range(shape.seeds):
            order = drawn(facts, dataset.selection.seed + number)[: shape.length]
            if len(order) >= LEAST:
                some = True
                yield false.told(number, order)
    if not some:
        raise DataError(
            f"dataset {dataset.name!r} has no relation with {LEAST} facts to put in a sequence; "
            "raise --limit, or name other relations"
        )


def _facts(dataset: Dataset, relation: str) -> list[Fact]:
    """What is asked about, and what is there for training: neither is told from the other here."""
    kept = {fact.id: fact for fact in dataset.asked(relation)}
    kept |= {fact.id: fact for fact in dataset.facts(relation) if fact.split == TRAIN}
    return list(kept.values())


class _Falsehoods:
    """What is needed to replace facts of a relation; read once for all its sequences."""

    def __init__(self, dataset: Dataset, relation: str, names: frozenset[str], shape: Shape):
        self._seed, self._relation = dataset.selection.seed, relation
        self._shape, self._names = shape, names
        wrong = shape.replace == "incorrect"
        self._right = correct_names(dataset, relation) if wrong else {}
        self._pool = dataset.object_names(relation) if wrong else ()

    def told(self, number: int, facts: tuple[Fact, ...]) -> Told:
        """A sequence, with its changed twin where some facts are to be replaced."""
        clean, shape = tuple(map(line_of, facts)), self._shape
        if shape.replace == "none":
            return Told(relation=self._relation, number=number, clean=clean)
        # the same places in every sequence, so that their means can be drawn along the sequence
        at = places(replaced_of(len(facts), shape), len(facts), shape.layout, self._seed)
        seed = self._seed + number
        if shape.replace == "unknown":
            changed = with_unknown(clean, at, seed, self._names)
        else:
            right = {fact.id: correct_for(fact, self._right) for fact in facts}
            changed = with_wrong(clean, at, lambda line: right[line.fact], self._pool, seed)
        return Told(relation=self._relation, number=number, clean=clean, changed=changed, at=at)


def replaced_of(length: int, shape: Shape) -> int:
    """How many facts of a sequence are replaced: the same share of a short one as of a full one."""
    return max(1, min(length - 2, round(shape.replaced * length / shape.length)))


def _names(dataset: Dataset) -> frozenset[str]:
    """Every name in the dataset, case-folded: no made-up subject may bear it."""
    return frozenset(
        name.casefold()
        for relation in dataset.relations
        for fact in dataset.facts(relation.id)
        for entity in (fact.subject, *fact.objects)
        for name in entity.names
    )


def groups(at: tuple[int, ...], length: int, after: int) -> list[str]:
    """What each place is to the replaced ones: replaced, so many after one, before all, other.

    >>> groups((1,), 5, 2)
    ['before', 'replaced', 'after_1', 'after_2', 'other']
    """
    kinds, last = [], None
    for place in range(length):
        last = place if place in at else last
        if last is None:
            kinds.append("before")
        elif last == place:
            kinds.append("replaced")
        else:
            kinds.append(f"after_{place - last}" if place - last <= after else "other")
    return kinds


def group_names(after: int) -> tuple[str, ...]:
    """What places can be to the replaced ones, in the order of the tables."""
    return ("replaced", *(f"after_{k}" for k in range(1, after + 1)), "other", "before")


def group_words(group: str) -> str:
    """A group as tables and figures call it.

    >>> group_words("after_1"), group_words("other")
    ('1 after', 'further after')
    """
    if group.startswith("after_"):
        return f"{group.removeprefix('after_')} after"
    return {"replaced": "replaced", "other": "further after", "before": "before all"}[group]


def follows(group: str) -> bool:
    """Whether a place is not replaced itself and has a replaced one somewhere before it."""
    return group.startswith(FOLLOWING)


def outcomes(told: Iterable[Told], answered: Given, after: int) -> DataFrame:
    """Every place of every sequence, in their order, whatever order the answers come in.

    A row each. `place` counts from 1, `part` is the tenth of the sequence it stands in, from 1,
    `group` what it is to the replaced facts; `line` and `changed_line` are the fact as either
    sequence shows it. `clean_log`, `changed_log` are the log-probabilities of its object in nats,
    `clean` and `changed` the probabilities; nan is not measured. `usual`: how often its object
    stands in the sequence, which is what a model could go by that knows no fact. `likely` and
    `usually`: whether the probability, and that share, is above one half.
    """
    import polars

    logps: dict[tuple[str, int, bool], Floats] = {}
    for block in in_blocks(answered):
        rated = block.rated
        # no token of its own: the object before shares it, so that nothing was measured
        sums = np.where(rated.counts() > 0, rated.sums(), np.nan)
        keys = block.frame.select("relation", "sequence", "changed").rows()
        for key, (start, stop) in zip(keys, pairwise(rated.bounds.tolist()), strict=True):
            logps[key] = sums[start:stop]
    frame = polars.concat([_places(each, logps, after) for each in told])
    clean, changed, usual = frame["clean_log"].exp(), frame["changed_log"].exp(), frame["usual"]
    likely = np.where(clean.is_nan(), np.nan, clean > LIKELY)
    return frame.with_columns(
        clean=clean,
        changed=changed,
        likely=likely,
        usually=(usual > LIKELY).cast(polars.Float64),
        cluster=frame["fact"].rank("dense").cast(polars.Int64),
    )


def _places(told: Told, logps: Mapping[tuple[str, int, bool], Floats], after: int) -> DataFrame:
    from polars import DataFrame

    length, place = len(told.clean), np.arange(len(told.clean))
    unknown = np.full(length, np.nan)
    counts = Counter(line.object for line in told.clean)
    return DataFrame(
        {
            "relation": told.relation,
            "sequence": told.number,
            "place": place + 1,
            "part": 1 + place * PARTS // length,
            "group": groups(told.at, length, after),
            "fact": [line.fact for line in told.clean],
            "line": list(map(_text, told.clean)),
            "changed_line": list(map(_text, told.changed or told.clean)),
            "clean_log": logps.get((told.relation, told.number, False), unknown),
            "changed_log": logps.get((told.relation, told.number, True), unknown),
            "usual": [counts[line.object] / length for line in told.clean],
            "replaced": len(told.at),
        }
    )


def _text(line: Line) -> str:
    return f"{line.subject} → {line.object}"
