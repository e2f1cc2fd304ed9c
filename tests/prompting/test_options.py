"""Options: the right one is there, no other is right, and nothing tells which it is."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sonde.core.facts import Entity
from sonde.prompting.options import (
    aliases_by_usual_name,
    draw_options,
    draw_wrong_names,
    map_names_to_options,
    names_correct_for,
    names_correct_for_repeated_subjects,
)
from tests.worlds import fact, world

ASKED = fact("P36", "Austria", "Vienna")
POOL = [f"city {i}" for i in range(40)]
NAMES = st.lists(st.text("abc", min_size=1, max_size=3), max_size=12)


@given(NAMES, st.frozensets(st.text("abc", min_size=1, max_size=3)), st.integers(2, 9))
def test_the_gold_is_there_and_nothing_that_is_right(
    pool: list[str], correct: frozenset[str], count: int
) -> None:
    found = draw_options(ASKED, correct, pool, seed=0, count=count)
    assert "Vienna" in found
    assert not correct & set(found) - {"Vienna"}
    assert len(set(found)) == len(found) <= count
    assert len(found) == min(count, 1 + len(set(pool) - correct))


def test_the_order_does_not_tell_which_is_right() -> None:
    found = draw_options(ASKED, frozenset(), POOL, seed=0, count=5)
    assert list(found) == sorted(found)


def test_another_object_takes_at_most_one_place() -> None:
    before = set(draw_options(ASKED, frozenset(), POOL, seed=0, count=10))
    after = set(draw_options(ASKED, frozenset(), [*POOL, "new"], seed=0, count=10))
    assert len(before - after) <= 1


def test_the_seed_and_the_fact_decide_what_is_drawn() -> None:
    first = draw_options(ASKED, frozenset(), POOL, seed=0, count=10)
    other = fact("P36", "Hungary", "Vienna")
    assert draw_options(ASKED, frozenset(), POOL, seed=1, count=10) != first
    assert draw_options(other, frozenset(), POOL, seed=0, count=10) != first


def test_wrong_objects_that_the_dataset_names_come_before_the_pool() -> None:
    wrong = tuple(Entity(id=name, names=(name,)) for name in ("Graz", "Linz", "Vienna"))
    asked = replace(ASKED, wrong=wrong)
    assert draw_options(asked, frozenset(), POOL, seed=0) == ("Graz", "Linz", "Vienna")
    assert draw_options(asked, frozenset({"Graz"}), POOL, seed=0) == ("Linz", "Vienna")


def test_objects_of_every_fact_about_a_subject_are_right() -> None:
    facts = [ASKED, fact("P36", "Austria", "Linz", split="train"), fact("P36", "Peru", "Lima")]
    facts[1] = replace(facts[1], id="another")
    names = names_correct_for_repeated_subjects(world(facts), "P36")
    assert names_correct_for(ASKED, names) == {"Vienna", "Linz"}
    assert names_correct_for(facts[2], names) == {"Lima"}


def test_subjects_of_one_name_share_what_is_right() -> None:
    twin = replace(ASKED, id="twin", subject=Entity(id="Q2", names=("Austria",)))
    facts = [ASKED, replace(twin, objects=(Entity(id="Linz", names=("Linz", "Linz city")),))]
    names = names_correct_for_repeated_subjects(world(facts), "P36")
    assert names_correct_for(ASKED, names) == {"Vienna", "Linz", "Linz city"}


def test_a_name_belongs_to_one_option_and_to_the_right_one_first() -> None:
    asked = replace(ASKED, objects=(Entity(id="Vienna", names=("Vienna", "Wien", "W")),))
    names = {"Graz": ("Graz", "G", "Wien", "Linz"), "Linz": ("Linz", "G", "Lentia")}
    found = map_names_to_options(
        ("Graz", "Linz", "Vienna"), asked, frozenset({"Vienna", "Wien", "W"}), names
    )
    assert found == {
        **dict.fromkeys(("Vienna", "Wien", "W"), "Vienna"),
        **dict.fromkeys(("Graz", "G"), "Graz"),
        **dict.fromkeys(("Linz", "Lentia"), "Linz"),
    }


def test_names_of_other_right_objects_belong_to_no_option() -> None:
    found = map_names_to_options(
        ("Linz", "Vienna"), ASKED, frozenset({"Vienna", "L"}), {"Linz": ("Linz", "L")}
    )
    assert found == {"Linz": "Linz", "Vienna": "Vienna"}


def test_spellings_are_the_names_of_objects_that_have_several() -> None:
    wrong = (Entity(id="Graz", names=("Graz", "G")),)
    facts = [replace(ASKED, wrong=wrong), fact("P36", "Peru", "Lima")]
    assert aliases_by_usual_name(world(facts), "P36") == {"Graz": ("Graz", "G")}


def test_named_wrong_objects_are_taken_in_order_and_right_ones_dropped() -> None:
    wrong = tuple(Entity(id=name, names=(name,)) for name in ("Oslo", "Lima", "Paris"))
    given = replace(fact("P36", "Peru", "Lima"), wrong=wrong)
    assert draw_wrong_names(given, frozenset({"Lima"}), ("Rome",), 0, 5) == (("Oslo", "Paris"), 1)
    assert draw_wrong_names(given, frozenset({"Lima"}), ("Rome",), 0, 2) == (("Oslo", "Paris"), 1)


def test_of_more_named_objects_than_wanted_some_are_drawn() -> None:
    names = [f"town {i:02}" for i in range(30)]
    wrong = tuple(Entity(id=name, names=(name,)) for name in names)
    given = replace(fact("P36", "Peru", "Lima"), wrong=wrong)
    found, _ = draw_wrong_names(given, frozenset({"Lima"}), ("Rome",), 0, 5)
    assert len(found) == 5
    assert set(found) <= set(names)
    assert set(found) != set(names[:5])


def test_wrong_objects_are_drawn_from_the_relation_where_none_is_named() -> None:
    pool = ("Lima", "Oslo", "Rome", "Bern")
    given = fact("P36", "Peru", "Lima")
    found, dropped = draw_wrong_names(given, frozenset({"Lima"}), pool, 0, 2)
    more, _ = draw_wrong_names(given, frozenset({"Lima"}), (*pool, "Cairo"), 0, 3)
    assert dropped == 0
    assert len(found) == 2
    assert "Lima" not in found
    assert set(found) <= set(more)
    assert draw_wrong_names(given, frozenset(pool), pool, 0, 2) == ((), 0)
