"""CounterFact: two options after each prompt, what is true and what an edit would write.

A case is a fact with a wrong object: the one it names, or one of the relation's. It is asked with
the first template of its relation, the other templates are its paraphrases, and its neighbours,
facts of the split `neighbourhood` whose detail `case` names it, are asked with the first one too.

Numbers: efficacy, paraphrase and neighbourhood score, each with its magnitude, and the harmonic
mean of the three, over cases, over relations and by relation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from sonde.core.abilities import needs
from sonde.core.columns import Given
from sonde.core.components import setting
from sonde.core.errors import DataError
from sonde.core.facts import DATE_SLOT, Dataset, Relation, Template
from sonde.core.prompts import Block, Score
from sonde.core.reports import Report
from sonde.core.scores import Normalise
from sonde.metrics.judged import Judged
from sonde.former.counterfact.judge import Cases, Outcomes, Role, judge
from sonde.former.counterfact.report import build_report
from sonde.prompting.sentences import sentences, usual_names

if TYPE_CHECKING:
    from polars import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterfact:
    """Whether what is true is likelier than a falsehood, in other words and of neighbours too."""

    name: ClassVar[str] = "counterfact"

    edited: bool = setting(
        False,
        "the model was edited: after a case's own prompts the new object is to be likelier",
        analysis_only=True,
    )
    normalise: Normalise = setting(
        "none",
        "compare options by summed log-probability (none) or per token (tokens)",
        analysis_only=True,
    )

    suited = needs("score")

    def ask(self, dataset: Dataset) -> Iterator[Block]:
        """The cases of each relation, template by template, then their neighbours."""
        some = False
        for relation in dataset.asked_relations():
            cases = Cases(dataset, relation.id)
            for number, template in enumerate(relation.templates):
                role: Role = "paraphrase" if number else "efficacy"
                if block := _block(relation, template, cases.own, role):
                    some = True
                    yield block
            for template in relation.templates[:1]:
                if block := _block(relation, template, cases.neighbours, "neighbourhood"):
                    yield block
        if not some:
            raise DataError(
                f"dataset {dataset.name!r} has no case to ask: a case is a fact with a wrong "
                "object ('wrong', or another one of its relation) and with templates; those of "
                "CounterFact are read by counterfact:FILE"
            )

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Judge every answer and average."""
        return build_report(dataset, self._outcomes(dataset, answered), edited=self.edited)

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every judged prompt, for comparisons with other runs."""
        return self._outcomes(dataset, answered).judged()

    def _outcomes(self, dataset: Dataset, answered: Given) -> Outcomes:
        return judge(dataset, answered, self.normalise, edited=self.edited)


def _block(relation: Relation, template: Template, facts: DataFrame, role: Role) -> Block | None:
    """Facts asked with a template, those that have what it takes from them; None without any."""
    import polars
    from polars import concat_list

    asked = facts.filter(polars.Series(_fits(template, facts), dtype=polars.Boolean))
    if not asked.height:
        return None
    block = sentences(relation, [template], usual_names(asked), Score())
    more = asked.select("case", role=polars.lit(role), options=concat_list("true", "new"))
    return replace(block, frame=block.frame.hstack(more))


def _fits(template: Template, facts: DataFrame) -> list[bool]:
    """Whether each fact has the date and the details that a template takes."""
    slots = template.fact_slots

    def has(date: str, details: Sequence[dict[str, Any]]) -> bool:
        own = {f"[details.{detail['name']}]" for detail in details}
        return own.union([DATE_SLOT] if date else []).issuperset(slots)

    return [has(*row) for row in facts.select("date", "details").iter_rows()]


COMPONENT = Counterfact
