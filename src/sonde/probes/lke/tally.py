"""Choices of in-context estimation in columns, in the dataset's order whatever they came in.

Knows judged choices, nothing of prompts, estimates or tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from sonde.core.facts import Dataset, Fact, Relation, Template, commonest_objects
from sonde.metrics.choices import Bools, Choice, Floats, choose
from sonde.metrics.grid import Grid, Ints
from sonde.metrics.judged import Judged
from sonde.prompting.sequences import Separators


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """One entry per choice: which fact, with which draw of examples, and how it went.

    `fact` numbers the facts of `Outcomes`, `turn` the draws. `control`: whether the commonest of
    the options is right. `offered`: how many options there were; `chosen`: which was likeliest.
    """

    fact: Ints
    turn: Ints
    right: Bools
    tied: Bools
    control: Bools
    sure: Floats
    mass: Floats
    rank: Ints
    offered: Ints
    chosen: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.fact)

    def where(self, kept: Bools) -> Columns:
        """The choices for which `kept` holds."""
        arrays = {f.name: getattr(self, f.name)[kept] for f in fields(self) if f.name != "chosen"}
        chosen = tuple(self.chosen[i] for i in np.flatnonzero(kept).tolist())
        return Columns(**arrays, chosen=chosen)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """Every choice of a run. `relation` is that of each fact, by its place in `relations`.

    `seeds` are those of the draws of examples. `subjects`: facts with the same number have the
    same subject. `majority` is each relation's commonest object.
    """

    relations: tuple[Relation, ...]
    facts: tuple[Fact, ...]
    relation: Ints
    subjects: Ints
    seeds: tuple[int, ...]
    columns: Columns
    majority: tuple[str, ...]

    def of(self, relation: int) -> Columns:
        """The choices of one relation."""
        return self.columns.where(self.relation[self.columns.fact] == relation)


class Tally:
    """Takes choices in any order; of two for the same fact and draw the later one counts."""

    def __init__(self, dataset: Dataset, facts: Iterable[Fact], seeds: Sequence[int]) -> None:
        self._relations = dataset.asked_relations()
        self._facts = tuple(facts)
        self._seeds = tuple(seeds)
        self._places = {(f.relation, f.id): i for i, f in enumerate(self._facts)}
        self._ranked = {
            r.id: {
                name: i for i, (name, _) in enumerate(commonest_objects(dataset.split_frame(r.id)))
            }
            for r in self._relations
        }
        self._rows: dict[tuple[int, int], tuple[Choice, str, bool, int]] = {}

    def fact(self, relation: str, id: str) -> Fact | None:
        """The fact of that id, if it is one that is asked about."""
        place = self._places.get((relation, id))
        return None if place is None else self._facts[place]

    def add(
        self,
        fact: Fact,
        turn: int,
        options: Sequence[str],
        logps: Floats,
        mass: float | None = None,
    ) -> None:
        """Judge one choice; the fact's own object is the right one.

        `mass` is its probability where that was measured otherwise, under all its names.
        """
        gold = options.index(fact.objects[0].name)
        choice = choose(logps, gold)
        choice = choice if mass is None else replace(choice, mass=mass)
        ranked = self._ranked[fact.relation]
        guess = min(range(len(options)), key=lambda i: ranked.get(options[i], len(ranked)))
        place = self._places[fact.relation, fact.id]
        row = (choice, options[choice.chosen], guess == gold, len(options))
        self._rows[place, turn] = row

    def outcomes(self) -> Outcomes:
        """Everything that was counted."""
        numbers = {relation.id: number for number, relation in enumerate(self._relations)}
        subjects: dict[tuple[str, str], int] = {}
        for fact in self._facts:
            subjects.setdefault((fact.relation, fact.subject.id), len(subjects))
        owners = [subjects[f.relation, f.subject.id] for f in self._facts]
        return Outcomes(
            relations=self._relations,
            facts=self._facts,
            relation=np.array([numbers[f.relation] for f in self._facts], dtype=np.int64),
            subjects=np.array(owners, dtype=np.int64),
            seeds=self._seeds,
            columns=self._columns(),
            majority=tuple(next(iter(self._ranked[r.id]), "") for r in self._relations),
        )

    def _columns(self) -> Columns:
        keys = sorted(self._rows)
        rows = [self._rows[key] for key in keys]
        choices = [row[0] for row in rows]
        return Columns(
            fact=np.array([fact for fact, _ in keys], dtype=np.int64),
            turn=np.array([turn for _, turn in keys], dtype=np.int64),
            right=np.array([c.right for c in choices], dtype=np.bool_),
            tied=np.array([c.tied for c in choices], dtype=np.bool_),
            control=np.array([row[2] for row in rows], dtype=np.bool_),
            sure=np.array([c.sure for c in choices], dtype=np.float64),
            mass=np.array([c.mass for c in choices], dtype=np.float64),
            rank=np.array([c.rank for c in choices], dtype=np.int64),
            offered=np.array([row[3] for row in rows], dtype=np.int64),
            chosen=tuple(row[1] for row in rows),
        )


def as_judged(outcomes: Outcomes, separators: Separators) -> Judged:
    """The choices as other analyses take them; every draw of examples counts as a template.

    It has the same name in every probe of this kind, so that these can be set side by side.
    """
    columns, seeds = outcomes.columns, outcomes.seeds
    before, middle, after = separators.frame
    text = f"{before}[X]{middle}[Y]{after}"
    answers: dict[str, int] = {}
    for name in columns.chosen:
        answers.setdefault(name, len(answers))
    with np.errstate(divide="ignore"):
        gold = np.log(columns.mass)
    grid = Grid(
        pair=columns.fact,
        template=outcomes.relation[columns.fact] * len(seeds) + columns.turn,
        name=np.zeros(len(columns), dtype=np.int64),
        right=columns.right,
        answer=np.array([answers[name] for name in columns.chosen], dtype=np.int64),
        confidence=columns.sure,
        relations=outcomes.relation,
        template_relations=np.repeat(np.arange(len(outcomes.relations)), len(seeds)),
    )
    return Judged(
        grid=grid,
        relations=outcomes.relations,
        pairs=tuple(fact.id for fact in outcomes.facts),
        templates=tuple(
            Template(id=f"lke-{seed}", text=text, group=f"lke-{seed}")
            for _ in outcomes.relations
            for seed in seeds
        ),
        answers=tuple(answers),
        way="scored",
        sure=columns.sure,
        gold=gold,
    )
