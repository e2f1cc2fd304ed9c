"""lke-baselines: is a fact found more often behind examples than behind a sentence?

Knows no model. The same facts with the same options are asked behind examples (IC-LKE), in
templates with the answer last, and behind examples written as such templates; and the model writes
on freely from examples and from templates. methods: accuracy of each way, paired differences, the
share of relations in which in-context estimation is ahead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from sonde.core.abilities import Ability, need
from sonde.core.answers import Generated
from sonde.core.columns import Given, rows_of
from sonde.core.facts import Dataset, Fact
from sonde.core.prompts import Prompt
from sonde.core.reports import Report
from sonde.core.settings import setting
from sonde.probes.lke.items import BETWEEN_HELP, INSIDE_HELP, OPTIONS_HELP, separators
from sonde.probes.lke.studies.ask import asked_relations
from sonde.probes.lke.studies.baselines_ask import Asking, gold_names, groups, prompts, wordings
from sonde.probes.lke.studies.baselines_report import Reading, build_report
from sonde.probes.lke.studies.fact_scores import Choices
from sonde.prompting.matching import check_language, correct
from sonde.prompting.options import MANY


@dataclass(frozen=True, slots=True, kw_only=True)
class LkeBaselines:
    """In-context estimation beside templates and written answers, on the same options."""

    name: ClassVar[str] = "lke-baselines"
    shrinks: ClassVar[str] = "n"

    n: int = setting(50, "how many examples to show", least=1)
    templates: int = setting(3, "the most templates of each kind and relation", least=1)
    separating: bool = setting(True, "also show the examples written as each template")
    most: int = setting(50, "tokens of a written answer; 0 for no written answers", least=0)
    options: int = setting(MANY, OPTIONS_HELP, least=2)
    inside: str = setting(" ", INSIDE_HELP)
    between: str = setting(" ", BETWEEN_HELP)
    language: str = setting(
        "en", "whose lemmas written answers are compared by, or none: as written", reads=True
    )

    def __post_init__(self) -> None:
        check_language(self.language)
        separators(self.inside, self.between)

    def suited(self, can: frozenset[Ability]) -> Self:
        """As it is: the model must score, and write unless no written answers are wanted."""
        need(self.name, can, "score")
        if self.most:
            need(f"{self.name}, unless most=0,", can, "generate")
        return self

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """Relation by relation, one way of asking after the other."""
        known = wordings(dataset, self.templates)
        asking = Asking(
            n=self.n,
            separators=separators(self.inside, self.between),
            separating=self.separating,
            most=self.most,
        )
        found, _ = asked_relations(dataset, self.options, 1)
        for one in found:
            yield from prompts(one, known, asking)

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Judge every answer and compare the ways of asking fact by fact."""
        found, census = asked_relations(dataset, self.options, 1)
        known = wordings(dataset, self.templates)
        facts = {(f.relation, f.id): f for one in found for f in one.facts}
        choices, written = Choices({one.relation: one.facts for one in found}), 0
        given = 0
        for row in rows_of(answered):
            if isinstance(row.answer, Generated):
                fact = facts[row.key.relation, row.key.fact]
                right = self._right(row.answer.text, fact)
                choices.right.add(fact.relation, fact.id, row.key.template, float(right))
                written += 1
                given += right and self._right(fact.subject.name, fact)
            else:
                choices.add(row)
        reading = Reading(
            groups=groups(found, known, separating=self.separating, written=bool(self.most)),
            known=known,
            n=self.n,
            options=self.options,
            most=self.most,
            prompts=choices.prompts + written,
            ties=choices.ties,
            given=given,
        )
        return build_report(dataset, found, census, choices.right, reading)

    def _right(self, text: str, fact: Fact) -> bool:
        """Whether a right name occurs in a text."""
        return correct(text, gold_names(fact), self.language)


COMPONENT = LkeBaselines
