"""IC-LKE: which object follows a subject after other facts of its relation, and nothing else.

The examples say what is asked; there is no template and no instruction. methods: accuracy over
options, probability mass on the right one, Accuracy@K with the share retained, spread over draws
of the examples, beside the majority control.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np

from sonde.core.abilities import Ability, need
from sonde.core.answers import Scored
from sonde.core.columns import Given, rows_of
from sonde.core.errors import AbilityError
from sonde.core.facts import Dataset, Fact
from sonde.core.prompts import Key, Prompt, Score
from sonde.core.reports import Report
from sonde.core.scores import option_logps
from sonde.core.settings import setting
from sonde.metrics.choices import pooled
from sonde.metrics.judged import Judged
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
from sonde.probes.lke.tally import Outcomes, Tally, as_judged
from sonde.prompting.options import MANY
from sonde.prompting.sequences import Separators, asked, examples, training


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A fact with its options and, where these are scored under all names, whose each name is."""

    item: Item
    spelled: dict[str, str] | None

    def judge(self, tally: Tally, turn: int, answer: Scored) -> None:
        """The choice is between usual names; other names only add to the mass."""
        fact, logps = self.item.fact, option_logps(answer)
        if self.spelled is None:
            tally.add(fact, turn, answer.options, logps)
            return
        own = [self.spelled[name] == fact.objects[0].name for name in answer.options]
        usual = np.array([self.spelled[name] == name for name in answer.options])
        chosen = [name for name in answer.options if self.spelled[name] == name]
        tally.add(fact, turn, chosen, logps[usual], pooled(logps, own))


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
        self._separators()

    def suited(self, can: frozenset[Ability]) -> Self:
        """Any model that can score options will do."""
        need(self.name, can, "score")
        return self

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """One prompt per fact and draw of examples; those of a relation share their beginning."""
        census, some = Census(), False
        for _, prompt in self._prompts(dataset, census):
            some = True
            yield prompt
        if not some:
            refuse_nothing(dataset, census)

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Judge every choice and compute every number."""
        census, prefixes, outcomes = self._tallied(dataset, answered)
        reading = Reading(
            name="IC-LKE",
            wanted=self.n,
            options=self.options,
            levels=self.levels,
            prefixes=prefixes,
            notes=(
                f"Before each subject stand up to {self.n} training facts of its relation, drawn "
                "by the seed; a fact about the subject itself is replaced by a spare.",
            ),
        )
        return build_report(dataset, census, outcomes, reading)

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every choice, for comparisons with other runs."""
        return as_judged(self._tallied(dataset, answered)[2], self._separators())

    def _tallied(
        self, dataset: Dataset, answered: Given
    ) -> tuple[Census, dict[str, str], Outcomes]:
        census, prefixes, asked = Census(), dict[str, str](), dict[tuple[str, str], _Asked]()
        for one, prompt in self._prompts(dataset, census):
            prefixes.setdefault(one.item.fact.relation, prompt.prefix)
            asked[one.item.fact.relation, one.item.fact.id] = one
        seeds = self._seeds(dataset)
        tally = Tally(dataset, (one.item.fact for one in asked.values()), seeds)
        for row in rows_of(answered):
            if not isinstance(row.answer, Scored):
                raise AbilityError("ic-lke reads scored options, not other answers")
            one = asked[row.key.relation, row.key.fact]
            one.judge(tally, seeds.index(int(row.key.context)), row.answer)
        return census, prefixes, tally.outcomes()

    def _prompts(self, dataset: Dataset, census: Census) -> Iterator[tuple[_Asked, Prompt]]:
        """Every prompt with the fact it asks about; the first draw is counted."""
        for relation in dataset.asked_relations():
            offers = OptionPool(dataset, relation.id, self.options)
            for turn, seed in enumerate(self._seeds(dataset)):
                lines = training(dataset, relation.id, seed)
                counted = census if turn == 0 else Census()
                if not lines:
                    counted.without_training.append(relation.id)
                    continue
                for item in offers.items(counted):
                    shown = examples(lines, item.fact.subject, self.n)
                    if not shown:
                        counted.no_examples += 1
                        continue
                    counted.shown(relation.id, len(shown), self.n, shown != lines[: len(shown)])
                    prefix = asked(shown, item.fact.subject.name, self._separators())
                    spelled = offers.spelled(item) if self.names == "all" else None
                    texts = item.options if spelled is None else tuple(sorted(spelled))
                    one = _Asked(item=item, spelled=spelled)
                    yield one, _prompt(item.fact, prefix, texts, seed)

    def _seeds(self, dataset: Dataset) -> range:
        first = dataset.selection.seed
        return range(first, first + self.seeds)

    def _separators(self) -> Separators:
        return separators(self.inside, self.between)


def _prompt(fact: Fact, prefix: str, options: tuple[str, ...], seed: int) -> Prompt:
    key = Key(
        fact=fact.id,
        relation=fact.relation,
        template="ic-lke",
        subject=fact.subject.name,
        context=str(seed),
    )
    return Prompt(key=key, prefix=prefix, want=Score(options=options))


COMPONENT = IcLke
