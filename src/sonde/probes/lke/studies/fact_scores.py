"""One number per fact for each way of asking it, so that ways can be compared fact by fact.

Knows facts, choices and numbers, nothing of prompts or tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan

import numpy as np

from sonde.core.answers import Answered, Scored
from sonde.core.errors import AbilityError
from sonde.core.facts import Dataset, Fact, commonest_objects
from sonde.core.reports import Estimate
from sonde.core.scores import option_logps
from sonde.metrics.choices import Floats, choose
from sonde.metrics.estimates import Resampled, Sample, spread_of
from sonde.probes.lke.items import Item

Ways = Mapping[str, Sequence[str]]
"""By relation, the ways of asking that are averaged."""


class FactScores:
    """Takes a number for (relation, fact, way, turn) in any order; turns are draws of examples."""

    def __init__(self, facts: Mapping[str, Sequence[Fact]], turns: int = 1) -> None:
        self.facts = {relation: tuple(own) for relation, own in facts.items()}
        self._turns = turns
        self._rows = {
            (relation, fact.id): i for relation, own in facts.items() for i, fact in enumerate(own)
        }
        self._found: dict[tuple[str, str], Floats] = {}

    def add(self, relation: str, fact: str, way: str, value: float, turn: int = 0) -> None:
        """Keep one number; of two for the same the later one counts."""
        size = (self._turns, len(self.facts[relation]))
        table = self._found.setdefault((relation, way), np.full(size, np.nan))
        table[turn, self._rows[relation, fact]] = value

    def turns(self, relation: str, way: str) -> Floats:
        """[turns, facts] of one way, nan where nothing was found."""
        size = (self._turns, len(self.facts[relation]))
        return self._found.get((relation, way), np.full(size, np.nan))

    def mean(self, relation: str, ways: Sequence[str]) -> Floats:
        """[facts]: the mean over ways and turns, nan where one of them is missing."""
        if not ways:
            return np.full(len(self.facts[relation]), np.nan)
        means = [self.turns(relation, way).mean(axis=0) for way in ways]
        # rounded, or equal means would seem to differ by their last digit
        return np.asarray(np.round(np.mean(means, axis=0), 12))

    def samples(self, ways: Ways, minus: Ways | None = None) -> dict[str, Sample]:
        """By relation the mean of each fact, or the difference of two; facts without are left out.

        The facts of one subject make a cluster.
        """
        made = {}
        for relation, facts in self.facts.items():
            own = self.mean(relation, ways.get(relation, ()))
            other = own if minus is None else self.mean(relation, minus.get(relation, ()))
            kept = ~np.isnan(own) & ~np.isnan(other)
            made[relation] = Sample(
                values=own[kept],
                clusters=tuple(f.subject.id for f, keep in zip(facts, kept, strict=True) if keep),
                minus=None if minus is None else other[kept],
            )
        return made

    def everywhere(self, way: str) -> dict[str, tuple[str, ...]]:
        """The same single way in every relation."""
        return dict.fromkeys(self.facts, (way,))

    def by_turn(self, way: str) -> list[float]:
        """The mean over relations of each turn, where it was measured."""
        tables = [self.turns(relation, way) for relation in self.facts]
        means = [
            [float(np.nanmean(t[k])) for t in tables if not np.isnan(t[k]).all()]
            for k in range(self._turns)
        ]
        return [float(np.mean(found)) for found in means if found]


class Choices:
    """Judges choices one by one: `right` or not, `mass` on the right option, and the ties.

    The way of asking is the template's column of an answer, the turn its context's.
    """

    def __init__(self, facts: Mapping[str, Sequence[Fact]], turns: int = 1) -> None:
        self._gold = {(f.relation, f.id): f.objects[0].name for own in facts.values() for f in own}
        self.right, self.mass = FactScores(facts, turns), FactScores(facts, turns)
        self.prompts = self.ties = 0

    def add(self, row: Answered) -> None:
        """Judge one answer."""
        if not isinstance(row.answer, Scored):
            raise AbilityError("studies of choices read scored options, not other answers")
        relation, fact, way = row.key.relation, row.key.fact, row.key.template
        gold = row.answer.options.index(self._gold[relation, fact])
        choice = choose(option_logps(row.answer), gold)
        self.right.add(relation, fact, way, float(choice.right), int(row.key.context))
        self.mass.add(relation, fact, way, choice.mass, int(row.key.context))
        self.prompts += 1
        self.ties += choice.tied


def put(made: dict[str, Estimate], name: str, samples: Mapping[str, Sample], seed: int) -> None:
    """Add NAME.mean_over_relations, and each relation's own as NAME.relation.ID."""
    resampled = Resampled(samples, seed)
    made[f"{name}.mean_over_relations"] = resampled.mean_over_relations()
    for relation in samples:
        made[f"{name}.relation.{relation}"] = resampled.relation(relation)


def spread(values: Sequence[float]) -> Estimate:
    """The standard deviation of those numbers that were measured."""
    return spread_of([value for value in values if not isnan(value)])


class Guess:
    """What the commonest object of a relation would be worth as an answer to everything."""

    def __init__(self, dataset: Dataset, relation: str) -> None:
        order = commonest_objects(dataset.split_frame(relation))
        self._ranks = {name: rank for rank, (name, _) in enumerate(order)}

    def right(self, item: Item) -> bool:
        """Whether the commonest of the fact's options is the right one."""
        last = len(self._ranks)
        best = min(item.options, key=lambda name: self._ranks.get(name, last))
        return best == item.fact.objects[0].name
