"""qa: questions answered in writing from memory, the answers a list that is judged as a set.

Knows no model. Every fact is asked once, behind examples of how others are answered; the default is
the protocol of KAMEL. Numbers: precision, recall and F1 of each fact's answers, whole sets, at
least one right answer; mean over facts and over relations, beside always answering the commonest
object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from sonde.core.abilities import needs
from sonde.core.columns import Given
from sonde.core.components import setting
from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Dataset, Relation, Template, slot_values
from sonde.core.prompts import Generate, Key, Prompt
from sonde.core.reports import Report
from sonde.metrics.judged import Judged
from sonde.former.qa.judge import Match, Outcomes, Rule, judge
from sonde.former.qa.report import build_report
from sonde.prompting.abstaining import ALL, HELP, abstaining, check_abstaining
from sonde.prompting.few_shot import Context, Contexts, Layout, ShotsPer, Target
from sonde.prompting.matching import LANGUAGE_HELP, OWN, check_language, language_of

LAYOUTS: Mapping[str, str] = {
    "kamel": "[Q] [A]%\n",
    "popqa": "Q: [Q] A: [A]\n\n",
    "lines": "Q: [Q]\nA: [A]\n",
}
"""How questions and answers are written, by name: KAMEL's way, PopQA's, and one of plain lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Qa:
    """Questions answered in writing; lists of answers are judged as sets."""

    name: ClassVar[str] = "qa"
    shrinks: ClassVar[str] = "shots"

    context: Context = setting(
        "template",
        "examples before the question: none (zero-shot), of any relation (random), of the same "
        "relation, or in the same words (template)",
    )
    shots: int = setting(5, "how many examples stand before a question", min=1)
    shots_per: ShotsPer = setting(
        "template", "draw examples once for each question template, or anew for each fact"
    )
    layout: str = setting(
        "kamel",
        "how question and answers are written: kamel, popqa, lines, or a text with [Q], [A]",
    )
    separator: str = setting(
        "; ", "what stands between two answers; empty: one answer is shown, and one is read"
    )
    instruction: str = setting("", "a line before everything")
    template: int = setting(1, "which question of each relation to ask, counted from 1", min=1)
    most: int = setting(100, "the most tokens of an answer", min=1)
    match: Match = setting(
        "equal", "an answer is right if it is a name of the object, or a name stands within it",
        analysis_only=True,
    )  # fmt: skip
    language: str = setting(OWN, LANGUAGE_HELP, analysis_only=True)

    abstaining: tuple[str, ...] = setting((ALL,), HELP, analysis_only=True)

    def __post_init__(self) -> None:
        check_language(self.language)
        check_abstaining(self.abstaining)
        if self.separator and not self.separator.strip():
            raise UsageError(
                "setting separator must have more than spaces, such as '; ', not "
                f"{self.separator!r}"
            )
        self._layout()

    suited = needs("generate")

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """One question per fact."""
        layout = self._layout()
        want = Generate(most=self.most, until=layout.end)
        contexts = Contexts(
            dataset,
            self._questions,
            style="qa",
            context=self.context,
            shots=self.shots,
            shots_per=self.shots_per,
            layout=lambda relation: layout,
            seed=dataset.selection.seed,
        )
        for relation, template in self._asked(dataset):
            check_language(language_of(self.language, relation.language))
            for fact in dataset.asked(relation.id):
                target = Target(
                    fact=fact.id,
                    relation=relation.id,
                    names=fact.subject.names,
                    slots={} if template.plain else slot_values(fact),
                )
                name = fact.subject.name
                text, turns = contexts.prompt(target, template, name)
                yield Prompt(
                    key=Key(fact=fact.id, relation=relation.id, template=template.id, subject=name),
                    prefix=text,
                    turns=turns,
                    want=want,
                )

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Judge every list and average."""
        return build_report(
            dataset,
            self._outcomes(dataset, answered),
            notes=self._notes(),
            attempts=self._attempts(),
        )

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every judged fact, for comparisons with other runs."""
        return self._outcomes(dataset, answered).judged

    def _outcomes(self, dataset: Dataset, answered: Given) -> Outcomes:
        rule = Rule(separator=self.separator, match=self.match, language=self.language)
        abstains = abstaining(self.abstaining)
        return judge(dataset, self._asked(dataset), answered, rule=rule, abstains=abstains)

    def _layout(self) -> Layout:
        return Layout(
            text=LAYOUTS.get(self.layout, self.layout.replace("\\n", "\n")),
            head=f"{self.instruction}\n" if self.instruction else "",
            separator=self.separator,
        )

    def _questions(self, relation: Relation) -> tuple[Template, ...]:
        """The question that a relation is asked with; none where it has too few."""
        every = tuple(t for t in relation.templates if t.style == "question")
        return every[self.template - 1 : self.template]

    def _asked(self, dataset: Dataset) -> list[tuple[Relation, Template]]:
        """The relations that can be asked, each with its question; refuses where none can."""
        relations = dataset.asked_relations()
        asked = [(relation, t) for relation in relations for t in self._questions(relation)]
        if asked:
            return asked
        which = f"question template {self.template}" if self.template > 1 else "question template"
        raise DataError(
            f"dataset {dataset.name!r} has no {which} for what is asked; a template with style "
            "'question', such as 'Where was [X] born?', is needed: give one with --wording, "
            "or name other relations"
        )

    def _attempts(self) -> list[str]:
        """What may make a model write something."""
        other = [] if self.layout == "lines" else ["--set layout=lines"]
        if self.context == "zero-shot":
            return ["--set context=template", *other]
        return [f"--set shots={2 * self.shots}", *other]

    def _notes(self) -> tuple[str, ...]:
        rule = "is a name of the object" if self.match == "equal" else "holds a name of the object"
        between = f" between {self.separator.strip()!r}" if self.separator else ""
        return (
            f"Answers were written greedily, {self.most} tokens at most; what stands in the first "
            f"line{between} is an answer. It is right if it {rule}, words compared by their "
            "lemmas, numbers and dates by what they mean; each object counts once.",
            "Precision of an empty list is 0, and so is F1. Accuracy ('any') asks for one right "
            "answer, whatever else is in the list.",
        )


COMPONENT = Qa
