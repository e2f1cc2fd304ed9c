"""Framing: the same facts as sentences to complete, as questions and as statements to check.

Knows no model. methods: accuracy of each task over paraphrases with its spread, fact checking by
option and by written verdict, and what a right or a wrong name in front of a question does, beside
the controls: the commonest object, and always the same verdict.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from sonde.core.abilities import Ability, need
from sonde.core.columns import Given
from sonde.core.facts import Dataset
from sonde.core.prompts import Prompt
from sonde.core.reports import Report
from sonde.probes.framing.ask import Census, Settings, every, refuse_nothing
from sonde.probes.framing.judge import judge
from sonde.probes.framing.report import build_report


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing(Settings):
    """The same facts as sentences, as questions, as statements to check, and after other names."""

    name: ClassVar[str] = "framing"

    def suited(self, can: frozenset[Ability]) -> Self:
        """As it is: the model must write answers, and score verdicts."""
        need(self.name, can, "generate")
        need(self.name, can, "score")
        return self

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """Relation by relation, task by task, template by template."""
        census, some = Census(), False
        for asking in every(dataset, self):
            for prompt in asking.prompts(census):
                some = True
                yield prompt
        if not some:
            refuse_nothing(dataset, census)

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Judge every answer and compute every number."""
        return build_report(dataset, judge(dataset, answered, self), self)


COMPONENT = Framing
