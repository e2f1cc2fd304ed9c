"""Answers of MONITOR put in their places, whatever order they come in. Knows no estimates."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from sonde.core.answers import Answered, Generated, Scored
from sonde.core.errors import AbilityError
from sonde.core.facts import Dataset, Relation, Template, commonest_objects
from sonde.metrics.distance import RULES, Alphas, Monitored, Rule
from sonde.metrics.grid import Bools, Floats, Grid, Ints
from sonde.metrics.judged import Judged
from sonde.probes.monitor.ask import Census, Item, Place, Shape, items, place_of
from sonde.prompting.frames import cleaned


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """What a run measured, and what else is told of it, one entry per fact where not said.

    `grid[c]` [frames, wrong names]: whether the answer is right in each frame after each wrong
    name, the base frame first, and nothing without `full`. `by_majority`: whether the relation's
    commonest object is right. `subjects`: facts with the same number have the same subject.
    `read`, `written`: characters and tokens, by (way, what is told).
    """

    monitored: Monitored
    census: Census
    grid: tuple[Bools, ...]
    by_majority: Bools
    majority: tuple[str, ...]
    subjects: Ints
    read: Mapping[str, int]
    written: Mapping[str, int]


class Tally:
    """Takes answers in any order; of two to the same prompt the later one counts."""

    def __init__(self, dataset: Dataset, shape: Shape) -> None:
        self._dataset, self._shape = dataset, shape
        self.census = Census()
        self._items: dict[tuple[str, str], Item] = {}
        relations: dict[str, Relation] = {}
        for relation, item in items(dataset, shape, self.census):
            self._items[relation.id, item.fact.id] = item
            relations[relation.id] = relation
        self._relations = tuple(relations.values())
        self._likely: dict[tuple[str, str, Place], tuple[float, ...]] = {}
        self._said: dict[tuple[str, str, Place], str] = {}
        self._read: dict[str, int] = {}
        self._written: dict[str, int] = {}

    def add(self, row: Answered) -> None:
        """Take one answer."""
        fact = (row.key.relation, row.key.fact)
        item = self._items[fact]
        place = place_of(item, row.key)
        part = _part(place, row.answer)
        self._read[part] = self._read.get(part, 0) + len(row.prefix)
        if isinstance(row.answer, Scored):
            self._likely[(*fact, place)] = row.answer.logps[0]
        elif isinstance(row.answer, Generated):
            self._said[(*fact, place)] = cleaned(row.answer.text)
            self._written[part] = self._written.get(part, 0) + len(row.answer.logps)
        else:
            raise AbilityError("monitor reads scored and written answers, not other ones")

    def outcomes(self, rule: Rule, alphas: Alphas) -> Outcomes:
        """Everything that was counted."""
        found = [item for item in self._items.values() if self._even(item)]
        self.census.uneven = len(self._items) - len(found)
        majority = {r.id: _commonest(self._dataset, r.id) for r in self._relations}
        owners: dict[tuple[str, str], int] = {}
        for item in found:
            owners.setdefault((item.fact.relation, item.fact.subject.id), len(owners))
        return Outcomes(
            monitored=self._monitored(found, rule, alphas),
            census=self.census,
            grid=tuple(self._grid(item) for item in found),
            by_majority=np.array([_right(majority[i.fact.relation], i) for i in found], np.bool_),
            majority=tuple(majority[r.id] for r in self._relations),
            subjects=np.array(
                [owners[i.fact.relation, i.fact.subject.id] for i in found], np.int64
            ),
            read=dict(self._read),
            written=dict(self._written),
        )

    def _monitored(self, found: list[Item], rule: Rule, alphas: Alphas) -> Monitored:
        numbers = {relation.id: number for number, relation in enumerate(self._relations)}
        said = tuple(tuple(self._saying(item, p) for p in item.places()) for item in found)
        return Monitored(
            relations=self._relations,
            frames=tuple(_frames(found, r.id) for r in self._relations),
            facts=tuple(item.fact for item in found),
            relation=np.array([numbers[item.fact.relation] for item in found], np.int64),
            anchor=tuple(self._table(item, "right")[0] for item in found),
            framed=tuple(self._table(item, "none") for item in found),
            misled=tuple(self._table(item, "wrong") for item in found),
            wrong=tuple(item.wrong for item in found),
            said=said,
            right=tuple(
                np.array([_right(text, item) for text in texts], dtype=np.bool_)
                for item, texts in zip(found, said, strict=True)
            ),
            valid={one: _valid(one, found, said) for one in RULES},
            rule=rule,
            alphas=alphas,
            seed=self._dataset.selection.seed,
        )

    def _table(self, item: Item, told: str) -> Floats:
        """Probabilities of the object's tokens, a row for each prompt; [prompts, tokens]."""
        key = (item.fact.relation, item.fact.id)
        places = [place for place in item.places() if place.told == told]
        width = len(self._likely[(*key, Place(frame=0, told="right"))])
        rows = [self._likely[(*key, place)] for place in places]
        return np.exp(np.array(rows, dtype=np.float64).reshape(len(rows), width))

    def _even(self, item: Item) -> bool:
        """Whether the object is cut into as many tokens everywhere, so that these can be paired."""
        key = (item.fact.relation, item.fact.id)
        return len({len(self._likely[(*key, place)]) for place in item.places()}) == 1

    def _saying(self, item: Item, place: Place) -> str:
        return self._said[item.fact.relation, item.fact.id, place]

    def _grid(self, item: Item) -> Bools:
        shape = (len(item.frames), len(item.wrong))
        if not self._shape.full:
            return np.zeros((0, shape[1]), dtype=np.bool_)
        places = (Place(frame=j, told="wrong", name=m) for j, m in np.ndindex(shape))
        right = [_right(self._saying(item, place), item) for place in places]
        return np.array(right, dtype=np.bool_).reshape(shape)


