"""Texts that are nearly the same: found as by comparing all pairs, and what is none."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from sonde.cards.alike import folded, likest, near, numbers, pairs, similarity, trigrams

WORDS = st.sampled_from("new york city Rome st. Paul pius ii iii 11 12 of the".split())
TEXTS = st.lists(st.lists(WORDS, min_size=1, max_size=4).map(" ".join), max_size=12)
SHARES = st.sampled_from([0.3, 0.5, 0.8, 1.0])


def compared(texts: list[str], least: float) -> set[tuple[str, str]]:
    """Every pair, looked at."""
    return {
        (a, b)
        for a, b in combinations(texts, 2)
        if numbers(a) == numbers(b) and similarity(trigrams(a), trigrams(b)) >= least
    }


@given(TEXTS, SHARES)
def test_what_is_found_is_what_comparing_all_pairs_finds(texts: list[str], least: float) -> None:
    distinct = list(dict.fromkeys(map(folded, texts)))
    found = list(pairs(distinct, least))
    assert {(a, b) for a, b, _ in found} == compared(distinct, least)
    assert all(alike == similarity(trigrams(a), trigrams(b)) for a, b, alike in found)


def partner(*texts: str) -> dict[int, tuple[int, float]]:
    return likest([""] * len(texts), texts, lambda a, b: True, near(texts))


def test_case_and_punctuation_make_no_difference() -> None:
    assert partner("St. Paul's", "st paul s", "Oslo") == {0: (1, 1.0), 1: (0, 1.0)}


def test_names_that_differ_in_a_number_are_not_alike() -> None:
    assert not partner("Space Shuttle mission 101", "Space Shuttle mission 102")
    assert not partner("Leo XII", "Leo XIII")
    assert partner("Canadian Charter of Rights", "The Canadian Charter of Rights")


def test_the_likest_comes_first_and_only_those_of_the_group_that_count() -> None:
    texts = ("Nintendo Systems Europe", "Nintendo System Europe", "nintendo systems europe")
    alike = near(texts)
    assert likest([""] * 3, texts, lambda a, b: True, alike)[0] == (2, 1.0)
    assert likest([""] * 3, texts, lambda a, b: 2 not in (a, b), alike)[0][0] == 1
    assert not likest(["a", "b", "c"], texts, lambda a, b: True, alike)


def test_a_text_without_words_is_compared_as_it_is() -> None:
    assert partner("?", "?", "!") == {0: (1, 1.0), 1: (0, 1.0)}
