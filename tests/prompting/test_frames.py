"""How questions are put, which facts are shown before them, and which names are wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.facts import Entity
from sonde.prompting.frames import SPARES, draw_shots, frames, sentences
from sonde.prompting.matching import cleaned
from sonde.prompting.options import negatives
from tests.worlds import RELATIONS, fact, world


def test_frames_are_questions_and_sentences_end_with_their_object() -> None:
    assert [t.id for t in frames(RELATIONS[1])] == ["P1303-2", "P1303-3"]
    assert [t.id for t in frames(RELATIONS[1], most=1)] == ["P1303-2"]
    assert [t.id for t in sentences(RELATIONS[0])] == ["P36-1"]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (" Paris.\n\nQ: next", "Paris"),
        ("\n Paris", "Paris"),
        ("", ""),
        (" . ", ""),
        ("Washington, D.C.", "Washington, D.C"),
        ("100 %", "100"),
    ],
)
def test_an_answer_is_its_first_line_without_closing_punctuation(text: str, kept: str) -> None:
    assert cleaned(text) == kept


@given(st.text())
def test_cleaning_twice_changes_nothing(text: str) -> None:
    assert cleaned(cleaned(text)) == cleaned(text)


def test_training_facts_are_shown_and_nothing_is_held_back() -> None:
    shots = draw_shots(world(relations=("P36",)), "P36", 2)
    assert len(shots.facts) == 2 + SPARES
    assert {f.split for f in shots.facts} == {"train"}
    assert not shots.held


def test_facts_that_are_not_asked_about_stand_in_for_training_facts() -> None:
    facts = [fact("P36", f"land {i}", f"town {i}") for i in range(9)]
    data = world(facts, relations=("P36",), limit=3)
    asked = {f.id for f in data.asked("P36")}
    shots = draw_shots(data, "P36", 2)
    assert len(shots.facts) == 4
    assert not asked & {f.id for f in shots.facts}
    assert not shots.held


def test_where_all_facts_are_asked_about_the_examples_are_held_back() -> None:
    facts = [fact("P36", f"land {i}", f"town {i}") for i in range(9)]
    data = world(facts, relations=("P36",))
    shots = draw_shots(data, "P36", 2)
    assert shots.held == {f.id for f in shots.facts}
    assert len(shots.held) == 2


def test_a_spare_takes_the_place_of_an_example_about_the_subject() -> None:
    shots = draw_shots(world(relations=("P36",)), "P36", 2)
    first, second, third, *_ = shots.facts
    assert shots.before(first.subject, 2) == (second, third)
    assert shots.before(Entity(id="x", names=("elsewhere",)), 2) == (first, second)


def test_another_fact_moves_no_example() -> None:
    facts = [fact("P36", f"land {i}", f"town {i}", split="train") for i in range(20)]
    asked = fact("P36", "here", "there")
    few = draw_shots(world([*facts[:19], asked]), "P36", 3)
    many = draw_shots(world([*facts, asked]), "P36", 3)
    rest = [f for f in many.facts if f.id != facts[19].id]
    assert rest == list(few.facts[: len(rest)])


def test_named_wrong_objects_are_taken_in_order_and_right_ones_dropped() -> None:
    wrong = tuple(Entity(id=name, names=(name,)) for name in ("Oslo", "Lima", "Paris"))
    given = replace(fact("P36", "Peru", "Lima"), wrong=wrong)
    assert negatives(given, frozenset({"Lima"}), ("Rome",), 0, 5) == (("Oslo", "Paris"), 1)
    assert negatives(given, frozenset({"Lima"}), ("Rome",), 0, 2) == (("Oslo", "Paris"), 1)


def test_of_more_named_objects_than_wanted_some_are_drawn() -> None:
    names = [f"town {i:02}" for i in range(30)]
    wrong = tuple(Entity(id=name, names=(name,)) for name in names)
    given = replace(fact("P36", "Peru", "Lima"), wrong=wrong)
    found, _ = negatives(given, frozenset({"Lima"}), ("Rome",), 0, 5)
    assert len(found) == 5
    assert set(found) <= set(names)
    assert set(found) != set(names[:5])


def test_wrong_objects_are_drawn_from_the_relation_where_none_is_named() -> None:
    pool = ("Lima", "Oslo", "Rome", "Bern")
    given = fact("P36", "Peru", "Lima")
    found, dropped = negatives(given, frozenset({"Lima"}), pool, 0, 2)
    more, _ = negatives(given, frozenset({"Lima"}), (*pool, "Cairo"), 0, 3)
    assert dropped == 0
    assert len(found) == 2
    assert "Lima" not in found
    assert set(found) <= set(more)
    assert negatives(given, frozenset(pool), pool, 0, 2) == ((), 0)
