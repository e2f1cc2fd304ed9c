"""The facts of a world, what is taught of them, and settings that contradict each other."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import UsageError
from sonde.core.facts import Dataset, Relation, Selection
from sonde.core.fingerprints import fingerprint
from sonde.data.check import problems
from sonde.lab.worlds.language import pieces
from sonde.lab.worlds.settings import WorldSettings
from sonde.lab.worlds.text import documents, mentions
from sonde.lab.worlds.world import Taught, World, make_world
from sonde.probes import PROBES
from tests.rows import asked as asked_of

from .worlds import FEW, any_world, small


def of_relation(world: World, relation: Relation) -> list[Taught]:
    return [taught for taught in world.truth.values() if taught.relation == relation.id]


def firsts(world: World, relation: Relation) -> Counter[str]:
    return Counter(fact.objects[0].name for fact in world.dataset.facts(relation.id))


def relations(world: World, *kinds: str) -> list[Relation]:
    return [relation for relation in world.dataset.relations if relation.kind in kinds]


def cue_of(world: World, relation: Relation) -> dict[str, Counter[str]]:
    """The objects of each family word in a relation."""
    found: dict[str, Counter[str]] = {}
    for fact in world.dataset.facts(relation.id):
        family = fact.subject.name.split()[1]
        found.setdefault(family, Counter()).update(entity.name for entity in fact.objects)
    return found


@FEW
@given(any_world())
def test_a_world_is_a_sound_dataset_of_the_size_asked_for(settings: WorldSettings) -> None:
    world = make_world(settings)
    assert not list(problems(world.dataset))
    assert len(world.dataset.relations) == settings.relations
    for relation in world.dataset.relations:
        facts = list(world.dataset.facts(relation.id))
        assert len(facts) == settings.facts == len({fact.subject.id for fact in facts})
        sizes = {len(fact.objects) for fact in facts}
        assert sizes <= ({2, 3} if relation.kind == "N-M" else {1})
        names = {entity.name for fact in facts for entity in fact.objects}
        assert names <= set(world.dataset.vocabulary or ())
        assert relation.kind != "1-1" or len(names) == settings.facts


@FEW
@given(any_world())
def test_the_ladder_is_dealt_evenly_over_each_split(settings: WorldSettings) -> None:
    world = make_world(settings)
    for relation in world.dataset.relations:
        own = of_relation(world, relation)
        assert Counter(t.split for t in own) == {"train": 4, "dev": 2, "test": 9}
        if not own[0].shown:
            assert {(t.exposure, t.shown) for t in own} == {(0, False)}
            continue
        for split in (("train",), ("dev",), ("test",), ("train", "dev", "test")):
            dealt = Counter(t.exposure for t in own if t.split in split)
            numbers = [dealt[rung] for rung in settings.ladder]
            assert sum(numbers) == dealt.total()
            assert max(numbers) - min(numbers) <= 1
    assert sum(not of_relation(world, r)[0].shown for r in world.dataset.relations) == (
        settings.unshown
    )


@FEW
@given(any_world())
def test_the_first_two_templates_are_used_and_one_is_a_question(settings: WorldSettings) -> None:
    world = make_world(settings)
    for relation in world.dataset.relations:
        first, second, *rest = relation.templates
        used = world.used[relation.id]
        assert len(relation.templates) == settings.templates
        assert len(set(used)) == settings.used
        assert {first.id, second.id} <= set(used) <= {t.id for t in relation.templates}
        assert (first.style, second.style) == ("statement", "question")
        assert first.text.endswith(" [Y].")
        assert any(t.style == "question" for t in rest)
        assert {t.source for t in relation.templates[:3]} == {"manual"}
        styles = {t.id: t.style for t in relation.templates}
        for template in relation.templates:
            before, _, _ = template.text.partition("[Y]")
            assert "[X]" in before and relation.label in pieces(before)
            assert styles[template.group] == template.style


@pytest.mark.parametrize("cues", [0.0, 0.5])
def test_without_skew_all_objects_are_alike_common(cues: float) -> None:
    world = make_world(small(facts=60, subjects=60, words=24, cues=cues))
    for relation in relations(world, "N-1", "N-M"):
        counts = firsts(world, relation)
        spread = max(counts.values()) - min(counts.values())
        # without cues one even step through the objects; with them each has whole family words
        assert len(counts) == 6
        assert spread <= (1 if not cues else 12)
        assert not any(t.guess == "majority" for t in of_relation(world, relation))


@FEW
@given(st.integers(0, 99), st.sampled_from([1.0, 2.0]))
def test_with_skew_objects_are_as_common_as_their_weights(seed: int, skew: float) -> None:
    world = make_world(small(seed=seed, facts=90, subjects=100, words=36, skew=skew))
    weights = [rank**-skew for rank in range(1, 7)]
    for relation in relations(world, "N-1"):
        counts = firsts(world, relation)
        ranked = [word for word in world.dataset.vocabulary or () if word in counts]
        for word, weight in zip(ranked, weights, strict=False):
            assert abs(counts[word] - 90 * weight / sum(weights)) < 1
        own = [t for t in of_relation(world, relation) if t.guess == "majority"]
        assert {world.facts[t.fact].objects[0].name for t in own} == {ranked[0]}
        assert len(own) == counts[ranked[0]]


@FEW
@given(st.integers(0, 99))
def test_with_all_cues_the_family_word_tells_the_object(seed: int) -> None:
    world = make_world(small(seed=seed, cues=1.0))
    for relation in relations(world, "N-1"):
        assert all(len(objects) == 1 for objects in cue_of(world, relation).values())
        assert {t.guess for t in of_relation(world, relation)} == {"cue"}
    for relation in relations(world, "1-1"):
        assert {t.guess for t in of_relation(world, relation)} == {""}


@FEW
@given(st.integers(0, 99))
def test_as_many_facts_follow_their_cue_as_are_asked_for(seed: int) -> None:
    more = {"seed": seed, "facts": 80, "subjects": 96, "words": 28, "objects": 40}
    world = make_world(small(**more, cues=0.5))
    whole = make_world(small(**more, cues=1.0))
    for relation in relations(world, "N-1"):
        known = {
            w: next(iter(c)) for w, c in cue_of(whole, whole.dataset.relation(relation.id)).items()
        }
        facts = list(world.dataset.facts(relation.id))
        follow = {f.id for f in facts if known[f.subject.name.split()[1]] == f.objects[0].name}
        # of the 40 others some follow by accident, one in forty
        assert 40 <= len(follow) <= 48
        assert follow == {t.fact for t in of_relation(world, relation) if t.guess == "cue"}
    assert not any(t.guess for t in make_world(small(seed=seed)).truth.values())


@FEW
@given(any_world())
def test_an_alias_stands_in_half_of_the_mentions_of_some_facts(settings: WorldSettings) -> None:
    world = make_world(settings)
    for id, taught in world.truth.items():
        stated = mentions(world, id)
        others = sum(mention.name for mention in stated)
        assert len(stated) == taught.exposure
        assert others == (taught.exposure // 2 if taught.alias else 0)
        assert taught.alias <= (taught.exposure >= 2)
        objects = len(world.facts[id].objects)
        assert [m.object for m in stated] == [n % objects for n in range(taught.exposure)]
        assert {m.template for m in stated} <= set(world.used[taught.relation])
    for relation in world.dataset.relations:
        for rung in settings.ladder:
            own = [t for t in of_relation(world, relation) if t.exposure == rung >= 2]
            assert abs(sum(t.alias for t in own) - settings.aliases * len(own)) <= 0.5


@FEW
@given(any_world(), st.integers(1, 2))
def test_further_relations_leave_the_first_ones_as_they_were(
    settings: WorldSettings, more: int
) -> None:
    values = {name: getattr(settings, name) for name in WorldSettings.__slots__}
    fewer = make_world(settings)
    larger = make_world(WorldSettings(**{**values, "many_many": settings.many_many + more}))
    count = len(fewer.dataset.relations)
    assert larger.dataset.relations[:count] == fewer.dataset.relations
    for id, taught in fewer.truth.items():
        assert larger.truth[id] == taught
        assert larger.facts[id] == fewer.facts[id]
        assert mentions(larger, id) == mentions(fewer, id)


@FEW
@given(any_world())
def test_the_same_settings_make_the_same_world_and_another_seed_another(
    settings: WorldSettings,
) -> None:
    values = {name: getattr(settings, name) for name in WorldSettings.__slots__}
    one, again = make_world(settings), make_world(WorldSettings(**values))
    other = make_world(WorldSettings(**{**values, "seed": settings.seed + 1}))
    assert one.facts == again.facts and one.truth == again.truth
    assert one.fingerprint == again.fingerprint != other.fingerprint
    assert not set(one.words()) ^ set(again.words())


def test_a_whole_number_says_the_same_as_its_fraction() -> None:
    assert make_world(small(skew=1)).fingerprint == make_world(small(skew=1.0)).fingerprint


def test_the_golden_world_is_still_the_same() -> None:
    """A change makes other worlds and texts of old settings: it needs a new folder.FORMAT."""
    world = make_world(small(seed=7, skew=1.0, cues=0.4))
    text = fingerprint(document.text for document in documents(world, 0.3))
    assert (world.fingerprint, text) == ("b94f798247f264f5", "5e7c293aaa254ad1")


@pytest.mark.parametrize("name", sorted(PROBES))
def test_every_probe_can_ask_about_a_world_in_words_that_the_world_knows(name: str) -> None:
    world = make_world(WorldSettings(facts=60, subjects=80, skew=1.0, cues=0.2))
    dataset: Dataset = world.dataset.select(Selection(limit=6, relations=("R01", "R03", "R07")))
    known, asked = {*world.words(), "%", ";"}, 0  # marks of KAMEL's lists are no words
    abilities = frozenset({"score", "fill", "generate", "sample", "trace"})
    for prompt in asked_of(PROBES[name]().suited(abilities), dataset):
        asked += 1
        assert set(pieces(f"{prompt.prefix} {prompt.suffix}")) <= known
    assert asked


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"used": 7}, "7 used templates are more than the 6 that a relation has"),
    ({"templates": 2, "used": 2}, "templates must be at least 3, not 2"),
    ({"templates": 99}, "templates must be at most"),
    ({"ladder": (1, 2)}, r"the ladder 1,2 has no 0; add 0 to it or set unshown to 0"),
    ({"ladder": (0,)}, "one of them above 0, such as 0,1,10; not 0"),
    ({"ladder": ()}, "not nothing"),
    ({"ladder": (-1, 0, 2)}, "counts from 0 on"),
    ({"ladder": (0, 2, 2)}, "each count stands once in a ladder, not 0,2,2"),
    ({"train": 0.7, "dev": 0.4}, "0.7 and 0.4 are more than 1 together"),
    ({"train": 0.9, "dev": 0.1}, "no fact is left for the test split"),
    ({"cues": 1.5}, "setting cues is a share, 0 to 1; not 1.5"),
    ({"aliases": -0.1}, "setting aliases is a share"),
    ({"cues": float("nan")}, "setting cues is a share"),
    ({"skew": -1.0}, "skew must be at least 0"),
    ({"skew": float("inf")}, "skew must be a number"),
    ({"many_one": 0, "many_many": 0, "unshown": 0, "cues": 0.1}, "cues is for relations N-1"),
    ({"many_one": 0, "many_many": 0, "unshown": 0, "skew": 1.0}, "skew is for relations N-1"),
    ({"unshown": 3}, "3 cannot be unshown of 2"),
    ({"one_one": 0, "many_one": 1, "many_many": 0}, "needs a relation that the text shows"),
    ({"facts": 25}, "25 facts of a relation need as many subjects, and there are 24"),
    ({"families": 16}, "16 family words of 16 words leave none"),
    ({"objects": 3}, "raise objects above 3"),
    ({"objects": 1, "many_many": 0}, "objects must be at least 2"),
]


@pytest.mark.parametrize(("more", "told"), REFUSED, ids=lambda v: str(v)[:40])
def test_settings_that_contradict_each_other_are_refused(more: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        small(**more)


def test_a_ladder_without_nought_is_fine_where_every_relation_is_shown() -> None:
    world = make_world(small(ladder=(1, 2), unshown=0))
    assert {taught.exposure for taught in world.truth.values()} == {1, 2}
