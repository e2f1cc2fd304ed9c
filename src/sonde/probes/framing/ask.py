r"""What `framing` asks of each fact: sentences to complete, questions, statements to check.

Knows facts and texts, nothing of answers. Examples, where there are any, are the same before every
prompt of a task and a relation, worded as the task's first template:

    Statement: The capital of Chile is Santiago. The statement is True or False? True
    Statement: The capital of Peru is Tokyo. The statement is True or False? False
    Statement: The capital of Austria is Vienna. The statement is True or False?
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Literal, cast

from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Fact, Relation, Template
from sonde.core.fingerprints import draw_key
from sonde.core.prompts import Generate, Key, Prompt, Score, Want
from sonde.prompting.few_shot import question
from sonde.prompting.frames import (
    Form,
    Shots,
    asked,
    draw_shots,
    frames,
    negatives,
    sentences,
    shown,
    told,
)
from sonde.prompting.options import correct_for, correct_names

Task = Literal["wp", "qa", "fc"]
"""Complete a sentence (word prediction), answer a question, or check a statement."""

Kind = Literal["none", "right", "wrong"]
"""Which object a prompt names: none, the fact's own or one that is wrong for it."""

Way = Literal["score", "write"]

TASKS: tuple[Task, ...] = ("wp", "qa", "fc")
WAYS: tuple[Way, ...] = ("score", "write")
TRUE, FALSE = "True", "False"
MOST = 15
FEW = 5
"""The most tokens of an answer, and of a verdict: more would not change its first word."""

