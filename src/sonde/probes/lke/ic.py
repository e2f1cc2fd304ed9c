"""IC-LKE: which object follows a subject after other facts of its relation, and nothing else.

The examples say what is asked; there is no template and no instruction. methods: accuracy over
options, probability mass on the right one, Accuracy@K with the share retained, spread over draws
of the examples, beside the majority control.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

from sonde.core.abilities import Ability, need
from sonde.core.columns import Given
from sonde.core.facts import Dataset
from sonde.core.prompts import Key, Prompt, Score
from sonde.core.reports import Report
from sonde.core.settings import setting
from sonde.metrics.judged import Judged
from sonde.probes.lke.choices import Asked, Choices, as_judged, judge
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
from sonde.prompting.options import MANY
from sonde.prompting.sequences import Line, asked, examples, training


@dataclass(frozen=True, slots=True, kw_only=True)
class IcLke:
    """Which of many options follows a subject, after other facts of the same relation."""

    name: ClassVar[str] = "ic-lke"
    shrinks: ClassVar[str] = "n"

    n: int = setting(50, "how many facts of the relation stand before the subject", least=1)
    inside: str = setting(" ", INSIDE_HELP)
    between: str = setting(" ", BETWEEN_HELP)
    options: int = setting(MANY, OPTIONS_HELP, least=2)
    names: Literal["usual", "all"] = setting(
        "usual", "score options by their usual names, or all names to pool them in the mass"
    )
    seeds: int = setting(
        1, "how often to draw the examples anew, to see how far it matters", least=1
    )
    levels: tuple[float, ...] = setting(LEVELS, LEVELS_HELP, reads=True)

    def __post_init__(self) -> None:
        check_levels(self.levels)
        separators(self.inside, self.between)

    def suited(self, can: frozenset[Ability]) -> Self:
        """Any model that can score options will do."""
        need(self.name, can, "score")
        return self

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """One prompt per fact and draw of examples; those of a relation share their beginning."""
        census = Census()
        for item, shown, seed in self._shown(dataset, census):
            yield Prompt(
                key=Key(
                    fact=item.fact.id,
                    relation=item.fact.relation,
                    template=self.name,
                    subject=item.fact.subject.name,
                ),
                prefix=self._prefix(item, shown),
                want=Score(options=item.texts or item.options),
                own={"seed": seed},
            )
        if not census.examples:
            refuse_nothing(dataset, census)

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Judge every choice and compute every number."""
        census, prefixes = Census(), dict[str, str]()
        choices = self._choices(dataset, answered, census, prefixes)
        reading = Reading(
            name="IC-LKE",
            wanted=self.n,
            options=self.options,
            levels=self.levels,
            seeds=self._seeds(dataset),
            prefixes=prefixes,
            notes=(
                f"Before each subject stand up to {self.n} training facts of its relation, drawn "
                "by the seed; a fact about the subject itself is replaced by a spare.",
            ),
        )
        report = build_report(dataset, choices, census, reading)
        return replace(report, judged=self._judged(dataset, choices))

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every choice, for comparisons with other runs."""
        return self._judged(dataset, self._choices(dataset, answered, Census(), {}))

    def _judged(self, dataset: Dataset, choices: Choices) -> Judged:
        return as_judged(choices, self._seeds(dataset), separators(self.inside, self.between))

    def _choices(
        self, dataset: Dataset, answered: Given, census: Census, prefixes: dict[str, str]
    ) -> Choices:
        """The judged choices; on the way a prompt of each relation is kept."""
        items: dict[tuple[str, str], Item] = {}
        for item, shown, _ in self._shown(dataset, census):
            relation = item.fact.relation
            items.setdefault((relation, item.fact.id), item)
            if relation not in prefixes:
                prefixes[relation] = self._prefix(item, shown)
        return judge(
            Asked.of(dataset, dataset.asked_relations(), items.values()), answered, ["seed"]
        )

    def _shown(
        self, dataset: Dataset, census: Census
    ) -> Iterator[tuple[Item, tuple[Line, ...], int]]:
        """Every fact with the examples of every draw; the first draw is counted."""
        for relation in dataset.asked_relations():
            pool = OptionPool(dataset, relation.id, self.options)
            for turn, seed in enumerate(self._seeds(dataset)):
                lines = training(dataset, relation.id, seed)
                counted = census if turn == 0 else Census()
                if not lines:
                    counted.without_training.append(relation.id)
                    continue
                for item in pool.items(counted, spell=self.names == "all"):
                    shown = examples(lines, item.fact.subject, self.n)
                    if not shown:
                        counted.no_examples += 1
                        continue
                    counted.shown(relation.id, len(shown), self.n, shown != lines[: len(shown)])
                    yield item, shown, seed

    def _prefix(self, item: Item, shown: tuple[Line, ...]) -> str:
        return asked(shown, item.fact.subject.name, separators(self.inside, self.between))

    def _seeds(self, dataset: Dataset) -> range:
        first = dataset.selection.seed
        return range(first, first + self.seeds)


COMPONENT = IcLke
