r"""Questions as a model gets them: bare or as Q and A, after examples, after an object's name.

Knows facts and templates, nothing of models. In `qa` form, with one example and a misleading name:

    Q: Where was Marie Curie born?
    A: Warsaw
    Q: Oslo. Where was Alan Turing born?
    A:

and in `plain` form each of these is one line, `Oslo. Where was Alan Turing born?`. The examples are
the same before every prompt of a relation and have no name in front, so that prompts differ in
what is studied alone.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Literal

from sonde.core.facts import Dataset, Entity, Fact, Relation, Template
from sonde.core.fingerprints import draw_key

Form = Literal["plain", "qa"]

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


def frames(relation: Relation, most: int = 0) -> tuple[Template, ...]:
    """The relation's question templates, the base frame first; `most` of them, 0 for all."""
    found = tuple(t for t in relation.templates if t.style == "question")
    return found[:most] if most else found


def sentences(relation: Relation, most: int = 0) -> tuple[Template, ...]:
    """The relation's statements that end with their object; `most` of them, 0 for all."""
    found = tuple(t for t in relation.templates if t.style == "statement" and t.answer_last)
    return found[:most] if most else found


def asked(text: str, form: Form) -> str:
    r"""A question with the place where its answer begins.

    >>> asked("Where?", "plain"), asked("Where?", "qa")
    ('Where? ', 'Q: Where?\nA: ')
    """
    return f"Q: {text}\nA: " if form == "qa" else f"{text} "


def shown(text: str, answer: str, form: Form) -> str:
    r"""A question with its answer, a line of its own.

    >>> shown("Where?", "Here", "qa")
    'Q: Where?\nA: Here\n'
    """
    return f"{asked(text, form)}{answer}\n"


def told(name: str, text: str) -> str:
    """A question with an object's name in front, right or wrong.

    >>> told("Oslo", "Where was Ann born?")
    'Oslo. Where was Ann born?'
    """
    return f"{name}. {text}"


def cleaned(text: str) -> str:
    """A written answer as it is compared: its first line, without space or closing punctuation.

    >>> cleaned(" New York City.\\nQ: And"), cleaned(' "Oslo",'), cleaned(" ...")
    ('New York City', '"Oslo', '')
    """
    line = text.strip().partition("\n")[0].strip()
    while line and (line[-1].isspace() or unicodedata.category(line[-1])[0] == "P"):
        line = line[:-1]
    return line


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


def negatives(
    fact: Fact, correct: frozenset[str], pool: Sequence[str], seed: int, most: int
) -> tuple[tuple[str, ...], int]:
    """Up to `most` names of objects that are wrong for the fact, and how many were right after all.

    They are those that the dataset names for the fact, in its order where there are no more; else
    they are drawn by the seed, from these or, without any, from `pool`, the relation's objects.
    None is in `correct`, the names right for the subject.
    """
    named = tuple(dict.fromkeys(entity.name for entity in fact.wrong))
    wrong = tuple(name for name in (named or pool) if name not in correct)
    right = sum(name in correct for name in named)
    if named and len(wrong) <= most:
        return wrong, right
    key = f"negatives:{fact.relation}:{fact.id}"
    return tuple(nsmallest(most, wrong, key=lambda n: (draw_key(seed, f"{key}:{n}"), n))), right


def _drawn(facts: Iterable[Fact], count: int, seed: int) -> tuple[Fact, ...]:
    """The facts whose keys are smallest, those about a subject of the same name left out."""
    keyed = ((draw_key(seed, f"shots:{f.relation}:{f.id}"), f.id, f) for f in facts)
    kept: dict[str, Fact] = {}
    for _, _, fact in sorted(keyed, key=lambda entry: entry[:2]):
        kept.setdefault(fact.subject.name, fact)
        if len(kept) == count:
            break
    return tuple(kept.values())
