"""Questions for a relation: which become its frames, and where more of them come from.

A frame asks for the object and has one slot for the subject: `Where was [X] born?`. The first one
that qualifies is the base frame; any other is kept while it is not too alike to one kept before,
by BLEU; this is the only file that knows sacrebleu.

More come from a file, or are written by a model that is asked for them. Every answer of the model
is kept in a journal under the question it answers, so that a build that was stopped asks nothing
twice: a JSON object a line, `key` and `text`, written whole and forced to disk. Half a line, left
by a kill, is cut off.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Protocol

from sonde.core.errors import MissingExtra, StoreError
from sonde.core.facts import ANSWER_SLOT, SUBJECT_SLOT, Relation, Template
from sonde.core.fingerprints import fingerprint
from sonde.data.check import bare, stands_in
from sonde.data.lines import read_rows
from sonde.prompting.few_shot import QUESTION_MARKS

Origin = Literal["own", "file", "endpoint"]
Fault = Literal["malformed", "repeated", "alike", "telling"]

LONGEST = 300
INSTALL = "pip install 'sonde[paraphrase]'"
_ANSWER = re.compile(rf"\s*{re.escape(ANSWER_SLOT)}\W*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How many frames are wanted, and the BLEU that two of them must stay under."""

    frames: int = 7
    bleu: float = 70.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A question that is kept; `template` is the dataset's own, where it is from there."""

    text: str
    origin: Origin
    template: Template | None = None


@dataclass(slots=True, kw_only=True)
class Gathered:
    """The frames of a relation so far, and how many questions of each origin were refused, why.

    `objects` are names that a question of another's must not give away.
    """

    rule: Rule
    objects: Sequence[str] = ()
    frames: list[Frame] = field(default_factory=list)
    refused: Counter[tuple[Origin, Fault]] = field(default_factory=Counter)

    @property
    def missing(self) -> int:
        """Frames that are still wanted."""
        return self.rule.frames - len(self.frames)

    @property
    def texts(self) -> tuple[str, ...]:
        """The questions that are kept."""
        return tuple(frame.text for frame in self.frames)

    def count(self, origin: Origin) -> int:
        """Frames of an origin."""
        return sum(frame.origin == origin for frame in self.frames)

    def offer(self, questions: Iterable[str | Template], origin: Origin) -> None:
        """Keep what qualifies, until there are enough frames."""
        for given in questions:
            if self.missing <= 0:
                return
            template = given if isinstance(given, Template) else None
            text = question_of(template.text if template else str(given))
            hidden = self.objects if template is None else ()
            if fault := fault_of(text, self.texts, self.rule.bleu, hidden):
                self.refused[origin, fault] += 1
            else:
                self.frames.append(Frame(text=text, origin=origin, template=template))


def question_of(text: str) -> str:
    """A question without the place of its answer, spare spaces dropped.

    >>> question_of("Where was  [X] born? [Y].")
    'Where was [X] born?'
    """
    return _ANSWER.sub("", " ".join(text.split()))


def fault_of(text: str, kept: Sequence[str], bleu: float, objects: Sequence[str]) -> Fault | None:
    """Why a question cannot join the frames that are kept; None where it can."""
    if not _sound(text):
        return "malformed"
    if bare(text) in map(bare, kept):
        return "repeated"
    if any(likeness(text, other) >= bleu for other in kept):
        return "alike"
    return "telling" if any(stands_in(name, text) for name in objects) else None


def templates(relation: Relation, frames: Sequence[Frame]) -> tuple[Template, ...]:
    """A relation's templates: its frames, the base frame first, then its statements."""
    statements = tuple(t for t in relation.templates if t.style == "statement")
    made = tuple(_made(relation, frames, statements))
    ids = {template.id for template in (*made, *statements)}
    kept = (*made, *statements)
    return tuple(t if t.group in ids else replace(t, group=t.id) for t in kept)


def _made(
    relation: Relation, frames: Sequence[Frame], statements: Sequence[Template]
) -> Iterator[Template]:
    taken = {template.id for template in relation.templates}
    base = statements[0].id if statements else ""
    for place, frame in enumerate(frames, 1):
        made = frame.template or Template(
            id=_free(f"{relation.id}-frame-{place}", taken),
            text=f"{frame.text} {ANSWER_SLOT}.",
            source="paraphrase",
            style="question",
            group=base,
        )
        base = made.id if place == 1 else base
        yield made


def _free(id: str, taken: set[str]) -> str:
    """An identifier that no template has."""
    while id in taken:
        id += "x"
    return id


def _sound(text: str) -> bool:
    return (
        text.count(SUBJECT_SLOT) == 1
        and ANSWER_SLOT not in text
        and text.endswith(QUESTION_MARKS)
        and len(text) <= LONGEST
        and text.isprintable()
    )


def need_bleu() -> None:
    """Refuse clearly where sacrebleu is not installed."""
    if find_spec("sacrebleu") is None:
        raise MissingExtra(f"sacrebleu, which compares frames, is not installed; run: {INSTALL}")


