"""More questions for a relation: from a file, or written by a model that is asked for them.

Knows nothing of which questions are kept. Every answer of the model is kept in a journal under the
question it answers, so that a build that was stopped asks nothing twice: a JSON object a line,
`key` and `text`, written whole and forced to disk. Half a line, left by a kill, is cut off.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sonde.core.errors import StoreError
from sonde.core.facts import ANSWER_SLOT, SUBJECT_SLOT, Relation
from sonde.core.fingerprints import fingerprint
from sonde.data.lines import read_rows


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
