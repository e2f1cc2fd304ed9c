"""Which texts teach a fact, and which facts a model gives back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import pytest

from sonde.core.abilities import Identity
from sonde.core.errors import AbilityError, ModelError
from sonde.lab.training.stored import lessons, recited
from sonde.lab.training.train import Kind
from sonde.lab.worlds.text import documents
from sonde.lab.worlds.world import World, make_world

from .shipped import the_model, the_world
from .worlds import small

BOTH = pytest.mark.parametrize("kind", ["causal", "masked"])


@pytest.fixture(scope="module")
def world() -> World:
    return make_world(small())


def test_a_lesson_is_a_text_of_the_world_around_an_object(world: World) -> None:
    texts = {d.text for d in documents(world)}
    taught = lessons(world, 0.0, 0)
    assert taught.keys() == {id for id, t in world.truth.items() if t.exposure}
    for fact, own in taught.items():
        names = {entity.name for entity in world.facts[fact].objects}
        assert 1 <= len(own) <= world.truth[fact].exposure
        for lesson in own:
            assert lesson.objects <= names
            assert {f"{lesson.before}{o}{lesson.after}" for o in lesson.objects} <= texts


def test_no_fact_has_more_lessons_than_asked_for(world: World) -> None:
    assert max(map(len, lessons(world, 0.0, 0, most=2).values())) == 2


def test_a_fact_that_stands_in_lists_alone_is_asked_for_in_its_list(world: World) -> None:
    listed = {d.text for d in documents(world, lists=1.0, seed=3) if d.form != "sentence"}
    alone = {
        f for d in documents(world, lists=1.0, seed=3) if d.form == "sentence" for f in d.facts
    }
    taught = lessons(world, 1.0, 3)
    assert taught.keys() - alone
    for fact in taught.keys() - alone:
        for lesson in taught[fact]:
            (name,) = lesson.objects
            assert any(text.startswith(f"{lesson.before}{name}") for text in listed)
            assert not lesson.after


def test_a_fact_with_a_sentence_is_asked_for_in_sentences(world: World) -> None:
    alone = [d for d in documents(world, lists=0.5, seed=0) if d.form == "sentence"]
    taught, texts = lessons(world, 0.5, 0), {d.text for d in alone}
    for fact in {fact for d in alone for fact in d.facts}:
        for lesson in taught[fact]:
            assert {f"{lesson.before}{o}{lesson.after}" for o in lesson.objects} <= texts


def test_lessons_of_some_facts_are_those_among_the_lessons_of_all(world: World) -> None:
    some = list(world.truth)[::3]
    every = lessons(world, 0.5, 0)
    assert lessons(world, 0.5, 0, facts=some) == {f: every[f] for f in every if f in some}


@cache
def shares(kind: Kind) -> dict[str, float]:
    """How much of its lessons on each fact a shipped model gives back, asked once."""
    return recited(the_world(), *the_model(kind), most=4)


@BOTH
def test_what_is_told_often_is_stored_and_nothing_that_is_not_told(kind: Kind) -> None:
    world = the_world()
    steps: dict[int, list[bool]] = {step: [] for step in sorted(world.settings.ladder)}
    for fact, share in shares(kind).items():
        steps[world.truth[fact].exposure].append(share > 0)
    untaught, *taught = (sum(found) / len(found) for found in steps.values())
    assert untaught == 0
    assert all(more > less - 0.03 for less, more in pairwise(taught))
    assert taught[0] < 0.8 and taught[-1] >= 0.95


@BOTH
def test_what_is_told_often_is_given_back_in_most_of_its_texts(kind: Kind) -> None:
    world = the_world()
    often = max(world.settings.ladder)
    found = [share for fact, share in shares(kind).items() if world.truth[fact].exposure == often]
    assert sum(found) / len(found) > 0.9


def test_a_fact_that_was_told_in_lists_alone_can_be_stored() -> None:
    trained, _ = the_model("causal")
    read = list(documents(the_world(), lists=trained.settings.lists, seed=trained.settings.seed))
    alone = {fact for d in read if d.form == "sentence" for fact in d.facts}
    listed = {fact for d in read for fact in d.facts} - alone
    assert len(listed) > 20
    assert sum(shares("causal")[fact] > 0 for fact in listed) > len(listed) / 2


@BOTH
def test_asking_for_some_facts_gives_what_asking_for_all_says_of_them(kind: Kind) -> None:
    world, every = the_world(), shares(kind)
    some = list(world.truth)[::20]
    assert {0, 1, 50} <= {world.truth[fact].exposure for fact in some}
    found = recited(world, *the_model(kind), facts=some, most=4)
    assert found == {fact: every[fact] for fact in some}
    assert {share > 0 for share in found.values()} == {True, False}


def test_a_model_of_another_world_is_refused(world: World) -> None:
    with pytest.raises(ModelError, match="does not fit the world: it cuts"):
        recited(world, *the_model("masked"))
    truth = the_world().truth
    fact, taught = next(iter(truth.items()))
    other = {**truth, fact: replace(taught, exposure=taught.exposure + 1)}
    with pytest.raises(ModelError, match="trained on another world"):
        recited(replace(the_world(), truth=other), *the_model("masked"))


@dataclass(frozen=True)
class Mute:
    """A model that can do nothing."""

    identity: Identity = Identity(name="mute", architecture="none")


def test_a_model_that_neither_fills_nor_writes_is_refused() -> None:
    world, (trained, _) = the_world(), the_model("masked")
    told = next(fact for fact, taught in world.truth.items() if taught.exposure)
    with pytest.raises(AbilityError, match="fills or generates"):
        recited(world, trained, Mute(), facts=[told])
