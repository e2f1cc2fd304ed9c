"""Check how much memory an Excel workbook needs before it is loaded.

Sizes that a workbook declares may be wrong: parts are unpacked and cells are counted, in a stream.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.parsers import expat
from zipfile import ZipFile

from sonde.core.errors import DataError
from sonde.data.tables.columns import LONGEST_CELL, MOST_TEXT

UNPACKED = 512
"""MiB that all parts may have."""

CELLS = 20_000_000
"""Cells of the smallest rectangle that holds a sheet: the loader makes all of them."""

MIB = 2**20
CHUNK = 2**16
TAG = 8 * MIB
"""Bytes that the parser may hold back as one tag."""

REFERENCE = re.compile(r"([A-Za-z]{1,7})(\d{1,10})")
ADVICE = "save the table as CSV (UTF-8), without what does not belong to it"


def check_workbook(path: Path) -> None:
    """Reject a workbook that needs too much memory; raises as zipfile and expat do on others."""
    left, shared = UNPACKED * MIB, list[int]()
    with ZipFile(path) as archive:
        parts = archive.infolist()
        for part in sorted(parts, key=lambda part: "sharedstrings" not in part.filename.lower()):
            part.file_size = 2**62  # read to the real end of the stream
            scan: _Scan | None = _Scan(path, shared)
            with archive.open(part) as file:
                while data := file.read(CHUNK):
                    left -= len(data)
                    if left < 0:
                        raise DataError(f"{path} unpacks to more than {UNPACKED} MiB; {ADVICE}")
                    try:
                        scan = scan and scan.feed(data)
                    except expat.ExpatError:
                        if part.filename.lower().endswith((".xml", ".rels")):
                            raise
                        scan = None  # a picture, say


class _Scan:
    """Reads a part; counts the texts of `shared` strings and the cells of a sheet."""

    def __init__(self, path: Path, shared: list[int]) -> None:
        self.path, self.shared = path, shared
        self.row = self.column = self.fed = self.text = 0
        self.top = self.left = 2**62
        self.bottom = self.right = 0
        self.length: int | None = None
        self.index: str | None = None
        self.indexed = False
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters

    def feed(self, data: bytes) -> _Scan:
        """Read on."""
        self.parser.Parse(data)
        self.fed += len(data)
        if self.fed - self.parser.CurrentByteIndex > TAG:
            raise DataError(f"{self.path} has a tag of more than {TAG // MIB} MiB; {ADVICE}")
        return self

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Note where a cell is, and whether it holds anything."""
        tag = name.rpartition(":")[2]
        if tag == "row":
            self.row, self.column = _number(attributes.get("r"), self.row + 1), 0
        elif tag == "c":
            self.column += 1
            if at := REFERENCE.fullmatch(attributes.get("r", "")):
                self.row, self.column = int(at[2]), _column(at[1])
            self.length, self.indexed = 0, attributes.get("t") == "s"
        elif tag == "si":
            self.length = 0
        elif self.length is not None and tag in ("v", "is"):
            self.index = "" if self.indexed else None
            self._extend()

    def _extend(self) -> None:
        self.top, self.bottom = min(self.top, self.row), max(self.bottom, self.row)
        self.left, self.right = min(self.left, self.column), max(self.right, self.column)
        rows, columns = self.bottom - self.top + 1, self.right - self.left + 1
        if rows * columns > CELLS:
            raise DataError(
                f"{self.path} has a sheet of {rows:,} rows and {columns:,} columns, up to a cell "
                f"far away; sonde reads {CELLS:,} cells at most; {ADVICE}"
            )

    def characters(self, data: str) -> None:
        """Count what is in a cell or a shared string."""
        if self.length is not None:
            self.length += len(data)
            if self.length > LONGEST_CELL:
                raise DataError(
                    f"{self.path} has a cell of more than {LONGEST_CELL:,} characters; {ADVICE}"
                )
            if self.index is not None:
                self.index += data

    def end(self, name: str) -> None:
        """Add up the text of a cell, also where it is a shared string."""
        tag = name.rpartition(":")[2]
        if tag == "si" and self.length is not None:
            self.shared.append(self.length)
            self.length = None
        elif tag == "c" and self.length is not None:
            number = _number(self.index, -1)
            known = 0 <= number < len(self.shared)
            self.text += self.shared[number] if known else self.length
            self.length = self.index = None
            if self.text > MOST_TEXT:
                raise DataError(f"{self.path} has more than {MOST_TEXT:,} characters; {ADVICE}")


def _number(text: Any, otherwise: int) -> int:
    text = (text or "").strip()
    return int(text) if text.isdecimal() and len(text) < 10 else otherwise


def _column(letters: str) -> int:
    """The number of a column: 1 for A, 27 for AA."""
    number = 0
    for letter in letters.upper():
        number = 26 * number + ord(letter) - ord("A") + 1
    return number
