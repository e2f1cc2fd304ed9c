"""Files that only grow, a JSON object a line, each forced to disk: what is written outlives a kill.

Half a line at the end, left by a kill, is no line: it is passed over, and cut off by the next one
that is written. A last line that is whole, but for its end, stays.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from sonde.core.errors import StoreError
from sonde.data.lines import Row, raw_lines, row_of


def append_rows(path: Path, *rows: Mapping[str, Any]) -> None:
    """Write more lines to disk, all at once; their folder is made where it is missing."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            _close_last(file)
            file.write(text.encode(errors="replace"))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from None


def whole_rows(path: Path) -> Iterator[Row]:
    """The lines that are whole; none where there is no file."""
    if not path.exists():
        return
    for where, raw in raw_lines(path):
        if raw.strip() and (raw.endswith(b"\n") or _is_json(raw)):
            yield row_of(raw, where)


def _close_last(file: IO[bytes]) -> None:
    """Make a file end with the end of a line."""
    if file.seek(0, os.SEEK_END) == 0:
        return
    file.seek(-1, os.SEEK_END)
    if file.read(1) == b"\n":
        return
    file.seek(0)
    before, end, last = file.read().rpartition(b"\n")
    if _is_json(last):
        file.write(b"\n")
    else:
        file.truncate(len(before + end))


def _is_json(raw: bytes) -> bool:
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return True
