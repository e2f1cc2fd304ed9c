"""Answers that were paid for or waited for, kept on disk as they come. Knows nothing of servers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from sonde.core.errors import StoreError
from sonde.data.lines import read_rows


class Journal:
    """Answers by key, a JSON object a line, each written whole and forced to disk.

    What was kept before is there again; half a line, left by a kill, is cut off.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._kept = _read(path)
        self.before = len(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: str) -> str | None:
        """The answer kept under a key."""
        return self._kept.get(key)

    def keep(self, key: str, text: str) -> None:
        """Write an answer to disk."""
        self.keep_all([(key, text)])

    def keep_all(self, answers: Iterable[tuple[str, str]]) -> None:
        """Write several that came together."""
        kept = dict(answers)
        lines = "".join(json.dumps({"key": k, "text": t}) + "\n" for k, t in kept.items())
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(lines)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror}") from None
        self._kept |= kept


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
