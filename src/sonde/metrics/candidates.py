"""What a model's scores say of each thing it may choose, fact by fact: by identifiers, not names.

A thing has the best score of its names in a prompt, and of several prompts about a fact the mean.
Knows stored answers and facts, nothing of probes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sonde.core.columns import Answers
from sonde.core.fact_frames import entities, names_options
from sonde.core.facts import NAME_PARTS, Dataset, Relation
from sonde.core.rated import ends_of, taken
from sonde.core.scores import Normalise

if TYPE_CHECKING:
    from polars import DataFrame

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """The things that may be answered in a relation, and how a model scores them.

    `values` [facts, ids]: mean scores, nan where none was measured. `own` [facts, ids]:
    what each fact chooses from; all, unless facts have `named` their options.
    """

    facts: dict[str, int]
    ids: dict[str, int]
    values: Floats
    own: Bools
    named: bool


class Tally:
    """Adds up the scores of one relation's things."""

    def __init__(self, dataset: Dataset, relation: Relation, normalise: Normalise = "none") -> None:
        self.normalise = normalise
        asked = dataset.asked_frame(relation.id)
        things = _things(dataset, relation)
        self.facts = {fact: row for row, fact in enumerate(asked["fact"])}
        self.ids = {id: column for column, id in enumerate(dict.fromkeys(id for id, _ in things))}
        self.columns: dict[str, list[int]] = {}
        for id, name in things:
            self.columns.setdefault(name, []).append(self.ids[id])
        self.named = names_options(asked)
        self.own = self._own(asked)
        self.sums = np.zeros((len(self.facts), len(self.ids)))
        self.counts = np.zeros(self.sums.shape, dtype=np.int32)

    def _own(self, asked: DataFrame) -> Bools:
        """What each fact chooses from."""
        if not self.named:
            return np.ones((len(self.facts), len(self.ids)), dtype=np.bool_)
        own = np.zeros((len(self.facts), len(self.ids)), dtype=np.bool_)
        for of in ("object_ids", "wrong_ids"):
            each = asked.select("fact", id=of).explode("id").drop_nulls()
            rows = [self.facts[fact] for fact in each["fact"]]
            own[rows, [self.ids[id] for id in each["id"]]] = True
        return own

    def add(self, answers: Answers) -> None:
        """Count in what was answered about facts of the relation."""
        codes, templates = answers.codes("template")
        about = np.array([not id.startswith(NAME_PARTS) for id in templates], dtype=np.bool_)[codes]
        codes, facts = answers.codes("fact")
        place = np.array([self.facts.get(fact, -1) for fact in facts])[codes]
        rows = np.flatnonzero(about & (place >= 0))
        if not len(rows):
            return
        values = self._values(answers.rows(rows))
        there = ~np.isnan(values)
        np.add.at(self.sums, place[rows], np.where(there, values, 0.0))
        np.add.at(self.counts, place[rows], there)

    def _values(self, answers: Answers) -> Floats:
        """The best score of each thing's names in every prompt; nan for none."""
        values = np.full((len(answers), len(self.ids)), np.nan)
        if answers.kind == "filled":
            filled = answers.filled
            logps = np.where(filled.watched_ranks > 0, filled.watched_logps, np.nan)
            for place, name in enumerate(filled.watched):
                for column in self.columns.get(name, ()):
                    values[:, column] = np.fmax(values[:, column], logps[:, place])
            return values
        rated: Any = answers.rated
        lists = [self.columns.get(name, []) for name in rated.names]
        ends = ends_of([len(columns) for columns in lists])
        flat = np.array([column for columns in lists for column in columns], dtype=np.int64)
        kept, places = taken(ends, rated.options)
        times = np.diff(kept)
        sums = rated.compared(self.normalise)
        rows, scores = np.repeat(rated.owners, times), np.repeat(sums, times)
        np.fmax.at(values, (rows, flat[places]), scores)
        return values

    def done(self) -> Candidates:
        """What has been added up."""
        with np.errstate(invalid="ignore"):
            values = self.sums / np.where(self.counts, self.counts, np.nan)
        return Candidates(
            facts=self.facts, ids=self.ids, values=values, own=self.own, named=self.named
        )


def candidates(
    dataset: Dataset,
    relations: Sequence[Relation],
    answers: Iterable[Answers],
    normalise: Normalise = "none",
) -> dict[str, Candidates]:
    """The scored things of each relation, by its id; without values where nothing was scored."""
    tallies = {relation.id: Tally(dataset, relation, normalise) for relation in relations}
    for block in answers:
        if block.kind not in ("filled", "scored"):
            continue
        codes, ids = block.codes("relation")
        for number, id in enumerate(ids):
            rows = np.flatnonzero(codes == number)
            if id in tallies and len(rows):
                tallies[id].add(block if len(rows) == len(block) else block.rows(rows))
    return {id: tally.done() for id, tally in tallies.items()}


def thing_names(dataset: Dataset, relation: Relation) -> dict[str, str]:
    """The thing that each name is of; of several the first by id."""
    found: dict[str, str] = {}
    for id, name in sorted(_things(dataset, relation)):
        found.setdefault(name, id)
    return found


def _things(dataset: Dataset, relation: Relation) -> list[tuple[str, str]]:
    """Every thing that may be answered with each of its names."""
    facts = dataset.frame(relation.id).lazy()
    named = {(entity.id, name): None for entity in relation.answers for name in entity.names}
    for of in ("object", "wrong"):
        pairs = entities(facts, of=of).explode(f"{of}_names").unique(maintain_order=True)
        named |= dict.fromkeys(pairs.collect().iter_rows())
    return list(named)
