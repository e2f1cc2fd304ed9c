"""lke-shots: how many examples does in-context estimation need?

Knows no model. The same facts with the same options are asked behind one, two, five … examples,
each time with several draws of examples. methods: accuracy against the number of examples with the
spread over draws, and the fewest examples that reach 95 % of the accuracy with the most.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from sonde.core.abilities import Ability, need
from sonde.core.columns import Given, rows_of
from sonde.core.errors import UsageError
from sonde.core.facts import Dataset
from sonde.core.prompts import Prompt
from sonde.core.reports import Report
from sonde.core.settings import setting
from sonde.probes.lke.items import BETWEEN_HELP, INSIDE_HELP, OPTIONS_HELP, separators
from sonde.probes.lke.studies.ask import after_examples, asked_relations
from sonde.probes.lke.studies.fact_scores import Choices
from sonde.probes.lke.studies.shots_report import Reading, build_report, sizes, way
from sonde.prompting.options import MANY


@dataclass(frozen=True, slots=True, kw_only=True)
class LkeShots:
    """Accuracy against the number of examples, and how many are enough."""

    name: ClassVar[str] = "lke-shots"

    n: tuple[int, ...] = setting(
        (1, 2, 5, 10, 20, 50), "how many examples to show, one number after the other"
    )
    seeds: int = setting(5, "how often to draw the examples", least=1)
    options: int = setting(MANY, OPTIONS_HELP, least=2)
    inside: str = setting(" ", INSIDE_HELP)
    between: str = setting(" ", BETWEEN_HELP)
    share: float = setting(
        0.95, "the mark: this share of the accuracy with the most examples", reads=True
    )

    def __post_init__(self) -> None:
        if not self.n or min(self.n) < 1:
            raise UsageError(f"setting n takes numbers of examples from 1 on, not {self.n}")
        if not 0 < self.share <= 1:
            raise UsageError(f"setting share must be above 0 and at most 1, not {self.share:g}")
        separators(self.inside, self.between)

    def suited(self, can: frozenset[Ability]) -> Self:
        """Any model that can score options will do."""
        need(self.name, can, "score")
        return self

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """Draw by draw, few examples first; prompts of a relation share their beginning."""
        found, _ = asked_relations(dataset, self.options, self.seeds)
        chosen = separators(self.inside, self.between)
        for one in found:
            for turn in range(self.seeds):
                for n in dict.fromkeys(min(n, one.shown) for n in sizes(self.n, found)):
                    yield from after_examples(one, turn, n, chosen, way(n, one))

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Judge every choice and average by number of examples."""
        found, census = asked_relations(dataset, self.options, self.seeds)
        choices = Choices({one.relation: one.facts for one in found}, self.seeds)
        for row in rows_of(answered):
            choices.add(row)
        reading = Reading(
            sizes=sizes(self.n, found),
            wanted=max(self.n),
            options=self.options,
            seeds=self.seeds,
            share=self.share,
        )
        return build_report(dataset, found, census, choices, reading)


COMPONENT = LkeShots