def likeness(one: str, other: str) -> float:
    """Sentence BLEU of two questions, 0 to 100: the larger of both directions.

    The subject's slot counts as one word, not as a word in brackets.
    """
    return max(_directed(one, other), _directed(other, one))


@cache
def _directed(said: str, meant: str) -> float:
    score = _metric().sentence_score(_words(said), [_words(meant)]).score
    return min(float(score), 100.0)  # rounding leaves a trace above


@cache
def _metric() -> Any:
    need_bleu()
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(effective_order=True)  # short questions may have no four words in a row in common


def _words(text: str) -> str:
    return text.replace(SUBJECT_SLOT, "X")


class Journal:
    """Answers by key; what was kept before is there again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._kept = _read(path)

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: str) -> str | None:
        """The answer kept under a key."""
        return self._kept.get(key)

    def keep(self, key: str, text: str) -> None:
        """Write an answer to disk."""
        line = json.dumps({"key": key, "text": text}) + "\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror}") from None
        self._kept[key] = text


def _read(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    try:
        whole, end, half = path.read_bytes().rpartition(b"\n")
        if half:
            os.truncate(path, len(whole + end))
    except OSError as error:
        raise StoreError(f"{path} cannot be continued: {error.strerror}") from None
    return {row.text("key"): row.text("text") for row in read_rows(path)}


SPARE = 3
"""Questions asked for beyond those that are missing: some will be too alike."""

_MARK = re.compile(r"^\s*(?:[-*•]+|\(?\d+[.):]|Q\d*:)\s*")
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)


class Asks(Protocol):
    """Something that answers a text with a text."""

    def ask(self, text: str) -> str:
        """The answer."""


class Writer(Protocol):
    """Writes questions for a relation."""

    def write(
        self, relation: Relation, kept: Sequence[str], missing: int, turn: int
    ) -> tuple[str, ...]:
        """Some questions, unlike those that are kept, if there are any; `turn` counts from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWriter:
    """Asks a model for questions, and keeps its answers."""

    chat: Asks
    model: str
    journal: Journal

    def write(
        self, relation: Relation, kept: Sequence[str], missing: int, turn: int
    ) -> tuple[str, ...]:
        """What the model writes, or wrote before a build was stopped."""
        text = request(relation, kept, missing + SPARE)
        key = fingerprint([self.model, str(turn), relation.id, text])
        answer = self.journal.find(key)
        if answer is None:
            answer = self.chat.ask(text)
            self.journal.keep(key, answer)
        return tuple(candidates(answer))


def request(relation: Relation, kept: Sequence[str], count: int) -> str:
    """What a model is asked: to reword the questions there are, or to make some of a statement."""
    if kept:
        task = f"Reword this question in {count} different ways:\n{kept[0]}\n"
    else:
        task = f"Write {count} different questions that ask for the answer to: {_told(relation)}\n"
    if kept[1:]:
        task += "These are there already; use other words and another order:\n"
        task += "".join(f"{text}\n" for text in kept[1:])
    return (
        f"{task}\n"
        f"{SUBJECT_SLOT} stands for a name. Write {SUBJECT_SLOT} exactly once in every question, "
        "name no other thing, and end each with a question mark. Every question must ask for "
        f"exactly the same thing ({relation.label}). Write one question a line and nothing else."
    )


def candidates(answer: str) -> Iterator[str]:
    """The lines of an answer that may be questions, without numbers, dashes and quotes.

    >>> list(candidates("Sure:\\n1. \\"Where is [X]?\\"\\n- **Whence is [X]?**"))
    ['Sure:', 'Where is [X]?', 'Whence is [X]?']
    """
    text = _THOUGHT.sub("", answer)
    for line in _listed(text) or text.splitlines():
        found = _MARK.sub("", line).strip(" \t\r\n\"'`*_“”‘’,")
        if found and not found.startswith("```"):
            yield found


def read_questions(path: Path) -> dict[str, tuple[str, ...]]:
    """Questions by relation from a file of JSON lines: `relation` and `text`."""
    found: dict[str, list[str]] = {}
    for row in read_rows(path):
        found.setdefault(row.text("relation"), []).append(row.text("text"))
    return {relation: tuple(texts) for relation, texts in found.items()}


def _told(relation: Relation) -> str:
    """The statement that a question is made of; the bare label where there is none."""
    for template in relation.templates:
        if template.style == "statement":
            return f"{template.text} ({ANSWER_SLOT} is the answer, the {relation.label})"
    return f"the {relation.label} of {SUBJECT_SLOT}"


def _listed(text: str) -> list[str]:
    """The texts of an answer that is a JSON list of texts; none where it is not."""
    bare = re.sub(r"^```\w*|```$", "", text.strip()).strip()
    try:
        value = json.loads(bare) if bare.startswith("[") else None
    except (ValueError, RecursionError):
        return []
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []
