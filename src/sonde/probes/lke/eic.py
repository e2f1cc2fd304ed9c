"""EIC-LKE: several facts tested in one long sequence of facts, each option in its turn.

methods: the numbers of IC-LKE from sequences of training facts between which test facts stand.
What it costs is reported beside what IC-LKE would: it saves only against scoring text by text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from sonde.core.abilities import Ability, need
from sonde.core.columns import Answers, Given, in_blocks
from sonde.core.errors import AbilityError
from sonde.core.facts import Dataset
from sonde.core.prompts import Key, Prompt, Trace
from sonde.core.reports import Report
from sonde.core.settings import setting
from sonde.metrics.judged import Judged
from sonde.probes.lke.choices import Asked, Choices, Floats, Ints, as_judged, summed
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
from sonde.probes.lke.passages import (
    Cost,
    Layout,
    Passage,
    Shape,
    cost_table,
    in_turn,
    passages,
    spots,
)
from sonde.probes.lke.report import Reading, build_report
from sonde.prompting.options import MANY
from sonde.prompting.sequences import training

if TYPE_CHECKING:
    from polars import DataFrame


@dataclass(slots=True, kw_only=True)
class _Read:
    """What is asked: its facts, what had to be left out, a text of each relation, the cost."""

    census: Census = field(default_factory=Census)
    items: list[Item] = field(default_factory=list)
    prefixes: dict[str, str] = field(default_factory=dict)
    cost: Cost = field(default_factory=Cost)


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
        separators(self.inside, self.between)

    def suited(self, can: frozenset[Ability]) -> Self:
        """The model must be able to say how probable it finds parts of a text."""
        need(self.name, can, "trace")
        return self

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """One prompt per sequence, those of a block of facts after each other."""
        reads = _Read()
        for relation, passage in self._passages(dataset, reads):
            text, spans = passage.text()
            facts = passage.facts
            yield Prompt(
                key=Key(fact=facts[0], relation=relation, template=self.name, subject=""),
                prefix=text,
                want=Trace(spans=spans),
                own={"facts": facts, "option": passage.number},
            )
        if not reads.items:
            refuse_nothing(dataset, reads.census)

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Gather every fact's options from the sequences, judge the choices, compute the rest."""
        reads = self._reads(dataset)
        reading = Reading(
            name="EIC-LKE",
            wanted=self.training,
            options=self.options,
            levels=self.levels,
            seeds=(dataset.selection.seed,),
            prefixes=reads.prefixes,
            blank="",
            counts=reads.cost.counts(),
            tables=(cost_table(reads.cost),),
            notes=self._notes(),
        )
        choices = self._choices(dataset, answered, reads)
        report = build_report(dataset, choices, reads.census, reading)
        return replace(report, judged=self._judged(dataset, choices))

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every choice, for comparisons with other runs."""
        return self._judged(dataset, self._choices(dataset, answered, self._reads(dataset)))

    def _judged(self, dataset: Dataset, choices: Choices) -> Judged:
        seeds = (dataset.selection.seed,)
        return as_judged(choices, seeds, separators(self.inside, self.between))

    def _reads(self, dataset: Dataset) -> _Read:
        reads = _Read()
        for relation, passage in self._passages(dataset, reads):
            if relation not in reads.prefixes:
                reads.prefixes[relation], _ = passage.text()
        return reads

    def _choices(self, dataset: Dataset, answered: Given, reads: _Read) -> Choices:
        """The options of every fact, put together from the sequences that they stand in."""
        asked = Asked.of(dataset, dataset.asked_relations(), reads.items)
        turned = [in_turn(item, dataset.selection.seed) for item in asked.items]
        bounds = np.cumsum([0, *map(len, turned)])
        logps = np.full(bounds[-1], np.nan)
        for block in in_blocks(answered):
            if block.kind != "traced":
                raise AbilityError("eic-lke reads traced texts, not other answers")
            fact, option = self._tested(block, asked)
            # a fact with fewer options than others has some of its own read again
            first = option < np.diff(bounds)[fact]
            logps[bounds[fact[first]] + option[first]] = block.rated.sums()[first]
        judged = _judged(asked, turned, logps, bounds, dataset.selection.seed)
        return Choices.of(asked, judged, ["seed"])

    def _tested(self, block: Answers, asked: Asked) -> tuple[Ints, Ints]:
        """The number of the fact that each span is of, and which of its options it is."""
        frame, rated = block.frame, block.rated
        spans = frame.select("relation", fact="facts").explode("fact")
        option = frame["option"].to_numpy()[rated.owners]
        if self.layout == "options":
            option = option + np.arange(len(option)) - rated.bounds[rated.owners]
        return asked.numbers(spans), option

    def _passages(self, dataset: Dataset, reads: _Read) -> Iterator[tuple[str, Passage]]:
        shape = Shape(
            training=self.training,
            start=self.start,
            stride=self.stride,
            layout=self.layout,
            separators=separators(self.inside, self.between),
            seed=dataset.selection.seed,
        )
        for relation in dataset.asked_relations():
            lines = training(dataset, relation.id, shape.seed)
            if not lines:
                reads.census.without_training.append(relation.id)
                continue
            pool = OptionPool(dataset, relation.id, self.options)
            items = {item.fact.id: item for item in pool.items(reads.census)}
            tested: set[str] = set()
            for passage in passages(items.values(), lines, shape, reads.census):
                tested.update(passage.facts)
                reads.cost.read(passage)
                yield relation.id, passage
            kept = [item for id, item in items.items() if id in tested]
            reads.items += kept
            reads.cost.compare(kept, spots(min(self.training, len(lines)), shape)[0])

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


def _judged(
    asked: Asked, turned: list[tuple[str, ...]], logps: Floats, bounds: Ints, seed: int
) -> Iterator[DataFrame]:
    """The choices of one relation after the other; all have the same draw of training facts."""
    from polars import lit

    for number in np.unique(asked.relation).tolist():
        facts = np.flatnonzero(asked.relation == number)
        start, stop = int(bounds[facts[0]]), int(bounds[facts[-1] + 1])
        names = list(chain.from_iterable(turned[fact] for fact in facts.tolist()))
        codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
        options = np.array([codes[name] for name in names])
        ends = np.append(bounds[facts], stop) - start
        answers = summed(logps[start:stop], ends, options, list(codes))
        yield asked.judged(answers, facts).with_columns(seed=lit(seed))


COMPONENT = EicLke
