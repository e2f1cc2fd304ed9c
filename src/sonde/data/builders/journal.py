"""Answers that were paid for or waited for, kept on disk as they come. Knows nothing of servers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from sonde.data.growing import append_rows, whole_rows
from sonde.data.lines import Row


class Tokens(NamedTuple):
    """What an answer cost, as the endpoint counts it."""

    sent: int
    received: int


class Answer(NamedTuple):
    """What was answered; its tokens are None where nobody told them."""

    text: str
    tokens: Tokens | None = None


class Journal:
    """Answers by key, a JSON object a line, each written whole and forced to disk.

    What was kept before is there again, and `before` counts it; half a line, left by a kill, is cut
    off.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._kept = {row.text("key"): _answer(row) for row in whole_rows(path)}
        self.before = len(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: str) -> str | None:
        """The answer kept under a key."""
        kept = self._kept.get(key)
        return None if kept is None else kept.text

    def keep(self, key: str, text: str, tokens: Tokens | None = None) -> None:
        """Write an answer to disk."""
        cost = {} if tokens is None else {"tokens": list(tokens)}
        append_rows(self.path, {"key": key, "text": text, **cost})
        self._kept[key] = Answer(text, tokens)

    def keep_all(self, answers: Iterable[tuple[str, str]]) -> None:
        """Write several that came together."""
        kept = dict(answers)
        append_rows(self.path, *({"key": key, "text": text} for key, text in kept.items()))
        self._kept |= {key: Answer(text) for key, text in kept.items()}

    def answers(self, start: int = 0) -> list[Answer]:
        """The answers in the order in which they came, from a place on."""
        return list(self._kept.values())[start:]


def _answer(row: Row) -> Answer:
    match row.values.get("tokens"):
        case [int(sent), int(received)]:
            return Answer(row.text("text"), Tokens(sent, received))
        case _:
            return Answer(row.text("text"))
