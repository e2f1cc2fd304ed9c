"""Reading a facts file quickly gives what reading it closely gives, or leaves the line alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import DataError
from sonde.data.format import _fact, fact_row
from sonde.data.lines import row_of
from sonde.data.quick import quick_fact

PLACE = Path("facts.jsonl")

WORDS = st.text(min_size=1, max_size=3).filter(str.strip)
NAMES = st.lists(WORDS, min_size=1, max_size=3)
ENTITIES = st.fixed_dictionaries({"id": WORDS, "names": NAMES})
FACTS = st.fixed_dictionaries(
    {"id": WORDS, "subject": ENTITIES, "objects": st.lists(ENTITIES, min_size=1, max_size=2)},
    optional={
        "split": WORDS,
        "tags": NAMES,
        "wrong": st.lists(ENTITIES, min_size=1, max_size=2),
        "details": st.dictionaries(WORDS, st.text(max_size=3), max_size=2),
    },
)
JUNK: st.SearchStrategy[Any] = st.sampled_from(
    ("", " ", "a", None, 1, True, {}, [], [""], [" "], ["a"], [1], "\ud800")
)


def closely(line: str) -> Any:
    try:
        return _fact(row_of(line, PLACE, 1), "P1")
    except DataError:
        return None


def replaced(value: dict[str, Any], path: tuple[str, ...], junk: Any) -> dict[str, Any]:
    """The value with junk at a place inside it, where there is such a place."""
    head, *rest = path
    if not rest:
        return {**value, head: junk}
    inner = value[head]
    if isinstance(inner, list):
        return {**value, head: [replaced(e, tuple(rest), junk) for e in inner]}
    return {**value, head: replaced(inner, tuple(rest), junk)}


PATHS = (
    ("id",),
    ("subject",),
    ("subject", "names"),
    ("objects",),
    ("objects", "id"),
    ("objects", "names"),
    ("split",),
    ("tags",),
    ("wrong",),
    ("details",),
)


@given(FACTS, st.none() | st.tuples(st.sampled_from(PATHS), JUNK), st.booleans())
def test_quick_and_close_reading_agree(
    value: dict[str, Any], fault: tuple[tuple[str, ...], Any] | None, ascii: bool
) -> None:
    line = json.dumps(replaced(value, *fault) if fault else value, ensure_ascii=ascii)
    quick = quick_fact(line, "P1")
    assert quick is None or quick == closely(line)


SOUND = (
    '{"id": "f", "subject": {"id": "s", "names": ["s"]}, "objects": [{"id": "o", "names": ["o"]}]}'
)


@pytest.mark.parametrize(
    "line",
    [
        SOUND.replace('"f"', r'"\ud800"'),
        SOUND.replace('["s"]', '"name"'),
        SOUND.replace('"f"', '" "'),
        f"{SOUND} {SOUND}",
        f"[{SOUND}]",
        SOUND[:-1],
        "[" * 100_000,
    ],
)
def test_a_faulty_line_is_left_to_the_close_reading(line: str) -> None:
    assert quick_fact(line, "P1") is None


def test_a_sound_line_is_read_quickly() -> None:
    assert quick_fact(SOUND, "P1") is not None
    line = (
        '{"id": "f", "subject": {"id": "s", "names": ["Übersee", "Sea"]}, '
        '"objects": [{"id": "o", "names": ["P\\u00e9rou"]}], "split": "train", "tags": ["x"], '
        '"wrong": [{"id": "w", "names": ["Rome"]}], "details": {"title": "Sea"}}'
    )
    fact = quick_fact(line, "P1")
    assert fact is not None
    assert fact == closely(line)
    assert quick_fact(json.dumps(fact_row(fact), ensure_ascii=False), "P1") == fact
