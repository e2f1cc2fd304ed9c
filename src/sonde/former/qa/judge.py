"""Written lists judged as sets: how many of the right answers are in them, and what else.

Knows facts and texts, nothing of estimates or tables. An answer that names a thing which another
one in the list has named already says nothing new, and counts neither for nor against.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

import numpy as np

from sonde.core.answers import Generated
from sonde.core.columns import Given, in_blocks
from sonde.core.errors import AbilityError
from sonde.core.facts import Dataset, Fact, Relation, Template, commonest_objects
from sonde.metrics.judged import Judged, judge_texts
from sonde.metrics.verdicts import Bools, Ints
from sonde.prompting.matching import (
    cleaned,
    dated,
    language_of,
    normal,
    numeric,
    same_literal,
    within,
)

if TYPE_CHECKING:
    from polars import DataFrame

Match = Literal["equal", "within"]

COLUMNS = {"fact": int, "text": str, "finished": bool}


class Members(NamedTuple):
    """A list of answers as a set: how many of the `objects` it names, and how many wrong things."""

    right: int
    wrong: int
    objects: int

    @property
    def precision(self) -> float:
        """Share of the named things that are right; 0 of none."""
        return self.right / (self.right + self.wrong) if self.right else 0.0

    @property
    def recall(self) -> float:
        """Share of the right things that are named."""
        return self.right / self.objects

    @property
    def f1(self) -> float:
        """Harmonic mean of both."""
        return 2 * self.right / (self.right + self.wrong + self.objects)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How a list is taken apart and when one of its answers is right.

    `equal`: it is a name of the object, by its lemmas; `within`: the name stands in it. A number or
    a date is compared with one by its meaning. Without a separator the line is one answer.
    """

    separator: str
    match: Match
    language: str

    def listed(self, text: str) -> tuple[str, ...]:
        """The answers of a line, in order.

        >>> Rule(separator="; ", match="equal", language="en").listed(" Thai; Lao ;; Thai.\\nQ:")
        ('Thai', 'Lao', 'Thai')
        """
        line = text.strip().partition("\n")[0]
        parts = line.split(self.separator.strip()) if self.separator else [line]
        return tuple(filter(None, map(cleaned, parts)))

    def names(self, answer: str, name: str) -> bool:
        """Whether an answer says a name."""
        literal = same_literal(answer, name)
        if literal is not None:
            return literal
        said, wanted = (normal(text, self.language) for text in (answer, name))
        holds = within(wanted, said) if self.match == "within" else said == wanted
        return bool(wanted) and holds

    def members(self, text: str, objects: Sequence[Sequence[str]]) -> Members:
        """What a list names; every answer stands for one object at most."""
        answers = {normal(answer, self.language) or answer: answer for answer in self.listed(text)}
        fits = [
            [i for i, names in enumerate(objects) if any(self.names(answer, n) for n in names)]
            for answer in answers.values()
        ]
        known = [own for own in fits if own]
        return Members(most_pairs(known), len(fits) - len(known), len(objects))


