"""Facts that are made up or wrong: where they stand, and that none of them is true."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import DataError
from sonde.prompting.sequences import (
    Line,
    choose_replaced_places,
    invent_names,
    replace_objects_with_wrong,
    replace_subjects_with_invented,
)

CAPITALS = {"Peru": "Lima", "Chile": "Santiago", "Norway": "Oslo", "Kenya": "Nairobi"}
LINES = tuple(Line(fact=x, subject=x, object=y) for x, y in CAPITALS.items())


def own(line: Line) -> frozenset[str]:
    return frozenset({CAPITALS[line.subject]})


def test_made_up_names_depend_on_the_seed_alone() -> None:
    assert invent_names(["Peru", "Chile"], 1, []) == invent_names(["Peru", "Chile"], 1, ["peru"])
    assert invent_names(["Peru"], 1, []) != invent_names(["Peru"], 2, [])


def test_a_made_up_name_has_as_many_words_as_what_it_replaces() -> None:
    names = invent_names(["Peru", "Marie Curie", "The Grand Duchy of Baden"], 0, [])
    assert [len(name.split()) for name in names] == [1, 2, 3]


def test_japanese_names_are_made_up_in_katakana() -> None:
    names = invent_names(["日本", "マリ・キュリー"] * 100, 0, [], "ja")
    assert len(set(names)) == 200
    assert [name.count("・") for name in names[:4]] == [0, 1, 0, 1]
    assert all(re.fullmatch("[ァ-ヺー・]+", name) for name in names)


def test_a_real_name_is_never_made_up() -> None:
    [first] = invent_names(["Peru"], 0, [])
    [second] = invent_names(["Peru"], 0, [first.casefold()])
    assert second != first


def test_no_name_is_made_up_twice() -> None:
    names = invent_names(["Peru"] * 500, 0, [])
    assert len(set(names)) == 500


def test_a_block_stands_in_the_middle() -> None:
    assert choose_replaced_places(3, 9, "block", 0) == (3, 4, 5)


def test_spread_places_are_drawn_and_rise() -> None:
    drawn = choose_replaced_places(40, 200, "spread", 0)
    assert list(drawn) == sorted(set(drawn)) and len(drawn) == 40
    assert drawn != choose_replaced_places(40, 200, "spread", 1)
    assert set(choose_replaced_places(10, 200, "spread", 0)) < set(drawn)


def test_an_unknown_fact_keeps_its_object_and_its_neighbours() -> None:
    changed = replace_subjects_with_invented(LINES, (1, 3), 0, CAPITALS)
    assert [line.object for line in changed] == [line.object for line in LINES]
    assert (changed[0], changed[2]) == (LINES[0], LINES[2])
    assert not {changed[1].subject, changed[3].subject} & set(CAPITALS)


@given(
    objects=st.lists(st.integers(100, 9999).map(str), min_size=1, max_size=8),
    seed=st.integers(0, 50),
)
def test_an_unknown_fact_has_another_year(objects: list[str], seed: int) -> None:
    lines = [Line(fact=f"{i}", subject=f"s{i}", object=o) for i, o in enumerate(objects)]
    years = sorted(map(int, objects))
    for before, after in zip(
        lines, replace_subjects_with_invented(lines, range(len(lines)), seed, ()), strict=True
    ):
        assert after.object != before.object
        assert years[0] <= int(after.object) <= max(years[-1], years[0] + 1)


def test_incorrect_facts_have_each_other_s_objects() -> None:
    changed = replace_objects_with_wrong(LINES, (0, 1, 3), own, tuple(CAPITALS.values()), 0)
    assert changed[2] == LINES[2]
    assert Counter(line.object for line in changed) == Counter(CAPITALS.values())
    assert all(changed[i].object != LINES[i].object for i in (0, 1, 3))


@given(
    objects=st.lists(st.sampled_from("abcd"), min_size=2, max_size=8),
    also=st.lists(st.sampled_from("abcd"), min_size=8, max_size=8),
    seed=st.integers(0, 50),
)
def test_an_incorrect_object_is_never_right(objects: list[str], also: list[str], seed: int) -> None:
    lines = [Line(fact=f"{i}", subject=f"s{i}", object=o) for i, o in enumerate(objects)]
    right = {f"s{i}": frozenset({o, also[i]}) for i, o in enumerate(objects)}
    changed = replace_objects_with_wrong(
        lines, range(len(lines)), lambda x: right[x.subject], "abcd", seed
    )
    assert all(line.object not in right[line.subject] for line in changed)


def test_a_fact_that_cannot_be_made_wrong_is_refused() -> None:
    with pytest.raises(DataError, match="'Peru' cannot be made wrong"):
        replace_objects_with_wrong(LINES, (0,), own, ["Lima"], 0)
