"""lke-separators: does it matter what stands between subject, object and the next example?

Knows no model. The same facts with the same options are asked behind the same examples, written
with one pair of separators after the other.
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
from sonde.probes.lke.items import OPTIONS_HELP
from sonde.probes.lke.studies.ask import after_examples, asked_relations
from sonde.probes.lke.studies.fact_scores import Choices
from sonde.probes.lke.studies.separators_report import Reading, build_report
from sonde.prompting.options import MANY
from sonde.prompting.separators import USUAL, named_separators

SEPARATORS = (
    USUAL,
    "colon/space",
    "comma/space",
    "newline/space",
    "space/comma",
    "space/newline",
    "colon/comma",
    "colon/newline",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LkeSeparators:
    """Accuracy under several separators, the same facts, options and examples."""

    name: ClassVar[str] = "lke-separators"
    shrinks: ClassVar[str] = "n"

    separators: tuple[str, ...] = setting(
        SEPARATORS,
        "inside a pair / between two, by name (space, colon, comma, newline) or as written",
    )
    n: int = setting(50, "how many examples to show", least=1)
    seeds: int = setting(3, "how often to draw the examples", least=1)
    options: int = setting(MANY, OPTIONS_HELP, least=2)

    def __post_init__(self) -> None:
        if not self.separators:
            raise UsageError("setting separators is empty; name at least one, such as space/space")
        for name in self.separators:
            named_separators(name)

    def suited(self, can: frozenset[Ability]) -> Self:
        """Any model that can score options will do."""
        need(self.name, can, "score")
        return self

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """Separator by separator and draw by draw; prompts of a relation share their beginning."""
        found, _ = asked_relations(dataset, self.options, self.seeds)
        for one in found:
            for way in self._ways():
                for turn in range(self.seeds):
                    yield from after_examples(one, turn, self.n, named_separators(way), way)

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Judge every choice and average by separator."""
        found, census = asked_relations(dataset, self.options, self.seeds)
        choices = Choices({one.relation: one.facts for one in found}, self.seeds)
        for row in rows_of(answered):
            choices.add(row)
        reading = Reading(ways=self._ways(), n=self.n, options=self.options, seeds=self.seeds)
        return build_report(dataset, found, census, choices, reading)

    def _ways(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.separators))


COMPONENT = LkeSeparators
