"""Answers of `framing` judged and put in their places, whatever order they come in.

Knows facts and answers, nothing of estimates or tables. A fact's judgements are small whole numbers
in arrays: MISSING where nothing was asked or answered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest

import numpy as np
from numpy.typing import NDArray

from sonde.core.answers import Answered, Generated, Scored
from sonde.core.errors import AbilityError
from sonde.core.facts import Dataset, Relation, Template, commonest_objects
from sonde.core.fingerprints import draw_key
from sonde.core.scores import option_logps
from sonde.metrics.choices import choose
from sonde.metrics.grid import Bools, Floats, Ints
from sonde.probes.framing.ask import (
    FALSE,
    TRUE,
    WAYS,
    Asking,
    Census,
    Item,
    Place,
    Shape,
    Task,
    Way,
    every,
)
from sonde.prompting.frames import cleaned
from sonde.prompting.matching import correct

Codes = NDArray[np.int8]

MISSING, WRONG, RIGHT, EMPTY = -1, 0, 1, 2
SAID_NEITHER, SAID_TRUE, SAID_FALSE = 0, 1, 2
SHOWN = 5_000
"""The most facts whose answers are kept, to be shown."""

WORD = re.compile(r"[^\W\d_]+")

Said = dict[tuple[str, int], str]
"""Answers of a fact by (task, template); those after a name by ("told", 0 or the wrong name's)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """How the prompts of a relation went; the first axis is its facts.

    `wp`, `qa`, `qa_lemma` [facts, templates]: whether the answer is right, the last two by equal
    names and by lemmas. `fc[way]` [facts, templates, 1 + wrong names]: what was said of the true
    statement, then of the false ones. `told`, `copied` [facts, 1 + wrong names]: whether the answer
    is right, or is the name that stood in front: first the right one, then the wrong ones.
    """

    wp: Codes
    qa: Codes
    qa_lemma: Codes
    fc: Mapping[Way, Codes]
    told: Codes
    copied: Codes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """One relation of a run. `subjects`: facts with the same number have the same subject.

    `by_lemma`, `by_name`: whether the relation's commonest object, `majority`, is right for a fact.
    `said` are the answers of some facts, by their row.
    """

    relation: Relation
    templates: Mapping[Task, tuple[Template, ...]]
    items: tuple[Item, ...]
    cells: Cells
    subjects: Ints
    majority: str
    by_lemma: Bools
    by_name: Bools
    said: Mapping[int, Said]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """Everything that was judged; `prompts` is one of each task and relation, to be shown."""

    relations: tuple[Measured, ...]
    census: Census
    prompts: Mapping[tuple[str, Task], str]

    def counts(self) -> dict[str, int]:
        """How much was asked, and what was answered with nothing, by name."""
        cells = [one.cells for one in self.relations]
        verdicts = {way: [c.fc[way] for c in cells] for way in WAYS}
        texts = [codes for c in cells for codes in (c.wp, c.qa, c.told)]
        every = [*texts, *verdicts["score"], *verdicts["write"]]
        return {
            "relations": len(self.relations),
            "facts": sum(len(one.items) for one in self.relations),
            "prompts": sum(int((codes != MISSING).sum()) for codes in every),
            "empty_answers": sum(int((codes == EMPTY).sum()) for codes in texts),
            "verdicts_tied": sum(int((c == SAID_NEITHER).sum()) for c in verdicts["score"]),
            "verdicts_neither": sum(int((c == SAID_NEITHER).sum()) for c in verdicts["write"]),
        }


@dataclass(slots=True, kw_only=True, eq=False)
class _Relation:
    """What is known of a relation while its answers come in."""

    asking: Asking
    items: tuple[Item, ...]
    rows: Mapping[str, int]
    numbers: Mapping[tuple[Task, str], int]
    cells: Cells
    said: dict[int, Said] = field(default_factory=dict)


class Tally:
    """Takes answers in any order; of two to the same prompt the later one counts."""

    def __init__(self, dataset: Dataset, shape: Shape, language: str) -> None:
        self._dataset, self._language = dataset, language
        self.census = Census()
        self._relations: dict[str, _Relation] = {}
        for asking in every(dataset, shape, self.census):
            items = tuple(asking.items())
            if items:
                self._relations[asking.relation.id] = _started(asking, items)
        self._choose_shown()
        self._texts: dict[str, str] = {}
        self._prompts: dict[tuple[str, Task], tuple[int, str]] = {}

    def add(self, row: Answered) -> None:
        """Judge one answer."""
        known = self._relations[row.key.relation]
        fact = known.rows[row.key.fact]
        place = Place.of(row.key.context)
        template = known.numbers[place.task, row.key.template]
        item = known.items[fact]
        name = 1 + item.wrong.index(place.name) if place.kind == "wrong" else 0
        self._keep_prompt(row, place, fact, template)
        if place.task == "fc":
            known.cells.fc[place.way][fact, template, name] = verdict(row)
            return
        text = written(row)
        if place.kind == "none":
            self._judge(known.cells, place.task, (fact, template), text, item)
        else:
            known.cells.told[fact, name] = coded(text, equal(text, item.correct))
            own = item.gold if place.kind == "right" else place.name
            known.cells.copied[fact, name] = coded(text, equal(text, (own,)))
        if fact in known.said:
            spot = (place.task, template) if place.kind == "none" else ("told", name)
            known.said[fact][spot] = self._texts.setdefault(text, text)

    def outcomes(self) -> Outcomes:
        """Everything that was judged."""
        found = tuple(self._measured(known) for known in self._relations.values())
        return Outcomes(
            relations=found,
            census=self.census,
            prompts={key: text for key, (_, text) in sorted(self._prompts.items())},
        )

    def _judge(self, cells: Cells, task: Task, at: tuple[int, int], text: str, item: Item) -> None:
        by_lemma = correct(text, item.correct, self._language)
        if task == "wp":
            cells.wp[at] = coded(text, by_lemma)
        else:
            cells.qa[at] = coded(text, equal(text, item.correct))
            cells.qa_lemma[at] = coded(text, by_lemma)

    def _keep_prompt(self, row: Answered, place: Place, fact: int, template: int) -> None:
        """The first fact's prompt in the first template, with no name where that can be."""
        if template == 0 and fact == 0 and place.kind in ("none", "right"):
            rank = 0 if place.kind == "none" or place.task == "fc" else 1
            key = (row.key.relation, place.task)
            if key not in self._prompts or rank < self._prompts[key][0]:
                self._prompts[key] = (rank, row.prefix)

    def _measured(self, known: _Relation) -> Measured:
        relation = known.asking.relation
        common = commonest_objects(self._dataset.split_frame(relation.id))
        guess = common[0][0] if common else ""
        by_lemma = [correct(guess, item.correct, self._language) for item in known.items]
        by_name = [equal(cleaned(guess), item.correct) for item in known.items]
        return Measured(
            relation=relation,
            templates=known.asking.templates,
            items=known.items,
            cells=known.cells,
            subjects=_subjects(known.items),
            majority=guess,
            by_lemma=np.array(by_lemma, dtype=np.bool_),
            by_name=np.array(by_name, dtype=np.bool_),
            said=known.said,
        )

    def _choose_shown(self) -> None:
        seed = self._dataset.selection.seed
        every_one = (
            (draw_key(seed, f"shown:{relation}:{id}"), relation, row)
            for relation, known in self._relations.items()
            for id, row in known.rows.items()
        )
        for _, relation, row in nsmallest(SHOWN, every_one):
            self._relations[relation].said[row] = {}


def _started(asking: Asking, items: tuple[Item, ...]) -> _Relation:
    numbers = {
        (task, template.id): number
        for task, own in asking.templates.items()
        for number, template in enumerate(own)
    }
    return _Relation(
        asking=asking,
        items=items,
        rows={item.fact.id: row for row, item in enumerate(items)},
        numbers=numbers,
        cells=_unanswered(asking.templates, items),
    )


def _unanswered(templates: Mapping[Task, tuple[Template, ...]], items: Sequence[Item]) -> Cells:
    facts, names = len(items), 1 + max(len(item.wrong) for item in items)
    wp, qa, fc = (len(templates[task]) for task in ("wp", "qa", "fc"))
    return Cells(
        wp=_missing(facts, wp),
        qa=_missing(facts, qa),
        qa_lemma=_missing(facts, qa),
        fc={"score": _missing(facts, fc, names), "write": _missing(facts, fc, names)},
        told=_missing(facts, names),
        copied=_missing(facts, names),
    )


def _missing(*sizes: int) -> Codes:
    return np.full(sizes, MISSING, dtype=np.int8)


def _subjects(items: Sequence[Item]) -> Ints:
    numbers: dict[str, int] = {}
    found = [numbers.setdefault(item.fact.subject.id, len(numbers)) for item in items]
    return np.array(found, dtype=np.int64)


def shares(codes: Codes, wanted: int) -> Floats:
    """1 where a judgement is the wanted one, 0 where it is another, nan where there is none."""
    return np.where(codes == MISSING, np.nan, (codes == wanted).astype(np.float64))


def coded(text: str, right: bool) -> int:
    """The judgement of an answer as a number."""
    if not text:
        return EMPTY
    return RIGHT if right else WRONG


def equal(text: str, names: Sequence[str] | frozenset[str]) -> bool:
    """Whether an answer, cleaned, is one of the names; an empty one is none.

    >>> equal("Washington, D.C", ("Washington, D.C.",)), equal("", ("",))
    (True, False)
    """
    return bool(text) and any(text == cleaned(name) for name in names)


def written(row: Answered) -> str:
    """A written answer, cleaned."""
    if not isinstance(row.answer, Generated):
        raise AbilityError("framing reads written answers and scored verdicts, not other answers")
    return cleaned(row.answer.text)


def verdict(row: Answered) -> int:
    """What was said of a statement: the likelier option, or the first word that was written."""
    if isinstance(row.answer, Scored):
        options = row.answer.options
        choice = choose(option_logps(row.answer), options.index(TRUE))
        if choice.tied:
            return SAID_NEITHER
        return SAID_TRUE if options[choice.chosen] == TRUE else SAID_FALSE
    return first_word(written(row))


def first_word(text: str) -> int:
    """Which verdict a text begins with, whatever its case.

    >>> first_word("true, it is") == SAID_TRUE, first_word("It is true") == SAID_NEITHER
    (True, True)
    """
    found = WORD.search(text)
    word = found[0].casefold() if found else ""
    known = {TRUE.casefold(): SAID_TRUE, FALSE.casefold(): SAID_FALSE}
    return known.get(word, SAID_NEITHER)
