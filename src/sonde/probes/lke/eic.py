"""EIC-LKE: several facts tested in one long sequence of facts, each option in its turn.

methods: the numbers of IC-LKE from sequences of training facts between which test facts stand.
What it costs is reported beside what IC-LKE would: it saves only against scoring text by text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from sonde.core.abilities import Ability, need
from sonde.core.answers import Answered, Traced
from sonde.core.columns import Given, rows_of
from sonde.core.errors import AbilityError, DataError
from sonde.core.facts import Dataset
from sonde.core.prompts import Key, Prompt, Trace
from sonde.core.reports import Report
from sonde.core.settings import setting
from sonde.metrics.judged import Judged
from sonde.probes.lke.cost import Cost, cost_table
from sonde.probes.lke.items import (
    BETWEEN_HELP,
    INSIDE_HELP,
    LEVELS,
    LEVELS_HELP,
    OPTIONS_HELP,
    Census,
    Item,
    OptionPool,
    check_levels,
    refuse_nothing,
    separators,
)
from sonde.probes.lke.report import Reading, build_report
from sonde.probes.lke.sequences import Layout, Passage, Shape, in_turn, passages, spots
from sonde.probes.lke.tally import Outcomes, Tally, as_judged
from sonde.prompting.options import MANY
from sonde.prompting.sequences import Separators, training


@dataclass(slots=True, kw_only=True)
class _Asked:
    """What a run asked: its facts, what had to be left out, a text of each relation, the cost."""

    census: Census
    items: dict[tuple[str, str], Item]
    prefixes: dict[str, str]
    cost: Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class EicLke:
    """Which option is likeliest, when several facts are tested in one sequence of facts."""

    name: ClassVar[str] = "eic-lke"
    shrinks: ClassVar[str] = "training"

    training: int = setting(100, "how many facts of the relation a sequence shows", least=1)
    start: int = setting(50, "after how many of them the first fact is tested", least=1)
    stride: int = setting(5, "after how many more the next one is", least=1)
    options: int = setting(MANY, OPTIONS_HELP, least=2)
    layout: Layout = setting(
        "facts", "what a sequence tests: an option of each of several facts, or options of one fact"
    )
    inside: str = setting(" ", INSIDE_HELP)
    between: str = setting(", ", BETWEEN_HELP)
    levels: tuple[float, ...] = setting(LEVELS, LEVELS_HELP, reads=True)

    def __post_init__(self) -> None:
        check_levels(self.levels)
        self._separators()

    def suited(self, can: frozenset[Ability]) -> Self:
        """The model must be able to say how probable it finds parts of a text."""
        need(self.name, can, "trace")
        return self

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """One prompt per sequence, those of a block of facts after each other."""
        asked = _Asked(census=Census(), items={}, prefixes={}, cost=Cost())
        some = False
        for relation, passage in self._passages(dataset, asked):
            some = True
            yield _prompt(relation, passage)
        if not some:
            refuse_nothing(dataset, asked.census)

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Gather every fact's options from the sequences, judge the choices, compute the rest."""
        asked, outcomes = self._tallied(dataset, answered)
        reading = Reading(
            name="EIC-LKE",
            wanted=self.training,
            options=self.options,
            levels=self.levels,
            prefixes=asked.prefixes,
            blank="",
            counts=asked.cost.counts(),
            tables=(cost_table(asked.cost),),
            notes=self._notes(),
        )
        return build_report(dataset, asked.census, outcomes, reading)

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every choice, for comparisons with other runs."""
        return as_judged(self._tallied(dataset, answered)[1], self._separators())

    def _tallied(self, dataset: Dataset, answered: Given) -> tuple[_Asked, Outcomes]:
        asked = _Asked(census=Census(), items={}, prefixes={}, cost=Cost())
        for relation, passage in self._passages(dataset, asked):
            asked.prefixes.setdefault(relation, passage.text)
        seed = dataset.selection.seed
        found: dict[tuple[str, str], dict[int, float]] = {key: {} for key in asked.items}
        for row in rows_of(answered):
            if not isinstance(row.answer, Traced):
                raise AbilityError("eic-lke reads traced texts, not other answers")
            for key, number, logp in _options(row, row.answer, self.layout):
                found[key][number] = logp
        tally = Tally(dataset, (item.fact for item in asked.items.values()), (seed,))
        for key, logps in found.items():
            item = asked.items[key]
            turned = in_turn(item, seed)
            values = np.array([logps[i] for i in range(len(turned))], dtype=np.float64)
            tally.add(item.fact, 0, turned, values)
        return asked, tally.outcomes()

    def _passages(self, dataset: Dataset, asked: _Asked) -> Iterator[tuple[str, Passage]]:
        shape = self._shape(dataset.selection.seed)
        for relation in dataset.asked_relations():
            lines = training(dataset, relation.id, shape.seed)
            if not lines:
                asked.census.without_training.append(relation.id)
                continue
            offers = OptionPool(dataset, relation.id, self.options)
            items = {item.fact.id: item for item in offers.items(asked.census)}
            tested: set[str] = set()
            for passage in passages(items.values(), lines, shape, asked.census):
                tested.update(passage.facts)
                asked.cost.read(passage)
                yield relation.id, passage
            kept = {id: item for id, item in items.items() if id in tested}
            asked.items.update({(relation.id, id): item for id, item in kept.items()})
            first = spots(min(self.training, len(lines)), shape)[0]
            asked.cost.compare(kept.values(), first)

    def _shape(self, seed: int) -> Shape:
        return Shape(
            training=self.training,
            start=self.start,
            stride=self.stride,
            layout=self.layout,
            separators=self._separators(),
            seed=seed,
        )

    def _separators(self) -> Separators:
        return separators(self.inside, self.between)

    def _notes(self) -> tuple[str, ...]:
        tested = (
            "one option of each of several facts, so wrong options of earlier facts stand before "
            "later ones"
            if self.layout == "facts"
            else "several options of one fact, so each stands behind options of the same fact"
        )
        return (
            f"A sequence shows up to {self.training} training facts of the relation; after "
            f"{self.start} of them a fact is tested, and every {self.stride} from there on. Where "
            f"there are fewer, testing starts earlier in proportion. It tests {tested}.",
        )


def _options(
    row: Answered, answer: Traced, layout: Layout
) -> Iterator[tuple[tuple[str, str], int, float]]:
    """What a sequence says: of which fact, which of its options, and the log-probability."""
    first, facts = int(row.key.context), row.key.facts
    for place, logps in enumerate(answer.logps):
        fact = facts[place] if layout == "facts" else facts[0]
        number = first if layout == "facts" else first + place
        yield (row.key.relation, fact), number, sum(logps)


def _prompt(relation: str, passage: Passage) -> Prompt:
    broken = [id for id in passage.facts if "\n" in id]
    if broken:  # a key has a line for each fact
        raise DataError(f"fact {broken[0]!r}: an id may have no line break; give it another")
    key = Key(
        fact="\n".join(passage.facts),
        relation=relation,
        template="eic-lke",
        subject="",
        context=str(passage.number),
    )
    return Prompt(key=key, prefix=passage.text, want=Trace(spans=passage.places))


COMPONENT = EicLke