def most_pairs(fits: Sequence[Sequence[int]]) -> int:
    """How many answers can have an object of their own, given the objects that each one fits.

    >>> most_pairs([[0, 1], [0], [0]])
    2
    """
    owner: dict[int, int] = {}

    def place(answer: int, seen: set[int]) -> bool:
        for object in fits[answer]:
            if object not in seen:
                seen.add(object)
                if object not in owner or place(owner[object], seen):
                    owner[object] = answer
                    return True
        return False

    return sum(place(answer, set()) for answer in range(len(fits)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcomes:
    """Every answered fact: what was written about it and which of its objects are in it.

    `relation` of each fact is its place in `relations`, each of which has one template and is
    judged by its own of the `rules`. `guessed`: what a list holds that has the
    commonest object of the relation alone.
    """

    relations: tuple[Relation, ...]
    templates: tuple[Template, ...]
    facts: tuple[Fact, ...]
    relation: Ints
    rules: tuple[Rule, ...]
    answers: DataFrame
    members: tuple[Members, ...]
    guessed: tuple[Members, ...]

    @cached_property
    def subject(self) -> Ints:
        """Facts of one relation with the same number have the same subject; in sorted order."""
        keys = [f"{fact.relation}:{fact.subject.id}" for fact in self.facts]
        return np.unique(keys, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def objects(self) -> Ints:
        """How many right answers each fact has."""
        return np.array([each.objects for each in self.members], dtype=np.int64)

    @cached_property
    def literal(self) -> Bools:
        """Of which facts every answer is a number or a date, by its usual name."""
        return np.array(
            [all(is_literal(entity.name) for entity in fact.objects) for fact in self.facts],
            dtype=np.bool_,
        )

    @cached_property
    def judged(self) -> Judged:
        """Every answer as other analyses take it: right if one right answer is in it."""
        from polars import Series

        right = Series([each.right > 0 for each in self.members])
        return judge_texts(
            self.answers.with_columns(right=right, template=0),
            relations=self.relations,
            facts=self.facts,
            relation=self.relation,
            templates=[(template,) for template in self.templates],
            says=lambda text, names, own: self.rules[own].members(text, [[*names]]).right > 0,
        )


def is_literal(name: str) -> bool:
    """Whether a name is a number or a date."""
    return dated(name) is not None or numeric(name) is not None


def judge(
    dataset: Dataset,
    asked: Sequence[tuple[Relation, Template]],
    answers: Given,
    *,
    rule: Rule,
    abstains: Callable[[str], bool],
) -> Outcomes:
    """Judge answers in any order; of two about the same fact the later one counts."""
    every = [fact for relation, _ in asked for fact in dataset.asked(relation.id)]
    written = _written({(f.relation, f.id): n for n, f in enumerate(every)}, answers)
    facts = [every[number] for number in written["fact"]]
    places = {relation.id: number for number, (relation, _) in enumerate(asked)}
    common = [commonest_objects(dataset.split_frame(id)) for id in places]
    guesses = [objects[0][0] if objects else "" for objects in common]
    relation = np.array([places[fact.relation] for fact in facts], dtype=np.int64)
    names = [[entity.names for entity in fact.objects] for fact in facts]
    texts, guessed = written["text"], [guesses[number] for number in relation.tolist()]
    by_relation = [
        replace(rule, language=language_of(rule.language, relation.language))
        for relation, _ in asked
    ]
    rules = [by_relation[number] for number in relation.tolist()]
    return Outcomes(
        relations=tuple(relation for relation, _ in asked),
        templates=tuple(template for _, template in asked),
        facts=tuple(facts),
        relation=relation,
        rules=tuple(by_relation),
        answers=_said(written, abstains),
        members=_members(rules, texts, names),
        guessed=_members(rules, guessed, names),
    )


def _members(
    rules: Sequence[Rule], texts: Iterable[str], names: Sequence[Sequence[Sequence[str]]]
) -> tuple[Members, ...]:
    every = zip(rules, texts, names, strict=True)
    return tuple(rule.members(text, own) for rule, text, own in every)


def _said(written: DataFrame, abstains: Callable[[str], bool]) -> DataFrame:
    """The answers, numbered anew, with what each says and whether that is that it is not known."""
    from polars import Boolean, Series, String, int_range, len

    texts = written["text"]
    return written.with_columns(
        fact=int_range(len()),
        said=Series([*map(cleaned, texts)], dtype=String),
        abstained=Series([*map(abstains, texts)], dtype=Boolean),
    )


def _written(numbers: dict[tuple[str, str], int], answers: Given) -> DataFrame:
    """What was written, a row for each fact, in the dataset's order."""
    import polars

    parts = [polars.DataFrame(schema=COLUMNS)]
    for block in in_blocks(answers):
        if block.kind != "generated":
            raise AbilityError(f"qa reads written answers, not {block.kind} ones")
        texts = cast(list[Generated], block.columns)
        columns = {
            "fact": block.numbers(("relation", "fact"), numbers),
            "text": [answer.text for answer in texts],
            "finished": [answer.finished for answer in texts],
        }
        parts.append(polars.DataFrame(columns, schema=COLUMNS))
    return polars.concat(parts).unique("fact", keep="last", maintain_order=True).sort("fact")
