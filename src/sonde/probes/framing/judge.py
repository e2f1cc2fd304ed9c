"""Answers of `framing` judged and put in their places, whatever order they come in.

Knows facts and answers, nothing of estimates or tables. A fact's judgements are small whole numbers
in arrays over all facts: MISSING where nothing was asked or answered. Chosen verdicts are judged a
block at a time; written answers are compared one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from sonde.core.answers import Generated
from sonde.core.columns import Answers, Given, RatedColumns, in_blocks
from sonde.core.errors import AbilityError
from sonde.core.facts import Dataset, Relation, Template, commonest_objects
from sonde.core.scores import sound
from sonde.metrics.grid import Bools, Floats, Ints
from sonde.probes.framing.ask import FALSE, TASKS, TRUE, Asking, Census, Settings, Task, every
from sonde.prompting.frames import Item, cleaned
from sonde.prompting.matching import correct
from sonde.reporting.build.tables import drawn

Codes = NDArray[np.int8]
Way = str
"""How a verdict was given: scored or generated."""

WAYS: tuple[Way, ...] = ("scored", "generated")
MISSING, WRONG, RIGHT, EMPTY = -1, 0, 1, 2
SAID_NEITHER, SAID_TRUE, SAID_FALSE = 0, 1, 2
SHOWN = 5_000
"""The most facts whose answers are kept, to be shown."""

WORD = re.compile(r"[^\W\d_]+")

Said = dict[tuple[str, int], str]
"""Answers of a fact by (task, template); those after a name by ("told", 0 or the wrong name's)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """How the prompts went; the first axis is all facts, relation by relation.

    `wp`, `qa`, `qa_lemma` [facts, templates]: whether the answer is right, the last two by equal
    names and by lemmas. `fc[way]` [facts, templates, 1 + wrong names]: what was said of the true
    statement, then of the false ones. `told`, `copied` [facts, 1 + wrong names]: whether the answer
    is right, or is the name that stood in front: first the right one, then the wrong ones.
    Relations with fewer templates than others miss the last ones.
    """

    wp: Codes
    qa: Codes
    qa_lemma: Codes
    fc: Mapping[Way, Codes]
    told: Codes
    copied: Codes


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcomes:
    """Everything that was judged.

    Of each relation: its `templates` by task and its commonest object, `majority`. Of each fact:
    the number of its `relation`, of its `subject`, and whether the commonest object is right for
    it, by lemmas and by equal names. `said` are the answers of some facts, by their row;
    `prompts` one of each task and relation, to be shown.
    """

    relations: tuple[Relation, ...]
    templates: tuple[Mapping[Task, tuple[Template, ...]], ...]
    majority: tuple[str, ...]
    items: tuple[Item, ...]
    relation: Ints
    by_lemma: Bools
    by_name: Bools
    cells: Cells
    said: Mapping[int, Said]
    census: Census
    prompts: Mapping[tuple[str, Task], str]

    @cached_property
    def subject(self) -> Ints:
        """Facts with the same number have the same subject."""
        numbers: dict[tuple[str, str], int] = {}
        keys = ((item.fact.relation, item.fact.subject.id) for item in self.items)
        return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)

    def counts(self) -> dict[str, int]:
        """How much was asked, and what was answered with nothing, by name."""
        texts = (self.cells.wp, self.cells.qa, self.cells.told)
        scored, written = (self.cells.fc[way] for way in WAYS)
        return {
            "relations": len(self.relations),
            "facts": len(self.items),
            "prompts": sum(int((codes != MISSING).sum()) for codes in (*texts, scored, written)),
            "empty_answers": sum(int((codes == EMPTY).sum()) for codes in texts),
            "verdicts_tied": int((scored == SAID_NEITHER).sum()),
            "verdicts_neither": int((written == SAID_NEITHER).sum()),
        }


class _Tally:
    """Takes answers in any order; of two to the same prompt the later one counts."""

    def __init__(self, dataset: Dataset, settings: Settings) -> None:
        self.census = Census()
        self.askings: list[Asking] = []
        self.items: list[Item] = []
        owners: list[int] = []
        for asking in every(dataset, settings):
            items = list(asking.items(self.census))
            owners += [len(self.askings)] * len(items)
            self.items += items
            self.askings += [asking] if items else []
        self.relation = np.array(owners, dtype=np.int64)
        self._language = settings.language
        self._facts = {(i.fact.relation, i.fact.id): row for row, i in enumerate(self.items)}
        self._templates = {
            (asking.relation.id, task, template.id): number
            for asking in self.askings
            for task, templates in asking.templates.items()
            for number, template in enumerate(templates)
        }
        self._names = {
            (item.fact.relation, item.fact.id, name): number
            for item in self.items
            for number, name in enumerate((item.gold, *item.wrong))
        }
        self.cells = self._unanswered()
        ids = [f"shown:{item.fact.relation}:{item.fact.id}" for item in self.items]
        self.said: dict[int, Said] = {row: {} for row in drawn(ids, dataset.selection.seed, SHOWN)}
        self.prompts: dict[tuple[str, Task], tuple[int, str]] = {}
        self._firsts = set(np.unique(self.relation, return_index=True)[1].tolist())

    def _unanswered(self) -> Cells:
        facts, names = len(self.items), 1 + max((len(i.wrong) for i in self.items), default=0)
        wp, qa, fc = (
            max((len(asking.templates[task]) for asking in self.askings), default=0)
            for task in TASKS
        )
        return Cells(
            wp=_missing(facts, wp),
            qa=_missing(facts, qa),
            qa_lemma=_missing(facts, qa),
            fc={way: _missing(facts, fc, names) for way in WAYS},
            told=_missing(facts, names),
            copied=_missing(facts, names),
        )

    def add(self, block: Answers) -> None:
        """Judge the answers of a block."""
        fact = block.numbers(("relation", "fact"), self._facts)
        template = block.numbers(("relation", "task", "template"), self._templates)
        name = block.numbers(("relation", "fact", "object"), self._names, lambda _: 0)
        codes, tasks = block.codes("task")
        checks = np.array([task == "fc" for task in tasks], dtype=np.bool_)[codes]
        self._keep_prompts(block, fact, template)
        if block.kind == "scored":
            self.cells.fc["scored"][fact, template, name] = verdicts(block.rated)
            return
        texts = [cleaned(answer.text) for answer in _written(block)]
        said = [first_word(text) for text, check in zip(texts, checks, strict=True) if check]
        at = (fact[checks], template[checks], name[checks])
        self.cells.fc["generated"][at] = said
        told, kinds = block.codes("told")
        for row in np.flatnonzero(~checks).tolist():
            spot = (int(fact[row]), int(template[row]), int(name[row]))
            bare = kinds[told[row]] == "none"
            self._judge(cast(Task, tasks[codes[row]]) if bare else None, spot, texts[row])

    def _judge(self, task: Task | None, spot: tuple[int, int, int], text: str) -> None:
        """Judge an answer to a bare sentence or question, or, without a task, after a name."""
        fact, template, name = spot
        item, cells = self.items[fact], self.cells
        if task is None:
            own = (item.gold, *item.wrong)[name]
            cells.told[fact, name] = coded(text, equal(text, item.correct))
            cells.copied[fact, name] = coded(text, equal(text, (own,)))
        else:
            by_lemma = coded(text, correct(text, item.correct, self._language))
            (cells.wp if task == "wp" else cells.qa_lemma)[fact, template] = by_lemma
        if task == "qa":
            cells.qa[fact, template] = coded(text, equal(text, item.correct))
        if fact in self.said:
            self.said[fact][("told", name) if task is None else (task, template)] = text

    def _keep_prompts(self, block: Answers, fact: Ints, template: Ints) -> None:
        """The first fact's prompt in the first template, with no name where that can be."""
        for row in np.flatnonzero((template == 0) & np.isin(fact, list(self._firsts))).tolist():
            relation, task, told, prefix = block.names_at(
                row, ("relation", "task", "told", "prefix")
            )
            rank = 0 if told == "none" or task == "fc" else 1
            key = (relation, cast(Task, task))
            if told != "wrong" and (key not in self.prompts or rank < self.prompts[key][0]):
                self.prompts[key] = (rank, prefix)


def judge(dataset: Dataset, answers: Given, settings: Settings) -> Outcomes:
    """Judge every answer."""
    tally = _Tally(dataset, settings)
    for block in in_blocks(answers):
        tally.add(block)
    ranked = [commonest_objects(dataset.split_frame(a.relation.id)) for a in tally.askings]
    majority = [objects[0][0] if objects else "" for objects in ranked]
    guesses = [majority[owner] for owner in tally.relation.tolist()]

    def right(rule: Callable[[str, Collection[str]], bool]) -> Bools:
        pairs = zip(guesses, tally.items, strict=True)
        return np.array([rule(guess, item.correct) for guess, item in pairs], dtype=np.bool_)

    return Outcomes(
        relations=tuple(asking.relation for asking in tally.askings),
        templates=tuple(asking.templates for asking in tally.askings),
        majority=tuple(majority),
        items=tuple(tally.items),
        relation=tally.relation,
        by_lemma=right(lambda guess, names: correct(guess, names, settings.language)),
        by_name=right(lambda guess, names: equal(cleaned(guess), names)),
        cells=tally.cells,
        said=tally.said,
        census=tally.census,
        prompts={key: text for key, (_, text) in sorted(tally.prompts.items())},
    )


def _missing(*sizes: int) -> Codes:
    return np.full(sizes, MISSING, dtype=np.int8)


def shares(codes: Codes, wanted: int) -> Floats:
    """1 where a judgement is the wanted one, 0 where it is another, nan where there is none."""
    return np.where(codes == MISSING, np.nan, (codes == wanted).astype(np.float64))


def coded(text: str, right: bool) -> int:
    """The judgement of an answer as a number."""
    if not text:
        return EMPTY
    return RIGHT if right else WRONG


def equal(text: str, names: Collection[str]) -> bool:
    """Whether an answer, cleaned, is one of the names; an empty one is none.

    >>> equal("Washington, D.C", ("Washington, D.C.",)), equal("", ("",))
    (True, False)
    """
    return bool(text) and any(text == cleaned(name) for name in names)


def _written(block: Answers) -> Sequence[Generated]:
    if block.kind != "generated":
        raise AbilityError("framing reads written answers and scored verdicts, not other answers")
    return cast(list[Generated], block.columns)


def verdicts(rated: RatedColumns) -> Codes:
    """What was said of statements: the likelier option, neither where both are as likely."""
    assert rated.options is not None
    values = rated.sums().reshape(-1, 2)
    sound(values.max(axis=1))
    names = np.array([{TRUE: SAID_TRUE, FALSE: SAID_FALSE}[name] for name in rated.names])
    likelier = names[rated.options.reshape(-1, 2)[np.arange(len(values)), values.argmax(axis=1)]]
    return np.where(values[:, 0] == values[:, 1], SAID_NEITHER, likelier).astype(np.int8)


def first_word(text: str) -> int:
    """Which verdict a text begins with, whatever its case.

    >>> first_word("true, it is") == SAID_TRUE, first_word("It is true") == SAID_NEITHER
    (True, True)
    """
    found = WORD.search(text)
    word = found[0].casefold() if found else ""
    return {TRUE.casefold(): SAID_TRUE, FALSE.casefold(): SAID_FALSE}.get(word, SAID_NEITHER)
