"""What a cell of a table holds: one text, or several. Knows no files and no columns.

Several texts stand in one cell with `|` between them, or as a list: a real one in JSON lines and
Parquet, else written in JSON or as Python writes it. What stands in a list is not taken apart.
"""

from __future__ import annotations

import ast
import json
import re
from math import isfinite
from typing import Any

SEPARATOR = "|"
THOUSANDS = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")


def text_in(cell: Any) -> str:
    """The one text of a cell, without spare spaces; empty where there is none.

    >>> text_in("  New   York"), text_in(1947.0), text_in(None), text_in(["a", "b"])
    ('New York', '1947', '', 'a')
    """
    if isinstance(cell, list | tuple):
        return next(filter(None, map(text_in, cell)), "")
    if cell is None or cell != cell or isinstance(cell, dict):
        return ""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return " ".join(str(cell).split())


def texts_in(cell: Any) -> list[str]:
    """The texts of a cell, each once.

    >>> texts_in("Merlot | Malbec"), texts_in('["Syrah|Shiraz"]'), texts_in(["a", None, "a"])
    (['Merlot', 'Malbec'], ['Syrah|Shiraz'], ['a'])
    """
    if isinstance(cell, str):
        listed = _written_list(cell)
        cell = cell.split(SEPARATOR) if listed is None else listed
    parts = cell if isinstance(cell, list | tuple) else [cell]
    return [text for text in dict.fromkeys(map(text_in, parts)) if text]


def _written_list(cell: str) -> list[Any] | None:
    text = cell.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return value if isinstance(value, list) else None
    return None


def finite(text: str) -> float:
    """A number, with commas between thousands or without.

    >>> finite("1,234.5"), finite("-3e2")
    (1234.5, -300.0)
    """
    number = float(text.replace(",", "") if THOUSANDS.fullmatch(text) else text)
    if not isfinite(number):
        raise ValueError(text)
    return number
