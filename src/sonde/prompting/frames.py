r"""Questions as a model gets them: bare or as Q and A, after examples, after an object's name.

Knows facts, templates and the keys of prompts, nothing of models. In `qa` form, with one example
and a misleading name:

    Q: Where was Marie Curie born?
    A: Warsaw
    Q: Oslo. Where was Alan Turing born?
    A:

and in `plain` form each of these is one line, `Oslo. Where was Alan Turing born?`. The examples are
the same before every prompt of a relation and have no name in front, so that prompts differ in
what is studied alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from sonde.core.answers import Generated
from sonde.core.columns import Answers, Given, in_blocks
from sonde.core.errors import AbilityError
from sonde.core.facts import Dataset, Entity, Fact, Relation, Template, commonest_objects
from sonde.core.fingerprints import draw_key
from sonde.core.prompts import Key, Prompt, Want
from sonde.core.words import counted
from sonde.prompting.few_shot import Shot, Worded, question, shown
from sonde.prompting.languages import ENGLISH, Phrasing
from sonde.prompting.matching import cleaned
from sonde.prompting.options import correct_for, correct_names, negatives

if TYPE_CHECKING:
    from polars import DataFrame

Form = Literal["plain", "qa"]

Told = Literal["none", "right", "wrong"]
"""Which object a prompt names: none, the fact's own or one that is wrong for it."""

Columns = dict[str, Any]
"""Columns of a frame, by name."""

TRAIN = "train"
SPARES = 2
"""Drawn beyond the shots, for examples about the subject that is asked about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shots:
    """Facts to show before questions; `held` are those that may therefore not be asked about."""

    facts: tuple[Fact, ...] = ()
    held: frozenset[str] = frozenset()

    def before(self, subject: Entity, count: int) -> tuple[Fact, ...]:
        """The first so many that are not about the subject: a spare takes the place of one."""
        others = [f for f in self.facts if f.subject.name not in subject.names]
        return tuple(others[:count])


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A fact with the names that are wrong for it, all that are right, and the facts shown."""

    fact: Fact
    wrong: tuple[str, ...]
    correct: frozenset[str]
    before: tuple[Fact, ...]

    @property
    def gold(self) -> str:
        """The name of the fact's own object."""
        return self.fact.objects[0].name

    def prompt(self, template: Template, put: Worded, want: Want, own: Mapping[str, str]) -> Prompt:
        """A prompt about the fact; `own` tells it from others in the same template."""
        fact, subject = self.fact, self.fact.subject.name
        key = Key(fact=fact.id, relation=fact.relation, template=template.id, subject=subject)
        return Prompt(key=key, own=own, prefix=put.text, turns=put.turns, want=want)


@dataclass(slots=True, kw_only=True)
class LeftOut:
    """What had to be left out, or made smaller than the shots and wrong names asked for."""

    shots: int
    negatives: int
    held: int = 0
    few_shots: int = 0
    without_wrong: int = 0
    few_wrong: int = 0
    correct_after_all: int = 0

    def counts(self) -> dict[str, int]:
        """Everything by name, as reports give it."""
        return {
            "facts_held_back_as_examples": self.held,
            "facts_fewer_examples": self.few_shots,
            "facts_without_wrong_names": self.without_wrong,
            "facts_fewer_wrong_names": self.few_wrong,
            "wrong_names_correct_after_all": self.correct_after_all,
        }

    def sentences(self) -> Iterator[str]:
        """The same in words."""
        few_shots = f"fewer than {self.shots} examples before the prompt."
        few_wrong = f"fewer wrong objects than the {self.negatives} asked for."
        for count, one, many, rest in (
            (self.held, "is", "are", "shown as examples and not asked about."),
            (self.few_shots, "has", "have", few_shots),
            (self.without_wrong, "has", "have", "no wrong object left: nothing false is told."),
            (self.few_wrong, "has", "have", few_wrong),
        ):
            if count:
                yield f"{counted(count, f'fact {one}', f'facts {many}')} {rest}"
        if self.correct_after_all:
            objects = counted(self.correct_after_all, "object", "objects")
            yield f"{objects} that the dataset calls wrong, but that are right, were dropped."


