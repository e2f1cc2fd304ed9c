r"""Framing: the same facts as sentences to complete, as questions and as statements to check.

Knows no model. Examples, where there are any, are the same before every prompt of a task and a
relation, worded as the task's first template:

    Statement: The capital of Chile is Santiago. The statement is True or False? True
    Statement: The capital of Peru is Tokyo. The statement is True or False? False
    Statement: The capital of Austria is Vienna. The statement is True or False?

Numbers: accuracy of each task over paraphrases with its spread, fact checking by option and by
written verdict, and what a right or a wrong name in front of a question does, beside the controls:
the commonest object, and always the same verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice, product
from typing import ClassVar

from sonde.core.abilities import needs
from sonde.core.columns import Given
from sonde.core.components import setting
from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Fact, Relation, Template
from sonde.core.fingerprints import draw_key
from sonde.core.prompts import Generate, Prompt, Score, Want
from sonde.core.reports import Report
from sonde.metrics.judged import Judged
from sonde.former.framing.judge import FEW, MOST, TASKS, Outcomes, Task, Templates, judge
from sonde.former.framing.report import build_report
from sonde.prompting.abstaining import ALL, HELP, abstaining, check_abstaining
from sonde.prompting.few_shot import Shot, Worded, shown
from sonde.prompting.frames import (
    Asked,
    AskedFacts,
    Form,
    Item,
    LeftOut,
    Told,
    answered,
    asked,
    attempts,
    examples,
    frames,
    put,
    sentences,
    statements,
)
from sonde.prompting.languages import (
    ENGLISH,
    MARKERS_HELP,
    STOP_HELP,
    Phrasing,
    check_markers,
    phrasing,
)
from sonde.prompting.matching import LANGUAGE_HELP, OWN, check_language, language_of

BLOCK = 1024
"""Facts that are asked template by template, so that prompts which begin alike come together."""

TOGETHER = 64
"""Facts whose statements are judged by option, then in writing, so that texts meet in a shard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    """The same facts as sentences, as questions, as statements to check, and after other names."""

    name: ClassVar[str] = "framing"

    frame: Form = setting("plain", "ask questions as they are, or between Q: and A: (qa)")
    shots: int = setting(0, "how many examples of the relation stand before a prompt", min=0)
    paraphrases: int = setting(7, "the most templates of a relation for each task", min=1)
    negatives: int = setting(5, "the most wrong objects for each fact", min=1)
    markers: tuple[str, ...] = setting((), MARKERS_HELP)
    stop: str = setting("", STOP_HELP)
    language: str = setting(OWN, LANGUAGE_HELP, analysis_only=True)

    abstaining: tuple[str, ...] = setting((ALL,), HELP, analysis_only=True)

    def __post_init__(self) -> None:
        check_markers(self.markers)
        check_language(self.language)
        check_abstaining(self.abstaining)

    suited = needs("generate", "score")

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """Relation by relation, task by task, template by template."""
        left_out, some = self._left_out(), False
        for relation in self._relations(dataset):
            check_language(language_of(self.language, relation.language))
            for prompt in Asking(dataset, relation, self, left_out).prompts():
                some = True
                yield prompt
        if not some:
            _refuse_nothing(dataset, left_out)

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Judge every answer and compute every number."""
        outcomes = self._outcomes(dataset, answered)
        templates = {r.id: self.templates(r) for r in dataset.asked_relations()}
        more = attempts(self.frame, self.shots)
        return build_report(dataset, outcomes, templates, self.paraphrases, more)

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every completed sentence and every answer to a bare question."""
        return self._outcomes(dataset, answered).judged()

    def templates(self, relation: Relation) -> Templates:
        """What a relation is asked with, by task, the template of the examples first."""
        return {
            "wp": sentences(relation, self.paraphrases),
            "qa": frames(relation, self.paraphrases),
            "fc": statements(relation, self.paraphrases),
        }

    def _outcomes(self, dataset: Dataset, answered: Given) -> Outcomes:
        asked = Asked.of(dataset, self._relations(dataset), self._left_out())
        templates = [self.templates(relation) for relation in asked.relations]
        abstains = abstaining(self.abstaining)
        languages = [language_of(self.language, relation.language) for relation in asked.relations]
        return judge(asked, templates, answered, languages=languages, abstains=abstains)

    def _relations(self, dataset: Dataset) -> list[Relation]:
        """Those that some template asks about."""
        return [r for r in dataset.asked_relations() if any(self.templates(r).values())]

    def _left_out(self) -> LeftOut:
        return LeftOut(shots=self.shots, negatives=self.negatives)


