"""Which column of a table is what, by its usual names or as the user says, what a cell holds, and
what is wrong with any of it: gathered, and told all at once.

Several texts stand in one cell with `|` between them, or as a list: a real one in JSON lines and
Parquet, else written in JSON or as Python writes it. What stands in a list is not taken apart.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from sonde.core.errors import DataError, UsageError, nearest
from sonde.core.facts import ANSWER_SLOT, SUBJECT_SLOT
from sonde.data.lines import Row
from sonde.prompting.languages import add_answer_slot

LONGEST_CELL = 1_000_000
"""Characters of one cell at most."""

MOST_TEXT = 500_000_000
"""Characters of one table at most, all cells together."""

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


def structure(row: Row, key: str) -> Any:
    """A cell that holds a list or an object, parsed where it is written as text."""
    value = row.values.get(key)
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        pass
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise row.fault(f"{key!r} must be a list, also as JSON or Python text", value) from None


def finite(text: str) -> float:
    """A number, with commas between thousands or without.

    >>> finite("1,234.5"), finite("-3e2")
    (1234.5, -300.0)
    """
    number = float(text.replace(",", "") if THOUSANDS.fullmatch(text) else text)
    if not isfinite(number):
        raise ValueError(text)
    return number


PAGE = "docs/tables.md"

USUAL: Mapping[str, tuple[str, ...]] = {
    "subject": (
        *("subject", "subj", "sub", "head", "s", "x", "sub_label", "subject_label", "entity"),
        *("question", "problem", "name", "title"),
    ),
    "object": (
        *("object", "obj", "tail", "o", "y", "obj_label", "object_label"),
        *("answer", "answers", "target", "correct_answer", "gold"),
    ),
    "relation": ("relation", "rel", "predicate", "property", "prop", "p"),
    "aliases": (
        *("aliases", "object_aliases", "obj_aliases", "o_aliases", "answer_aliases"),
        *("possible_answers", "alternatives"),
    ),
    "subject_aliases": ("subject_aliases", "subj_aliases", "sub_aliases", "s_aliases"),
    "wrong": ("wrong", "wrong_answers", "incorrect_answers", "distractors"),
    "template": ("template", "pattern", "prompt", "question", "sentence"),
    "id": ("id", "fact_id", "uuid"),
    "subject_id": ("subject_id", "sub_uri", "s_uri", "subj_id", "sub_id"),
    "object_id": ("object_id", "obj_uri", "o_uri", "obj_id"),
    "split": ("split",),
    "number": ("popularity", "s_pop", "subject_popularity", "pageviews"),
    "date": (),
    "from": (),
    "to": (),
}
"""What a column can be, with the names by which it is found, the likeliest first."""

NEEDED = ("subject", "object")

SEVERAL = ("object", "number")
"""What may be several columns."""

QUESTIONS = ("question", "problem")
"""Columns of subjects that are questions themselves."""

Given = Mapping[str, str | Sequence[str]]
"""What the user says: the column of each role, or several of objects; '' for none."""

Roles = Mapping[str, tuple[str, ...]]
"""The columns that were found, by role; several of `object` are a relation each."""


def parse_columns(texts: Iterable[str]) -> dict[str, list[str]]:
    """ROLE=COLUMN texts, several in one separated by commas.

    >>> parse_columns(["subject=Wine,object=Region", "object=Grape"])
    {'subject': ['Wine'], 'object': ['Region', 'Grape']}
    """
    given: dict[str, list[str]] = {}
    for part in (part for text in texts for part in text.split(",")):
        role, equals, column = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise UsageError(
                f"--columns takes ROLE=COLUMN, separated by commas, such as subject=Wine,"
                f"object=Region; not {part!r}"
            )
        given.setdefault(role, []).append(column)
    return given


def find_columns(table: str, columns: Sequence[str], given: Given) -> Roles:
    """The columns of each role: those that are given, then those found by their usual names."""
    roles = _given(table, columns, given)
    free = {plain(c): c for c in reversed(columns) if c not in _taken(roles)}
    for role, names in USUAL.items():
        if role not in roles and (usual := [name for name in names if name in free]):
            found = usual if role == "number" else usual[:1]
            roles[role] = tuple(free.pop(name) for name in found)
    roles = {role: roles[role] for role in USUAL if roles.get(role)}
    if missing := [role for role in NEEDED if role not in roles]:
        raise DataError(_missing(table, columns, roles, missing))
    return roles


def plain(column: str) -> str:
    """A column's name as it is compared.

    >>> plain("Sub-Label "), plain("subject ID")
    ('sub_label', 'subject_id')
    """
    return re.sub(r"[^\w]+", "_", column.strip().casefold()).strip("_")


def is_usual(column: str) -> bool:
    """Whether a column is called by a role, so that its name does not say what it holds."""
    return any(plain(column) in names for names in USUAL.values())


def _given(table: str, columns: Sequence[str], given: Given) -> dict[str, tuple[str, ...]]:
    roles: dict[str, tuple[str, ...]] = {}
    for role, said in given.items():
        names = (said,) if isinstance(said, str) else tuple(said)
        if role not in USUAL:
            raise UsageError(f"a column cannot be {role!r} of a fact; {nearest(role, USUAL)}")
        if len(names) > 1 and role not in SEVERAL:
            raise UsageError(
                f"two columns are given for {role}: {', '.join(names)}; only objects and numbers "
                "may be several"
            )
        roles[role] = tuple(_column(table, columns, name) for name in names if name)
    if len(roles.get("object", ())) > 1:
        if roles.get("relation"):
            raise UsageError(
                "several columns of objects are a relation each; give one, or no relation"
            )
        roles["relation"] = ()
    return roles


def _column(table: str, columns: Sequence[str], name: str) -> str:
    for alike in (name.__eq__, lambda c: plain(c) == plain(name)):
        if found := [column for column in columns if alike(column)]:
            return found[0]
    hint = nearest(name, columns)
    raise UsageError(f"{table} has no column {name!r}; {hint}. See {PAGE}")


def _taken(roles: Mapping[str, tuple[str, ...]]) -> set[str]:
    return {column for found in roles.values() for column in found}


def _missing(table: str, columns: Sequence[str], roles: Roles, missing: Sequence[str]) -> str:
    """What was looked for, what was found, and a flag to copy."""
    sought = " and ".join(f"for the {role} ({', '.join(USUAL[role])})" for role in missing)
    taken = {found[0]: f" (the {role})" for role, found in roles.items()}
    there = ", ".join(f"{column}{taken.get(column, '')}" for column in columns)
    return (
        f"{table} has no column with a usual name {sought}.\n"
        f"Its columns: {there} (in a CSV file the first line names them).\n"
        f"Say which is what{_example(columns, roles)}. See {PAGE}"
    )


def _example(columns: Sequence[str], roles: Roles) -> str:
    free = [column for column in columns if column not in _taken(roles)]
    needed = [role for role in NEEDED if role not in roles]
    if len(free) < len(needed):
        return "; a table needs two columns at least"
    chosen = {role: roles[role][0] if role in roles else free.pop(0) for role in NEEDED}
    pairs = ",".join(f"{role}={column}" for role, column in chosen.items())
    flag = f'"{pairs}"' if re.search(r"[^\w=,.-]", pairs) else pairs
    return f", such as: --columns {flag} (object= may come several times, a relation each)"


SHOWN = 10
"""How many faults are told one by one; the rest is counted."""


class Faults:
    """Faults of one source, each told once; `advice` is what to do about them."""

    def __init__(self, source: str, advice: str) -> None:
        self.source, self.advice = source, advice
        self._texts: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, fault: DataError | str, where: str = "") -> None:
        """Remember a fault, and where it stands."""
        text = f"{where}: {fault}" if where else str(fault)
        self._texts[text.removeprefix(f"{self.source}, ")] = None

    def refuse(self) -> None:
        """End here, if there was any fault."""
        if self._texts:
            raise DataError(self._told(sorted(self._texts, key=_line)))

    def _told(self, texts: Sequence[str]) -> str:
        if len(texts) == 1:
            [text] = texts
            named = text if text.startswith(self.source) else f"{self.source}: {text}"
            return f"{named}. {self.advice}"
        lines = [f"{self.source} has {len(texts):,} faults:", *(f"  {t}" for t in texts[:SHOWN])]
        if len(texts) > SHOWN:
            lines.append(f"  … and {len(texts) - SHOWN:,} more")
        return "\n".join([*lines, self.advice])


def _line(text: str) -> int:
    """The line or row that a fault names first; 0 for none."""
    found = re.search(r"(?:line|row) (\d+)", text)
    return int(found[1]) if found else 0


def slot_faults(text: str) -> list[str]:
    """What is wrong with the slots of a sentence; a question needs no [Y].

    >>> slot_faults("The capital of [X] is [Y]."), len(slot_faults("[X] and [X]"))
    ([], 2)
    """
    faults, text = [], add_answer_slot(text)
    for slot, role in ((SUBJECT_SLOT, "subject"), (ANSWER_SLOT, "answer")):
        if not text.count(slot):
            faults.append(f"{text!r} has no {slot}; write {slot} where the {role} belongs")
        elif text.count(slot) > 1:
            faults.append(f"{text!r} has {text.count(slot)} {slot}; keep one")
    return faults
