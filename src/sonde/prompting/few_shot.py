"""The text in front of a question: an instruction, and examples of how others are answered.

Knows facts and templates, nothing of models. In mask style a sentence is asked with [MASK] in the
place of the object, in qa style a question up to its question mark:

    Predict the [MASK] in each sentence in one word.
    Q: The capital of Peru is [MASK].
    A: Lima.
    Q: The capital of Chile is [MASK].
    A:

Examples are drawn by name, so that neither another fact nor another template moves a draw. How
questions and answers are laid out is a `Layout`; one may show every right answer as a list, and in
other languages the instruction, the markers and the full stop are that language's. Where answers
begin and end in the text is kept: a model asked in turns may be shown the examples as turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import nsmallest
from itertools import repeat
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sonde.core.errors import DataError, TemplateError, UsageError
from sonde.core.facts import (
    ANSWER_SLOT,
    SUBJECT_SLOT,
    Dataset,
    Relation,
    Template,
    facts_of,
    slot_values,
)
from sonde.core.fingerprints import draw_key
from sonde.prompting.languages import ENGLISH, QUESTION_MARKS, Phrasing, phrasing


class Shot(NamedTuple):
    """An example: all up to where its answer begins, and the answer with what closes it."""

    question: str
    answer: str


class Worded(NamedTuple):
    """A text that is put to a model; `turns`: where answers in it begin and end, one by one."""

    text: str = ""
    turns: tuple[int, ...] = ()

    def then(self, text: str) -> Worded:
        """It with a text behind it."""
        return Worded(self.text + text, self.turns)


def shown(shots: Iterable[Shot], head: str = "") -> Worded:
    r"""Examples one after the other, behind what stands before all of them.

    >>> shown([Shot("Q: A?\nA: ", "B\n")], "Answer.\n")
    Worded(text='Answer.\nQ: A?\nA: B\n', turns=(17, 19))
    """
    text, turns = head, list[int]()
    for question, answer in shots:
        begin = len(text) + len(question)
        text += question + answer
        turns += begin, len(text)
    return Worded(text, tuple(turns))


Style = Literal["mask", "qa"]
Context = Literal["zero-shot", "random", "relation", "template"]
ShotsPer = Literal["template", "fact"]

MASK = "[MASK]"
TRAIN = "train"
POOL = 50_000
"""The most facts that examples are drawn from; of more, those that the seed picks."""

SPARE = 1
"""Drawn beyond the shots, for an example that is the target itself."""

Keys = NDArray[np.uint64]


Slots = Mapping[str, str]
"""What a fact has for the slots of templates beside its subject, as `core.facts.slot_values`."""

QUESTION, ANSWER = "[Q]", "[A]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    r"""How questions and answers are written one after the other.

    `text` is one of each, with [Q] and [A]; `head` stands before all of them. With a `separator`
    every right answer is shown, without one the first.

    >>> kamel = Layout(text="[Q] [A]%\n", separator="; ")
    >>> kamel.shown("What do they speak?", ["Thai", "Lao"])
    Shot(question='What do they speak? ', answer='Thai; Lao%\n')
    >>> kamel.asked("Where?"), kamel.end
    ('Where?', '%')
    """

    text: str
    head: str = ""
    separator: str = ""

    def __post_init__(self) -> None:
        if [self.text.count(slot) for slot in (QUESTION, ANSWER)] != [1, 1] or not (
            self.text.index(QUESTION) < self.text.index(ANSWER)
        ):
            raise UsageError(
                f"a layout needs {QUESTION} once and {ANSWER} once behind it, such as "
                f"'Q: [Q]\\nA: [A]\\n'; not {self.text!r}"
            )

    @property
    def end(self) -> str:
        """Where an answer ends: at what closes it, else with its line. A full stop closes none."""
        closing = self.text.partition(ANSWER)[2].strip()
        return closing if closing.strip(".。") else "\n"

    def asked(self, question: str) -> str:
        """A question up to where its answer begins; the space before it is the answer's."""
        return self.text.partition(ANSWER)[0].replace(QUESTION, question).rstrip(" ")

    def shown(self, question: str, answers: Sequence[str]) -> Shot:
        """A question with what answers it."""
        before, _, after = self.text.partition(ANSWER)
        answer = self.separator.join(answers) if self.separator else answers[0]
        said = f"{answer.removesuffix(after.strip())}{after}"
        return Shot(question=before.replace(QUESTION, question), answer=said)


