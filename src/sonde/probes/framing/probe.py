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
from sonde.core.columns import Given, rows_of
from sonde.core.facts import Dataset
from sonde.core.prompts import Prompt
from sonde.core.reports import Report
from sonde.core.settings import setting
from sonde.probes.framing.ask import Census, Shape, every, refuse_nothing
from sonde.probes.framing.report import build_report
from sonde.probes.framing.tally import Tally
from sonde.prompting.frames import Form
from sonde.prompting.matching import check_language


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    """The same facts as sentences, as questions, as statements to check, and after other names."""

    name: ClassVar[str] = "framing"

    frame: Form = setting("plain", "ask questions as they are, or between Q: and A: (qa)")
    shots: int = setting(0, "how many examples of the relation stand before a prompt", least=0)
    paraphrases: int = setting(7, "the most templates of a relation for each task", least=1)
    negatives: int = setting(5, "the most wrong objects for each fact", least=1)
    language: str = setting(
        "en", "whose lemmas answers are compared by, or none: as they are written", reads=True
    )

    def __post_init__(self) -> None:
        check_language(self.language)

    def suited(self, can: frozenset[Ability]) -> Self:
        """As it is: the model must write answers, and score verdicts."""
        need(self.name, can, "generate")
        need(self.name, can, "score")
        return self

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """Relation by relation, task by task, template by template."""
        census, some = Census(), False
        for asking in every(dataset, self._shape(), census):
            for prompt in asking.prompts():
                some = True
                yield prompt
        if not some:
            refuse_nothing(dataset, census)

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Judge every answer and compute every number."""
        tally = Tally(dataset, self._shape(), self.language)
        for row in rows_of(answered):
            tally.add(row)
        return build_report(dataset, tally.outcomes(), self._shape())

    def _shape(self) -> Shape:
        return Shape(
            form=self.frame,
            shots=self.shots,
            paraphrases=self.paraphrases,
            negatives=self.negatives,
        )


COMPONENT = Framing
