"""Decoding a facts file at once gives what reading it line by line gives, complaints included."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import DataError
from sonde.core.fact_frames import frame_of
from sonde.core.facts import Entity, Fact, facts_of
from sonde.data.fact_files import Facts, fact_lines, placed_facts

WORDS = st.text(min_size=1, max_size=3).filter(str.strip)
NAMES = st.lists(WORDS, min_size=1, max_size=3)
ENTITIES = st.fixed_dictionaries({"id": WORDS, "names": NAMES})
NUMBERS = st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
DATES = st.sampled_from(("2015", "2016-02", "2016-02-29", "1999", "2015-02-29", "2016-13", "today"))
FACTS = st.fixed_dictionaries(
    {"id": WORDS, "subject": ENTITIES, "objects": st.lists(ENTITIES, min_size=1, max_size=2)},
    optional={
        "split": WORDS,
        "tags": NAMES,
        "wrong": st.lists(ENTITIES, min_size=1, max_size=2),
        "details": st.dictionaries(WORDS, st.text(max_size=3), max_size=2),
        "numbers": st.dictionaries(WORDS, NUMBERS, max_size=2),
        "date": DATES,
        "valid": st.fixed_dictionaries({}, optional={"from": DATES, "to": DATES, "since": DATES}),
    },
)
JUNK: st.SearchStrategy[Any] = st.sampled_from(
    ("", " ", "a", None, 1, True, {}, [], [""], [" "], ["a"], [1], "\ud800", {"a": 10**400})
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("dataset")
    (made / "facts").mkdir()
    return made


def told(read: Callable[[], Iterable[Fact]]) -> list[Fact] | str:
    try:
        return list(read())
    except DataError as error:
        return str(error)


def both_ways(folder: Path, *lines: str) -> list[Fact] | str:
    """What a file of these lines holds, or what is wrong with it, read both ways."""
    text = "\n".join(lines)
    (folder / "facts" / "P1.jsonl").write_bytes(text.encode(errors="surrogatepass"))
    at_once = told(lambda: facts_of(Facts(folder)("P1")))
    assert at_once == told(lambda: [fact for _, fact in placed_facts(folder, "P1")])
    return at_once


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
    ("numbers",),
    ("date",),
    ("valid",),
)


@given(FACTS, st.none() | st.tuples(st.sampled_from(PATHS), JUNK), st.booleans())
def test_both_ways_of_reading_agree(
    folder: Path, value: dict[str, Any], fault: tuple[tuple[str, ...], Any] | None, ascii: bool
) -> None:
    line = json.dumps(replaced(value, *fault) if fault else value, ensure_ascii=ascii)
    both_ways(folder, SOUND, line)


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
def test_a_faulty_line_is_named(folder: Path, line: str) -> None:
    assert f"{folder / 'facts' / 'P1.jsonl'}, line 3" in both_ways(folder, SOUND, " ", line, SOUND)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ('"valid": {"since": "2012"}', "'valid' must have 'from' and 'to' alone"),
        ('"valid": {"from": "2012", "until": "2013"}', "found 'until'"),
        (
            f'"numbers": {{"big": {10**400}}}',
            "'big' must be a number of 308 digits at most",
        ),
        (
            f'"numbers": {{"big": -{10**400}}}',
            "'big' must be a number of 308 digits at most",
        ),
        ('"numbers": {"big": 1e400}', "numbers: 'big' must be a number"),
    ],
)
def test_a_key_or_a_number_that_there_is_not_is_refused(folder: Path, more: str, told: str) -> None:
    found = both_ways(folder, SOUND, f"{SOUND[:-1]}, {more}}}")
    assert isinstance(found, str) and told in found and "line 2" in found


def test_what_a_line_says_is_kept(folder: Path) -> None:
    line = (
        '{"id": "f", "subject": {"id": "s", "names": ["Übersee", "Sea"]}, '
        '"objects": [{"id": "o", "names": ["P\\u00e9rou"]}], "split": "train", "tags": ["x"], '
        '"wrong": [{"id": "w", "names": ["Rome"]}], "details": {"title": "Sea"}, "more": NaN}'
    )
    facts = both_ways(folder, line, SOUND)
    assert not isinstance(facts, str)
    assert [fact.subject.names for fact in facts] == [("Übersee", "Sea"), ("s",)]
    assert both_ways(folder, *fact_lines(frame_of(facts))) == facts


@given(st.lists(FACTS, max_size=4))
def test_lines_are_written_as_json_writes_them(folder: Path, values: list[dict[str, Any]]) -> None:
    facts = both_ways(folder, *map(json.dumps, values))
    if isinstance(facts, str):
        assert "date" in facts or "valid" in facts
        return
    lines = [json.dumps(plain_row(fact), ensure_ascii=False) + "\n" for fact in facts]
    written = list(fact_lines(frame_of(facts)))
    assert list(map(json.loads, written)) == list(map(json.loads, lines))
    if not any(fact.numbers for fact in facts):  # one number can be written in several ways
        assert written == lines
    assert both_ways(folder, *written) == facts


def plain_row(fact: Fact) -> dict[str, Any]:
    objects, wrong = ([vars_of(e) for e in several] for several in (fact.objects, fact.wrong))
    row = {"id": fact.id, "subject": vars_of(fact.subject), "objects": objects, "split": fact.split}
    valid = {key: end for key, end in (("from", fact.valid_from), ("to", fact.valid_to)) if end}
    further = {"tags": list(fact.tags), "wrong": wrong, "details": dict(fact.details)}
    further |= {"numbers": dict(fact.numbers), "date": fact.date, "valid": valid}
    return row | {key: value for key, value in further.items() if value}


def vars_of(entity: Entity) -> dict[str, Any]:
    return {"id": entity.id, "names": list(entity.names)}