class AskedFacts:
    """The facts of a relation that are asked about, each after examples and with wrong names.

    `left_out` says how many of these there should be, and is told how many are missing.
    """

    def __init__(self, dataset: Dataset, relation: str, left_out: LeftOut) -> None:
        self._dataset, self._relation, self._left_out = dataset, relation, left_out
        self._shots = draw_shots(dataset, relation, left_out.shots)
        self._correct = correct_names(dataset, relation)
        self._pool = dataset.object_names(relation)

    def __iter__(self) -> Iterator[Item]:
        left_out = self._left_out
        for fact in self._dataset.asked(self._relation):
            if fact.id in self._shots.held:
                left_out.held += 1
                continue
            wrong, right_after_all = self.wrong(fact, left_out.negatives)
            before = self._shots.before(fact.subject, left_out.shots)
            left_out.correct_after_all += right_after_all
            left_out.without_wrong += not wrong
            left_out.few_wrong += 0 < len(wrong) < left_out.negatives
            left_out.few_shots += len(before) < left_out.shots
            correct = correct_for(fact, self._correct)
            yield Item(fact=fact, wrong=wrong, correct=correct, before=before)

    def wrong(self, fact: Fact, most: int) -> tuple[tuple[str, ...], int]:
        """Up to `most` wrong names for a fact, and how many were right after all."""
        correct = correct_for(fact, self._correct)
        return negatives(fact, correct, self._pool, self._dataset.selection.seed, most)


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """Every fact that a run asked about, by number, and what its answers are compared with.

    `relation` is each fact's place in `relations`, `majority` the commonest object of each of them.
    """

    relations: tuple[Relation, ...]
    items: tuple[Item, ...]
    relation: NDArray[np.int64]
    majority: tuple[str, ...]
    left_out: LeftOut

    @classmethod
    def of(cls, dataset: Dataset, relations: Iterable[Relation], left_out: LeftOut) -> Asked:
        """The facts of some relations; those without any are dropped."""
        items = [(r, tuple(AskedFacts(dataset, r.id, left_out))) for r in relations]
        kept = [(relation, facts) for relation, facts in items if facts]
        ranked = [commonest_objects(dataset.split_frame(relation.id)) for relation, _ in kept]
        owners = [number for number, (_, facts) in enumerate(kept) for _ in facts]
        return cls(
            relations=tuple(relation for relation, _ in kept),
            items=tuple(item for _, facts in kept for item in facts),
            relation=np.array(owners, dtype=np.int64),
            majority=tuple(objects[0][0] if objects else "" for objects in ranked),
            left_out=left_out,
        )

    @cached_property
    def subject(self) -> NDArray[np.int64]:
        """Facts of one relation with the same number have the same subject; in sorted order."""
        keys = [f"{item.fact.relation}:{item.fact.subject.id}" for item in self.items]
        return np.unique(keys, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def correct(self) -> list[frozenset[str]]:
        """Every name that is right for each fact, cleaned."""
        return [frozenset(map(cleaned, item.correct)) - {""} for item in self.items]

    def majority_right(self, rule: Callable[[str, int], bool]) -> NDArray[np.bool_]:
        """Whether the commonest object of its relation is right for each fact, by a rule."""
        guesses = [self.majority[number] for number in self.relation.tolist()]
        return np.array([rule(guess, fact) for fact, guess in enumerate(guesses)], dtype=np.bool_)

    def is_right(self, text: str, fact: int) -> bool:
        """Whether a text is a right name, but for space and closing punctuation."""
        return cleaned(text) in self.correct[fact]

    def prompts(
        self,
        answers: Given,
        templates: Mapping[Any, int],
        add: Callable[[Answers, Columns], Columns],
        added: Mapping[str, type],
        by: tuple[str, ...] = ("template",),
    ) -> DataFrame:
        """A row for each prompt; of two answers to the same prompt the later one counts.

        Columns: the numbers of its fact, of its template, by the columns relation and `by`, and of
        the name that it has, the right one being 0; what else is in `by`, what was `told` and the
        `way` it was answered, scored or generated. Of written answers: `said`, cleaned, whether it
        is a right name, and `copied`: whether it is the name in front. `add` makes further columns
        of a block from these; their types are `added`.
        """
        import polars

        key = {"fact": int, "template": int, "name": int, "told": str, "way": str}
        key |= dict.fromkeys(by[:-1], str)
        schema = {**key, "said": str, "right": bool, "copied": bool, **added}
        rows = [polars.DataFrame(schema=schema)]
        for block in in_blocks(answers):
            columns = self._columns(block, templates, by)
            rows.append(polars.DataFrame({**columns, **add(block, columns)}))
        every = polars.concat(rows, how="diagonal_relaxed")
        return every.unique(list(key), keep="last", maintain_order=True)

    def _columns(
        self, block: Answers, templates: Mapping[Any, int], by: tuple[str, ...]
    ) -> Columns:
        fact = block.numbers(("relation", "fact"), self._facts)
        columns = {
            "fact": fact,
            "template": block.numbers(("relation", *by), templates),
            "name": block.numbers(("relation", "fact", "object"), self._names, lambda _: 0),
            **{name: block.frame[name] for name in ("told", *by[:-1])},
            "way": [block.kind] * len(block),
        }
        if block.kind == "scored":
            return columns
        if block.kind != "generated":
            raise AbilityError(f"scored and written answers are read here, not {block.kind} ones")
        texts = [cleaned(answer.text) for answer in cast(list[Generated], block.columns)]
        names = map(cleaned, block.frame["object"])
        right = [text in self.correct[f] for text, f in zip(texts, fact.tolist(), strict=True)]
        copied = [text == name != "" for text, name in zip(texts, names, strict=True)]
        return {**columns, "said": texts, "right": right, "copied": copied}

    @cached_property
    def _facts(self) -> dict[tuple[str, str], int]:
        return {(item.fact.relation, item.fact.id): n for n, item in enumerate(self.items)}

    @cached_property
    def _names(self) -> dict[tuple[str, str, str], int]:
        return {
            (item.fact.relation, item.fact.id, name): number
            for item in self.items
            for number, name in enumerate((item.gold, *item.wrong))
        }


def frames(relation: Relation, most: int | None = None) -> tuple[Template, ...]:
    """The relation's question templates, the base frame first; `most` of them, or all."""
    return tuple(t for t in relation.templates if t.style == "question" and t.plain)[:most]


def statements(relation: Relation, most: int | None = None) -> tuple[Template, ...]:
    """The relation's statements, wherever their object stands; `most` of them, or all."""
    return tuple(t for t in relation.templates if t.style == "statement" and t.plain)[:most]


def sentences(relation: Relation, most: int | None = None) -> tuple[Template, ...]:
    """The relation's statements that end with their object; `most` of them, or all."""
    return tuple(t for t in statements(relation) if t.answer_last)[:most]


def attempts(form: Form, shots: int) -> list[str]:
    """Settings that may make a model write something where it wrote nothing.

    >>> attempts("plain", 0), attempts("qa", 2)
    (['--set frame=qa', '--set shots=4'], ['--set shots=4'])
    """
    return [*(["--set frame=qa"] if form == "plain" else []), f"--set shots={2 * shots or 4}"]


def asked(text: str, form: Form, around: Phrasing = ENGLISH) -> str:
    r"""A question with the place where its answer begins.

    >>> asked("Where?", "plain"), asked("Where?", "qa")
    ('Where? ', 'Q: Where?\nA: ')
    """
    put = f"{around.question}{text}\n{around.answer}" if form == "qa" else text
    return f"{put}{around.space}"


def answered(text: str, answer: str, form: Form, around: Phrasing = ENGLISH) -> Shot:
    r"""A question with its answer, a line of its own.

    >>> answered("Where?", "Here", "qa")
    Shot(question='Q: Where?\nA: ', answer='Here\n')
    """
    return Shot(question=asked(text, form, around), answer=f"{answer}\n")


def told(name: str, text: str, around: Phrasing = ENGLISH) -> str:
    """A question with an object's name in front, right or wrong.

    >>> told("Oslo", "Where was Ann born?")
    'Oslo. Where was Ann born?'
    """
    return f"{name}{around.stop}{around.space}{text}"


def put(
    template: Template, subject: str, form: Form, name: str = "", around: Phrasing = ENGLISH
) -> str:
    r"""A question about a subject, up to its answer, with a name in front where there is one.

    >>> born = Template(id="t", text="Where was [X] born? [Y].", style="question")
    >>> put(born, "Ann", "qa", "Oslo")
    'Q: Oslo. Where was Ann born?\nA: '
    """
    text = question(template, subject, "qa")
    return asked(told(name, text, around) if name else text, form, around)


def examples(
    base: Template, facts: Iterable[Fact], form: Form, around: Phrasing = ENGLISH
) -> Worded:
    """Facts as questions in the base frame, each with its answer."""
    pairs = ((question(base, fact.subject.name, "qa"), fact.objects[0].name) for fact in facts)
    return shown(answered(text, answer, form, around) for text, answer in pairs)


def draw_shots(dataset: Dataset, relation: str, count: int) -> Shots:
    """Facts to show, drawn by the seed, one of each subject: training facts, if there are enough.

    Else facts that are not asked about; and where all are asked about, some of these, which are
    then held back.
    """
    if not count:
        return Shots()
    wanted = count + SPARES
    asked = {fact.id for fact in dataset.asked(relation)}
    pools: tuple[Callable[[Fact], bool], ...] = (
        lambda fact: fact.split == TRAIN and fact.id not in asked,
        lambda fact: fact.id not in asked,
        lambda fact: True,
    )
    found: tuple[Fact, ...] = ()
    for place, allowed in enumerate(pools):
        # facts that are held back are no target's own, so these need no spare
        enough = wanted if place < len(pools) - 1 else count
        found = _drawn(filter(allowed, dataset.facts(relation)), enough, dataset.selection.seed)
        if len(found) >= enough:
            break
    return Shots(facts=found, held=frozenset(f.id for f in found if f.id in asked))


def _drawn(facts: Iterable[Fact], count: int, seed: int) -> tuple[Fact, ...]:
    """The facts whose keys are smallest, those about a subject of the same name left out."""
    keyed = ((draw_key(seed, f"shots:{f.relation}:{f.id}"), f.id, f) for f in facts)
    kept: dict[str, Fact] = {}
    for _, _, fact in sorted(keyed, key=lambda entry: entry[:2]):
        kept.setdefault(fact.subject.name, fact)
        if len(kept) == count:
            break
    return tuple(kept.values())