def usual_layout(style: Style, around: Phrasing = ENGLISH) -> Layout:
    r"""An instruction, then lines of `Q:` and `A:`, every answer closed by one full stop.

    >>> "".join(usual_layout("qa", phrasing("ja")).shown("どこですか？", ["東京"]))
    '質問：どこですか？\n答え：東京。\n'
    """
    text = f"{around.question}{QUESTION}\n{around.answer}{around.space}{ANSWER}{around.stop}\n"
    return Layout(text=text, head=f"{around.mask if style == 'mask' else around.qa}\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a prompt asks about: a subject, under all its names, in a relation."""

    fact: str
    relation: str
    names: tuple[str, ...]
    slots: Slots = field(default_factory=dict, hash=False)


class Example(NamedTuple):
    """A fact that may be shown: its relation, its subject and the usual names."""

    relation: str
    fact: str
    subject: str
    name: str
    answers: Sequence[str]
    slots: Slots = {}  # noqa: RUF012

    def about(self, target: Target) -> bool:
        """Whether it asks what the target does; by name, since that is what a model reads."""
        return self.relation == target.relation and self.name in target.names

    def like(self, other: Example) -> bool:
        """Whether both ask the same."""
        same = self.subject == other.subject or self.name == other.name
        return same and self.relation == other.relation


def question(template: Template, subject: str, style: Style, slots: Slots | None = None) -> str:
    """What is asked; `slots` are what the template takes from the fact beside its subject.

    >>> born = Template(id="t", text="Where was [X] born? [Y].", style="question")
    >>> question(born, "Ann", "qa"), question(born, "Ann", "mask")
    ('Where was Ann born?', 'Where was Ann born? [MASK].')
    """
    if style == "mask":
        return MASK.join(template.filled({SUBJECT_SLOT: subject, **(slots or {})}))
    if template.plain:
        return _asked(template).replace(SUBJECT_SLOT, subject)
    text = template.filled({SUBJECT_SLOT: subject, **(slots or {})})[0]
    return text[: _stop(text)] or text.rstrip()


class Contexts:
    """Makes prompts of one shape; the facts that examples come from are read once.

    `shots` examples are drawn once for each template, or anew for each fact, by `seed`. `eligible`:
    the templates of a relation that may be asked and shown in examples. `layout` of each relation;
    without it the usual one in the relation's language.
    """

    def __init__(
        self,
        dataset: Dataset,
        eligible: Callable[[Relation], tuple[Template, ...]],
        *,
        style: Style = "mask",
        context: Context = "template",
        shots: int = 4,
        shots_per: ShotsPer = "template",
        layout: Callable[[Relation], Layout] | None = None,
        seed: int = 0,
    ) -> None:
        if context != "zero-shot" and shots < 1:
            raise UsageError("a context with examples needs shots of at least 1; or use zero-shot")
        self._dataset, self._seed = dataset, seed
        self._style, self._context, self._shots = style, context, shots
        self._per_fact = shots_per == "fact"
        laid = layout or (lambda relation: usual_layout(style, phrasing(relation.language)))
        self._layout = {relation.id: laid(relation) for relation in dataset.relations}
        self._templates = {relation.id: eligible(relation) for relation in dataset.relations}
        self._language = {relation.id: relation.language for relation in dataset.relations}
        self._pool = lru_cache(maxsize=1)(self._read_pool)
        self._drawn = lru_cache(maxsize=4096)(self._draw)

    def prompt(self, target: Target, template: Template, subject: str) -> Worded:
        """Everything up to the last answer, such as `A:`; the target is never an example."""
        shots = [] if self._context == "zero-shot" else self._examples(target, template)
        layout = self._layout[target.relation]
        asked = layout.asked(question(template, subject, self._style, target.slots))
        return shown(shots, layout.head).then(asked)

    def _examples(self, target: Target, template: Template) -> list[Shot]:
        name = f"{target.relation}:{template.id}" + (f":{target.fact}" if self._per_fact else "")
        shots, wanted = self._shots, self._shots + SPARE
        while True:
            drawn = self._drawn(target.relation, template, name, wanted)
            others = [shot for example, shot in drawn if not example.about(target)]
            if len(others) >= shots:
                return others[:shots]
            if len(drawn) < wanted:
                raise DataError(self._too_few(target, len(others)))
            wanted += shots  # several examples bear a name of the target; a draw only grows longer

    def _draw(
        self, relation: str, template: Template, name: str, count: int
    ) -> tuple[tuple[Example, Shot], ...]:
        pool, layout = self._pool(*self._sources(relation)), self._layout[relation]
        chosen = pool.draw(draw_key(self._seed, f"icl:{name}"), count)
        return tuple((e, self._shown(e, template, name, layout)) for e in chosen)

    def _shown(self, example: Example, template: Template, name: str, layout: Layout) -> Shot:
        if self._context != "template":
            choices = self._templates[example.relation]
            key = f"icl:{name}:{example.fact}"
            template = min(choices, key=lambda t: draw_key(self._seed, f"{key}:{t.id}"))
        asked = question(template, example.name, self._style, example.slots)
        return layout.shown(asked, example.answers)

    def _sources(self, relation: str) -> tuple[str, ...]:
        """The relations that facts are shown of: the one that is asked, or all of its language."""
        if self._context != "random":
            return (relation,)
        return tuple(id for id, own in self._language.items() if own == self._language[relation])

    def _read_pool(self, *relations: str) -> _Pool:
        """The facts that may be shown."""
        asked = (id for id in relations if self._templates[id])
        return _Pool((example for id in asked for example in self._facts(id)), self._seed)

    def _facts(self, relation: str) -> Iterator[Example]:
        """Facts for training, or all of the relation's where these are too few."""
        from polars import col, element

        every = self._dataset.frame(relation)
        training = every.filter(split=TRAIN)
        chosen = training if len(training) >= self._shots + SPARE else every
        usual = col("object_names").list.eval(element().list.first())
        columns = chosen.select("fact", "subject_id", "subject", usual)
        own = any(template.fact_slots for template in self._templates[relation])
        slots = map(slot_values, facts_of(chosen)) if own else repeat({})
        for row, values in zip(columns.iter_rows(), slots, strict=False):
            fact, subject, name, answers = row
            yield Example(relation, fact, subject, name, answers, values)

    def _too_few(self, target: Target, others: int) -> str:
        where = "the dataset" if self._context == "random" else f"relation {target.relation}"
        return (
            f"{where} has {others} facts to show as examples before {target.names[0]!r}; "
            f"{self._shots} were asked for: set shots lower, or the context to zero-shot"
        )


class _Pool:
    """Facts to draw from; a draw takes those whose keys, mixed with its own, are smallest."""

    def __init__(self, examples: Iterable[Example], seed: int) -> None:
        keyed = ((draw_key(seed, f"{e.relation}:{e.fact}"), i, e) for i, e in enumerate(examples))
        kept = nsmallest(POOL, keyed, key=lambda entry: entry[:2])
        self._examples: Sequence[Example] = [example for _, _, example in kept]
        self._keys: Keys = np.array([key for key, _, _ in kept], dtype=np.uint64)

    def draw(self, key: int, count: int) -> list[Example]:
        """So many facts, no two of them about the same subject, in an order of their own."""
        mixed = _mix(self._keys ^ np.uint64(key))
        chosen: list[Example] = []
        for place in _smallest_first(mixed, count):
            example = self._examples[place]
            if not any(example.like(other) for other in chosen):
                chosen.append(example)
            if len(chosen) == count:
                break
        return chosen


def _smallest_first(values: Keys, count: int) -> Iterator[int]:
    """Places of the values in rising order; only a few at the front are looked for at first."""
    few = min(len(values), 4 * count)
    front = np.argpartition(values, few - 1)[:few] if few else np.arange(0)
    yield from front[np.argsort(values[front], kind="stable")].tolist()
    if few < len(values):
        yield from np.argsort(values, kind="stable")[few:].tolist()


def _mix(values: Keys) -> Keys:
    """Spread keys evenly (splitmix64), so that one pool gives independent draws."""
    whole = np.uint64
    values = values + whole(0x9E3779B97F4A7C15)
    values = (values ^ (values >> whole(30))) * whole(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> whole(27))) * whole(0x94D049BB133111EB)
    return values ^ (values >> whole(31))


def _asked(template: Template) -> str:
    """A question template up to its question mark."""
    head = template.text.split(ANSWER_SLOT)[0]
    stop = _stop(head)
    if not stop or SUBJECT_SLOT not in head[:stop]:
        raise TemplateError(
            f"question template {template.id!r} must ask before it answers, as in "
            f"'Where was [X] born? [Y].' (text: {template.text!r})"
        )
    return head[:stop]


def _stop(text: str) -> int:
    """Where the last question of a text ends; 0 where there is none."""
    return max((text.rfind(m) + len(m) for m in QUESTION_MARKS if m in text), default=0)