COMPONENT = Framing


class Asking:
    """What is asked in one relation."""

    def __init__(
        self, dataset: Dataset, relation: Relation, settings: Framing, left_out: LeftOut
    ) -> None:
        self._relation, self._seed, self._form = relation, dataset.selection.seed, settings.frame
        self._around = phrasing(relation.language, markers=settings.markers, stop=settings.stop)
        self._templates = settings.templates(relation)
        self._facts = AskedFacts(dataset, relation.id, left_out)
        self._examples = cache(self._examples_of)

    def prompts(self) -> Iterator[Prompt]:
        """Task by task and template by template, some facts at a time."""
        waiting = iter(self._facts)
        while block := list(islice(waiting, BLOCK)):
            parts = [block[start : start + TOGETHER] for start in range(0, len(block), TOGETHER)]
            for task in TASKS:
                for number, template in enumerate(self._templates[task]):
                    for part, want in product(parts, wants(task, self._around)):
                        for item in part:
                            for kind, name in named(task, number, item):
                                text = self._text(item, task, template, name)
                                own = {"task": task, "told": kind, "object": name}
                                yield item.prompt(template, text, want, own)

    def _text(self, item: Item, task: Task, template: Template, name: str) -> Worded:
        """Everything up to where the answer begins; `name` is that of an object, or empty."""
        subject, form, around = item.fact.subject.name, self._form, self._around
        before = self._examples(task, item.before)
        if task == "wp":
            return before.then(template.fill(subject)[0])
        if task == "fc":
            return before.then(asked(checked(template, subject, name, around), form, around))
        return before.then(put(template, subject, form, name, around))

    def _examples_of(self, task: Task, before: tuple[Fact, ...]) -> Worded:
        """The examples of a task; nearly all facts have the same ones."""
        base = self._templates[task][0]
        if task == "qa":
            return examples(base, before, self._form, self._around)
        if task == "fc":
            return shown(self._verdicts(before))
        parts = ((base.fill(f.subject.name), f.objects[0].name) for f in before)
        return shown(Shot(start, f"{name}{end}\n") for (start, end), name in parts)

    def _verdicts(self, before: Sequence[Fact]) -> Iterator[Shot]:
        """True and false statements in turn; the seed says which comes first."""
        base, seed, around = self._templates["fc"][0], self._seed, self._around
        first = draw_key(seed, f"verdict:{self._relation.id}") % 2
        for number, fact in enumerate(before):
            right = (number + first) % 2 == 0
            names = (fact.objects[0].name,) if right else self._facts.wrong(fact, 1)[0]
            for name in names:  # none, where no object is wrong
                text = checked(base, fact.subject.name, name, around)
                yield answered(text, around.verdicts[0 if right else 1], self._form, around)


def named(task: Task, number: int, item: Item) -> Iterator[tuple[Told, str]]:
    """The objects that a fact's prompts in the task's template of that number name, if any."""
    if task != "fc":
        yield "none", ""
    if task == "fc" or (task == "qa" and number == 0):  # names stand before the base frame alone
        yield "right", item.gold
        yield from (("wrong", name) for name in item.wrong)


def wants(task: Task, around: Phrasing = ENGLISH) -> tuple[Want, ...]:
    """What the model is to do: choose a verdict and write one, or write an answer."""
    if task == "fc":
        return Score(options=around.verdicts), Generate(most=FEW)
    return (Generate(most=MOST),)


def filled(template: Template, subject: str, name: str) -> str:
    """A whole sentence about a subject and an object."""
    return name.join(template.fill(subject))


def checked(template: Template, subject: str, name: str, around: Phrasing = ENGLISH) -> str:
    """A statement and the question whether it is true.

    >>> checked(Template(id="t", text="[X] is in [Y] ."), "Oslo", "Norway")
    'Statement: Oslo is in Norway. The statement is True or False?'
    """
    statement = filled(template, subject, name).strip().rstrip(f" .{around.stop}")
    return around.check.replace("[S]", statement)


def _refuse_nothing(dataset: Dataset, left_out: LeftOut) -> None:
    """Say why there is nothing to ask; called where a whole dataset gave no prompt."""
    if left_out.held:
        raise DataError(
            f"dataset {dataset.name!r}: every fact that is asked about is needed as an example, so "
            "none is left to ask about; set shots lower, or give other facts the split 'train'"
        )
    raise DataError(
        f"dataset {dataset.name!r} has no templates for what is asked: neither statements, such as "
        "'[X] was born in [Y].', nor questions, such as 'Where was [X] born? [Y].'; add some, or "
        "name other relations"
    )
