"""lke-baselines: is a fact found more often behind examples than behind a sentence?

Knows no model. The same facts with the same options are asked behind examples (IC-LKE), in
templates with the answer last, and behind examples written as such templates; and the model writes
on freely from examples and from templates. methods: accuracy of each way, paired differences, the
share of relations in which in-context estimation is ahead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from sonde.core.abilities import Ability, need
from sonde.core.columns import Answers, Given, in_blocks
from sonde.core.errors import AbilityError
from sonde.core.facts import Dataset, Fact
from sonde.core.prompts import Prompt
from sonde.core.reports import Report
from sonde.core.settings import setting
from sonde.probes.lke.choices import Asked, Choices
from sonde.probes.lke.items import BETWEEN_HELP, INSIDE_HELP, OPTIONS_HELP, separators
from sonde.probes.lke.studies.baselines_report import Compared, build_report
from sonde.probes.lke.studies.study import Study, asked_of, shown_relations
from sonde.probes.lke.studies.wordings import IN_CONTEXT, Asking, Wordings, groups, wordings
from sonde.prompting.matching import check_language, correct
from sonde.prompting.options import MANY

if TYPE_CHECKING:
    from polars import DataFrame

KEYS = ("how", "template")


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
        relations, _ = shown_relations(dataset, self.options, 1)
        for shown in relations:
            yield from asking.prompts(shown, known)

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Judge every answer and compare the ways of asking fact by fact."""
        shown, census = shown_relations(dataset, self.options, 1)
        known = wordings(dataset, self.templates)
        choices = self._choices(asked_of(dataset, shown), answered, known)
        study = Study(dataset=dataset, shown=shown, census=census, choices=choices)
        compared = Compared(
            study=study,
            groups=groups(known.kinds, separating=self.separating, written=bool(self.most)),
            known=known,
        )
        return build_report(compared, self.n, self.options, self.most)

    def _choices(self, asked: Asked, answered: Given, known: Wordings) -> Choices:
        """What was chosen and what was written, each with the kind of its wording."""
        judged = (self._judged(block, asked) for block in in_blocks(answered))
        choices = Choices.of(asked, judged, KEYS)
        frame = choices.frame.join(
            known.frame(), on=["relation", "template"], how="left", maintain_order="left"
        )
        kind = frame["kind"].fill_null(IN_CONTEXT)
        return replace(choices, frame=frame.with_columns(kind))

    def _judged(self, block: Answers, asked: Asked) -> DataFrame:
        from polars import DataFrame

        fact = block.numbers(("relation", "fact"), asked.places)
        if block.kind == "scored":
            return asked.judged(block.rated, fact).hstack(block.frame.select(KEYS))
        if block.kind != "generated":
            raise AbilityError("lke-baselines reads scored options and written texts")
        facts = [asked.items[number].fact for number in fact.tolist()]
        texts: list[str] = [answer.text for answer in block.columns]  # type: ignore[union-attr]
        right = np.array([self._right(*pair) for pair in zip(texts, facts, strict=True)])
        given = np.array([self._right(own.subject.name, own) for own in facts])
        columns = {"fact": fact.astype(np.int64), "right": right, "given": right & given}
        return DataFrame(columns).hstack(block.frame.select(KEYS))

    def _right(self, text: str, fact: Fact) -> bool:
        """Whether a right name occurs in a text."""
        names = tuple(name for entity in fact.objects for name in entity.names)
        return correct(text, names, self.language)


COMPONENT = LkeBaselines
