"""Answers that cost something, kept on disk as soon as they come. Knows nothing of what they say.

A JSON object a line: `key`, which names the question, and `text`. A line is written whole and
forced to disk; half a line, left by a kill, is cut off when the file is opened.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from sonde.core.errors import StoreError
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