def begins(text: str, name: str) -> bool:
    """Whether a text begins with a name as a word: Nigeria does not begin with Niger.

    >>> begins("Niger, in Africa", "Niger"), begins("Nigeria", "Niger")
    (True, False)
    """
    rest = text.removeprefix(name)
    goes_on = rest and (rest[0].isalnum() or unicodedata.category(rest[0])[0] == "M")
    return text.startswith(name) and not goes_on


def as_judged(outcomes: Outcomes) -> Judged:
    """The answers to bare questions as other analyses take them; every frame is a template."""
    known = outcomes.monitored
    firsts = np.cumsum([0, *(len(own) for own in known.frames)])
    pairs, templates, right, texts = [], [], [], []
    for c, relation in enumerate(known.relation.tolist()):
        for j in range(len(known.frames[relation])):
            pairs.append(c)
            templates.append(int(firsts[relation]) + j)
            right.append(bool(known.right[c][1 + j]))
            texts.append(known.said[c][1 + j])
    answers: dict[str, int] = {}
    for text in texts:
        answers.setdefault(text, len(answers))
    unknown = np.full(len(pairs), np.nan)
    grid = Grid(
        pair=np.array(pairs, dtype=np.int64),
        template=np.array(templates, dtype=np.int64),
        name=np.zeros(len(pairs), dtype=np.int64),
        right=np.array(right, dtype=np.bool_),
        answer=np.array([answers[text] for text in texts], dtype=np.int64),
        confidence=unknown,
        relations=known.relation,
        template_relations=np.repeat(np.arange(len(known.frames)), [len(f) for f in known.frames]),
    )
    return Judged(
        grid=grid,
        relations=known.relations,
        pairs=tuple(fact.id for fact in known.facts),
        names=tuple((fact.subject.name,) for fact in known.facts),
        templates=tuple(template for own in known.frames for template in own),
        answers=tuple(answers),
        way="written",
        sure=unknown,
    )


def _part(place: Place, answer: object) -> str:
    """What a prompt is for: MONITOR itself, the accuracies beside it, or the rest of the grid."""
    if place.told == "wrong" and place.frame:
        return "grid"
    return "monitor" if isinstance(answer, Scored) or place.told == "right" else "accuracy"


def _valid(rule: Rule, found: list[Item], said: tuple[tuple[str, ...], ...]) -> Bools:
    return np.array(
        [_counts(rule, cleaned(item.gold), texts) for item, texts in zip(found, said, strict=True)],
        dtype=np.bool_,
    )


def _counts(rule: Rule, gold: str, said: tuple[str, ...]) -> bool:
    if rule == "any":
        return gold in said
    return said[0] == gold if rule == "exact" else begins(said[0], gold)


def _right(text: str, item: Item) -> bool:
    return bool(text) and text in {cleaned(name) for name in item.correct}


def _frames(found: Iterable[Item], relation: str) -> tuple[Template, ...]:
    return next((item.frames for item in found if item.fact.relation == relation), ())


def _commonest(dataset: Dataset, relation: str) -> str:
    found = commonest_objects(dataset.split_frame(relation))
    return cleaned(found[0][0]) if found else ""
