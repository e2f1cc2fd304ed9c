"""The folder beside a dataset that is being built: a lock, and answers as they come."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from sonde.core.errors import StoreError
from sonde.core.files import take_lock
from sonde.data.lines import Row, append_rows, whole_rows

LOCK = ".lock"


def work_of(out: Path) -> Path:
    """Where a build keeps what it was answered."""
    named = out if out.name not in ("", "..") else out.resolve()
    return named.with_name(f"{named.name}.work")


@contextmanager
def working(out: Path) -> Iterator[Path]:
    """That folder, for nobody else meanwhile: another build into the same place is refused.

    A folder in which nothing is kept is gone afterwards.
    """
    work = work_of(out)
    busy = f"{out} is being built by another process; wait for it, or give another folder with -o"
    try:
        work.mkdir(parents=True, exist_ok=True)
        lock = take_lock(work / LOCK, busy)
    except OSError as error:
        raise StoreError(f"{work} cannot be written: {error.strerror or error}") from None
    with lock:
        if not _stands(work / LOCK, lock.fileno()):
            raise StoreError(busy)
        try:
            yield work
        finally:
            if work.is_dir() and {path.name for path in work.iterdir()} <= {LOCK}:
                shutil.rmtree(work, ignore_errors=True)


def _stands(path: Path, number: int) -> bool:
    """Whether an open file is still there; whoever had it before may have removed it."""
    try:
        return os.path.samestat(path.stat(), os.fstat(number))
    except OSError:
        return False


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
