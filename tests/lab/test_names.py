"""Invented words and names."""

from __future__ import annotations

from random import Random
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import UsageError
from sonde.lab.worlds.language import (
    Kind,
    check_room,
    full_names,
    made_words,
    most_words,
    plain_words,
)
from sonde.lab.worlds.settings import WorldSettings
from sonde.lab.worlds.world import make_world
from sonde.prompting.matching import lemmatize

from .worlds import FEW, any_world, small

KINDS: tuple[Kind, ...] = get_args(Kind)


@FEW
@given(st.integers())
def test_no_word_is_made_twice_whatever_it_names(seed: int) -> None:
    words = [word for kind in KINDS for word in made_words(kind, 300, Random(seed))]
    assert len({word.casefold() for word in words}) == 300 * len(KINDS)


@FEW
@given(any_world())
def test_no_two_things_of_a_world_share_a_word(settings: WorldSettings) -> None:
    world = make_world(settings)
    subjects = {fact.subject.id: fact.subject.names for fact in world.facts.values()}
    families = {names[0].split()[1] for names in subjects.values()}
    given_words = {names[0].split()[0] for names in subjects.values()}
    aliases = [names[1] for names in subjects.values()]
    objects = world.dataset.vocabulary or ()
    nouns = [relation.label for relation in world.dataset.relations]
    apart = [*families, *given_words, *aliases, *objects, *nouns]
    assert len({names[0] for names in subjects.values()}) == len(subjects)
    assert len({word.casefold() for word in apart}) == len(apart)
    assert not {word.casefold() for word in apart} & {word.casefold() for word in plain_words()}


def test_objects_of_different_relations_never_share_a_word() -> None:
    world = make_world(small(one_one=6, facts=400, subjects=400, words=104))
    objects = world.dataset.vocabulary or ()
    assert len(set(objects)) == len(objects) == 6 * 400 + 3 * 6


def test_more_words_begin_with_the_same_ones() -> None:
    assert made_words("object", 50, Random(1)) == made_words("object", 80, Random(1))[:50]


def test_a_word_that_is_taken_is_passed_over_whatever_its_capitals() -> None:
    first, second = made_words("given", 2, Random(0))
    assert made_words("given", 1, Random(0), {first.casefold()}) == (second,)


def test_no_two_objects_have_the_same_lemma() -> None:
    words = made_words("object", 2000, Random(0))
    assert len({lemmatize(word) for word in words}) == 2000


@FEW
@given(st.integers(1, 20), st.integers())
def test_every_name_can_be_given_and_family_words_are_alike_common(count: int, seed: int) -> None:
    pairs = list(full_names(("A", "B", "C", "D"), ("X", "Y", "Z", "V", "W"), count, Random(seed)))
    assert len(set(pairs)) == count
    numbers = [sum(last == word for _, last in pairs) for word in "XYZVW"]
    assert max(numbers) - min(numbers) <= 1


def test_a_world_larger_than_its_words_can_name_is_refused() -> None:
    with pytest.raises(UsageError, match=r"12 given words with 4 family words can name: 48; raise"):
        make_world(small(subjects=49))
    assert len(make_world(small(subjects=48, facts=48)).facts) == 4 * 48


@pytest.mark.parametrize("kind", KINDS)
def test_more_words_than_there_are_are_refused(kind: Kind) -> None:
    check_room(kind, most_words(kind))
    with pytest.raises(UsageError, match="can be named; lower"):
        check_room(kind, most_words(kind) + 1)