BLOCK = 1024
"""Facts that are asked template by template, so that prompts which begin alike come together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How prompts look and how many there are at most."""

    form: Form
    shots: int
    paraphrases: int
    negatives: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One prompt of a fact: its task, how it is answered, and the object that it names.

    >>> Place.of("fc:score:wrong:Batman: Year One").name
    'Batman: Year One'
    """

    task: Task
    way: Way = "write"
    kind: Kind = "none"
    name: str = ""

    @property
    def context(self) -> str:
        """The place as a key's context; a wrong name stands last, for it may hold anything."""
        named = f":{self.name}" if self.kind == "wrong" else ""
        return f"{self.task}:{self.way}:{self.kind}{named}"

    @classmethod
    def of(cls, context: str) -> Place:
        """The place that a key's context tells."""
        task, way, kind, *name = context.split(":", 3)
        return cls(
            task=cast(Task, task),
            way=cast(Way, way),
            kind=cast(Kind, kind),
            name=name[0] if name else "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A fact with the names that are wrong for it, all that are right, and the facts shown."""

    fact: Fact
    wrong: tuple[str, ...]
    correct: frozenset[str]
    before: tuple[Fact, ...]

    @property
    def gold(self) -> str:
        """The name in a true statement, and in front of a question."""
        return self.fact.objects[0].name


@dataclass(slots=True, kw_only=True)
class Census:
    """What had to be left out or made smaller, by reason."""

    without: dict[Task, list[str]] = field(default_factory=lambda: {task: [] for task in TASKS})
    fewer: dict[Task, list[str]] = field(default_factory=lambda: {task: [] for task in TASKS})
    held: int = 0
    few_shots: int = 0
    without_wrong: int = 0
    few_wrong: int = 0
    correct_after_all: int = 0

    def counts(self) -> dict[str, int]:
        """Everything by name, as the report gives it."""
        return {
            "relations_without_sentences": len(self.without["wp"]),
            "relations_without_questions": len(self.without["qa"]),
            "relations_without_statements": len(self.without["fc"]),
            "relations_fewer_sentences": len(self.fewer["wp"]),
            "relations_fewer_questions": len(self.fewer["qa"]),
            "relations_fewer_statements": len(self.fewer["fc"]),
            "facts_held_back_as_examples": self.held,
            "facts_fewer_examples": self.few_shots,
            "facts_without_wrong_names": self.without_wrong,
            "facts_fewer_wrong_names": self.few_wrong,
            "wrong_names_correct_after_all": self.correct_after_all,
        }


class Asking:
    """What is asked in one relation; templates are by task, the one of the examples first."""

    def __init__(self, dataset: Dataset, relation: Relation, shape: Shape, census: Census) -> None:
        self._dataset, self._shape, self._census = dataset, shape, census
        self.relation = relation
        self.templates: Mapping[Task, tuple[Template, ...]] = {
            "wp": sentences(relation, shape.paraphrases),
            "qa": frames(relation, shape.paraphrases),
            "fc": statements(relation, shape.paraphrases),
        }
        for task, found in self.templates.items():
            if not found:
                census.without[task].append(relation.id)
            elif len(found) < shape.paraphrases:
                census.fewer[task].append(relation.id)
        self._written: dict[tuple[Task, tuple[str, ...]], str] = {}

    def items(self) -> Iterator[Item]:
        """The facts that are asked about; none where no template asks for them."""
        if not any(self.templates.values()):
            return
        for fact in self._dataset.asked(self.relation.id):
            if fact.id in self._shots.held:
                self._census.held += 1
                continue
            correct = correct_for(fact, self._correct)
            wrong, right_after_all = self._negatives(fact, self._shape.negatives)
            before = self._shots.before(fact.subject, self._shape.shots)
            self._note(len(wrong), right_after_all, len(before))
            yield Item(fact=fact, wrong=wrong, correct=correct, before=before)

    def prompts(self) -> Iterator[Prompt]:
        """Task by task and template by template, some facts at a time."""
        waiting = self.items()
        while block := list(islice(waiting, BLOCK)):
            for task in TASKS:
                for number, template in enumerate(self.templates[task]):
                    for item in block:
                        for place in places(task, number, item):
                            yield self._prompt(item, template, place)

    def text(self, item: Item, template: Template, place: Place) -> str:
        """Everything up to where the answer begins."""
        subject, form = item.fact.subject.name, self._shape.form
        before = self._examples(place.task, item.before)
        name = item.gold if place.kind == "right" else place.name
        if place.task == "wp":
            return before + template.fill(subject)[0]
        if place.task == "fc":
            return before + asked(checked(template, subject, name), form)
        bare = question(template, subject, "qa")
        return before + asked(bare if place.kind == "none" else told(name, bare), form)

    def _prompt(self, item: Item, template: Template, place: Place) -> Prompt:
        key = Key(
            fact=item.fact.id,
            relation=item.fact.relation,
            template=template.id,
            subject=item.fact.subject.name,
            context=place.context,
        )
        return Prompt(key=key, prefix=self.text(item, template, place), want=want(place))

    @cached_property
    def _shots(self) -> Shots:
        return draw_shots(self._dataset, self.relation.id, self._shape.shots)

    @cached_property
    def _correct(self) -> Mapping[str, frozenset[str]]:
        return correct_names(self._dataset, self.relation.id)

    @cached_property
    def _pool(self) -> tuple[str, ...]:
        return self._dataset.object_names(self.relation.id)

    def _negatives(self, fact: Fact, most: int) -> tuple[tuple[str, ...], int]:
        correct = correct_for(fact, self._correct)
        return negatives(fact, correct, self._pool, self._dataset.selection.seed, most)

    def _note(self, wrong: int, right_after_all: int, before: int) -> None:
        census = self._census
        census.correct_after_all += right_after_all
        census.without_wrong += not wrong
        census.few_wrong += 0 < wrong < self._shape.negatives
        census.few_shots += before < self._shape.shots

    def _examples(self, task: Task, before: tuple[Fact, ...]) -> str:
        """The examples of a task; nearly all facts have the same ones."""
        key = (task, tuple(fact.id for fact in before))
        if key not in self._written:
            lines = self._verdicts(before) if task == "fc" else self._answers(task, before)
            self._written[key] = "".join(lines)
        return self._written[key]

    def _answers(self, task: Task, before: Sequence[Fact]) -> Iterator[str]:
        base = self.templates[task][0]
        for fact in before:
            subject, name = fact.subject.name, fact.objects[0].name
            if task == "wp":
                yield f"{filled(base, subject, name)}\n"
            else:
                yield shown(question(base, subject, "qa"), name, self._shape.form)

    def _verdicts(self, before: Sequence[Fact]) -> Iterator[str]:
        """True and false statements in turn; the seed says which comes first."""
        base, seed = self.templates["fc"][0], self._dataset.selection.seed
        first = draw_key(seed, f"verdict:{self.relation.id}") % 2
        for number, fact in enumerate(before):
            right = (number + first) % 2 == 0
            names = (fact.objects[0].name,) if right else self._negatives(fact, 1)[0]
            for name in names:  # none, where no object is wrong
                text = checked(base, fact.subject.name, name)
                yield shown(text, TRUE if right else FALSE, self._shape.form)


def every(dataset: Dataset, shape: Shape, census: Census) -> Iterator[Asking]:
    """What is asked, relation by relation."""
    for relation in dataset.asked_relations():
        yield Asking(dataset, relation, shape, census)


def statements(relation: Relation, most: int) -> tuple[Template, ...]:
    """The relation's statements, wherever their object stands; `most` of them."""
    return tuple(t for t in relation.templates if t.style == "statement")[:most]


def places(task: Task, number: int, item: Item) -> Iterator[Place]:
    """The prompts of a fact in the task's template of that number, counted from 0."""
    if task == "fc":
        for way in WAYS:
            yield Place(task=task, way=way, kind="right")
            for name in item.wrong:
                yield Place(task=task, way=way, kind="wrong", name=name)
        return
    yield Place(task=task)
    if task == "qa" and number == 0:  # names stand in front of the base frame alone
        yield Place(task=task, kind="right")
        yield from (Place(task=task, kind="wrong", name=name) for name in item.wrong)


def want(place: Place) -> Want:
    """What the model is to do: choose a verdict, write one, or write an answer."""
    if place.way == "score":
        return Score(options=(TRUE, FALSE))
    return Generate(most=FEW if place.task == "fc" else MOST)


def filled(template: Template, subject: str, name: str) -> str:
    """A whole sentence about a subject and an object."""
    return name.join(template.fill(subject))


def checked(template: Template, subject: str, name: str) -> str:
    """A statement and the question whether it is true.

    >>> checked(Template(id="t", text="[X] is in [Y] ."), "Oslo", "Norway")
    'Statement: Oslo is in Norway. The statement is True or False?'
    """
    statement = filled(template, subject, name).strip().rstrip(" .")
    return f"Statement: {statement}. The statement is {TRUE} or {FALSE}?"


def refuse_nothing(dataset: Dataset, census: Census) -> None:
    """Say why there is nothing to ask; called where a whole dataset gave no prompt."""
    if census.held:
        raise DataError(
            f"dataset {dataset.name!r}: every fact that is asked about is needed as an example, so "
            "none is left to ask about; set shots lower, or give other facts the split 'train'"
        )
    raise DataError(
        f"dataset {dataset.name!r} has no templates for what is asked: neither statements, such as "
        "'[X] was born in [Y].', nor questions, such as 'Where was [X] born? [Y].'; add some, or "
        "name other relations"
    )
