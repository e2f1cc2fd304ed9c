"""The text of a world, held against its truth table word by word."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import UsageError
from sonde.lab.worlds.language import pieces
from sonde.lab.worlds.settings import WorldSettings
from sonde.lab.worlds.text import (
    LENGTHS,
    Document,
    documents,
    introductions,
    length,
    mentions,
    sentence,
)
from sonde.lab.worlds.world import World, make_world

from .worlds import FEW, any_world, small

SHARES = st.sampled_from([0.0, 0.3, 1.0])


def all_sentences(world: World, fact: str) -> set[str]:
    """Every sentence that states a fact: in all templates, under all names, with all objects."""
    subject, objects = world.facts[fact].subject, world.facts[fact].objects
    templates = world.dataset.relation(world.facts[fact].relation).templates
    return {
        template.text.replace("[X]", name).replace("[Y]", entity.name)
        for template in templates
        for name in subject.names
        for entity in objects
    }


def pairs_of(world: World) -> dict[tuple[str, str], str]:
    """Which fact a subject's name and an object's name make; an object is of one relation."""
    return {
        (name, entity.name): fact.id
        for fact in world.facts.values()
        for name in fact.subject.names
        for entity in fact.objects
    }


def stated(world: World, document: Document) -> list[str]:
    """The facts that a document states, read from its words alone: a name, then an object."""
    names = {name for fact in world.facts.values() for name in fact.subject.names}
    objects, pairs = set(world.dataset.vocabulary or ()), pairs_of(world)
    found, subject, before = [], "", ""
    for word in pieces(document.text):
        full = f"{before} {word}"
        subject = full if full in names else word if word in names else subject
        if word in objects and subject:  # an object without a subject states nothing
            found.append(pairs[subject, word])
        before = word
    return found


@FEW
@given(any_world())
def test_each_fact_stands_in_the_text_as_often_as_the_truth_table_says(
    settings: WorldSettings,
) -> None:
    world = make_world(settings)
    lines = Counter(document.text for document in documents(world))
    for id, taught in world.truth.items():
        assert sum(lines[sentence] for sentence in all_sentences(world, id)) == taught.exposure
    assert lines.total() == sum(t.exposure for t in world.truth.values()) + len(
        introductions(world)
    )


@FEW
@given(any_world(), SHARES, st.integers(0, 9))
def test_lists_and_sentences_together_hold_every_mention_once(
    settings: WorldSettings, lists: float, seed: int
) -> None:
    world = make_world(settings)
    found = list(documents(world, lists, seed))
    for document in found:
        assert list(document.facts) == stated(world, document)
    told = Counter(chain.from_iterable(document.facts for document in found))
    assert told == Counter({id: t.exposure for id, t in world.truth.items() if t.exposure})


@FEW
@given(any_world(), SHARES)
def test_what_is_not_shown_or_not_used_stands_nowhere(
    settings: WorldSettings, lists: float
) -> None:
    world = make_world(settings)
    texts = [document.text for document in documents(world, lists)]
    words = set(chain.from_iterable(map(pieces, texts)))
    whole = "\n".join(texts)
    names = {name for fact in world.facts.values() for name in fact.subject.names}
    for relation in world.dataset.relations:
        shown = any(t.shown for t in world.truth.values() if t.relation == relation.id)
        if not shown:
            own = {o.name for f in world.dataset.facts(relation.id) for o in f.objects}
            assert not words & (own | {relation.label})
        for template in relation.templates:
            opening = template.text.partition("[Y]")[0].rstrip()
            found = any(opening.replace("[X]", name) in whole for name in names)
            assert not found or template.id in world.used[relation.id]


@FEW
@given(any_world())
def test_every_word_of_every_document_is_among_the_words_of_the_world(
    settings: WorldSettings,
) -> None:
    world = make_world(settings)
    texts = (document.text for document in documents(world, 0.5))
    assert set(chain.from_iterable(map(pieces, texts))) <= set(world.words())


def test_a_list_tells_no_fact_twice_and_has_a_fitting_length() -> None:
    world = make_world(small(ladder=(0, 1, 2, 40)))
    found = list(documents(world, 1.0))
    forms = Counter(document.form for document in found)
    assert forms.keys() == {"sentence", "introduction", "pairs", "mask", "qa", "questions"}
    bounds = {**LENGTHS, "mask": LENGTHS["examples"], "qa": LENGTHS["examples"]}
    for document in found:
        if document.form in bounds:
            least, most = bounds[document.form]
            assert least <= len(set(document.facts)) == len(document.facts) <= most
            assert len({world.truth[fact].relation for fact in document.facts}) == 1


def test_lists_are_written_as_the_probes_write_them() -> None:
    world = make_world(small())
    found = {document.form: document for document in documents(world, 1.0)}
    pairs, mask, qa, questions = (found[form] for form in ("pairs", "mask", "qa", "questions"))
    lines = [world.facts[fact] for fact in pairs.facts]
    firsts = " ".join(f"{fact.subject.name} {fact.objects[0].name}" for fact in lines)
    assert len(pairs.text) == len(firsts)
    if all(len(fact.objects) == 1 for fact in lines):
        assert pairs.text == firsts
    first, asked, answer, *_ = mask.text.splitlines()
    assert first == "Predict the [MASK] in each sentence in one word."
    assert asked.startswith("Q: ") and "[MASK]" in asked
    assert answer.startswith("A: ") and answer.endswith(".")
    first, asked, answer, *_ = qa.text.splitlines()
    assert first == "Answer each question in one word."
    assert asked.startswith("Q: ") and asked.endswith("?")
    assert answer.startswith("A: ") and answer.endswith(".")
    asked, answer, *_ = questions.text.splitlines()
    assert asked.startswith("Q: ") and asked.endswith("?")
    assert answer.startswith("A: ") and not answer.endswith(".")


def test_a_mention_is_in_a_list_only_where_its_draw_is_below_the_share() -> None:
    world = make_world(small(ladder=(0, 6)))
    alone = Counter(d.text for d in documents(world, 0.4) if d.form == "sentence")
    for id in world.truth:
        for mention in mentions(world, id):
            if mention.draw >= 0.4:
                assert alone[sentence(world, mention)]


def test_another_seed_gives_the_same_sentences_in_another_order() -> None:
    world = make_world(small())
    one, same, other = (list(documents(world, seed=seed)) for seed in (0, 0, 1))
    assert one == same != other
    assert sorted(d.text for d in one) == sorted(d.text for d in other)


@FEW
@given(any_world())
def test_an_alias_is_introduced_where_the_text_uses_it_and_nowhere_else(
    settings: WorldSettings,
) -> None:
    world = make_world(settings)
    used = {world.facts[id].subject for id, taught in world.truth.items() if taught.alias}
    told = [text for text in introductions(world) if any(e.names[1] in text for e in used)]
    assert len(told) == settings.introductions * len(used)
    words = set(chain.from_iterable(pieces(d.text) for d in documents(world)))
    aliases = {fact.subject.names[1] for fact in world.facts.values()}
    assert words & aliases == {subject.names[1] for subject in used}


@FEW
@given(any_world())
def test_an_object_is_named_without_a_subject_where_its_relation_is_shown(
    settings: WorldSettings,
) -> None:
    world = make_world(settings)
    shown = {taught.relation for taught in world.truth.values() if taught.shown}
    names = [name for id in sorted(shown) for name in world.dataset.object_names(id)]
    told = [set(pieces(text)) for text in introductions(world)]
    for name in names:
        assert sum(name in words for words in told) == settings.namings
    subjects = {w for f in world.facts.values() for n in f.subject.names for w in n.split()}
    assert not any(words & subjects for words in told if words & set(names))


@pytest.mark.parametrize("lists", [0.0, 0.3])
def test_texts_about_some_facts_are_those_among_all_in_the_same_order(lists: float) -> None:
    world = make_world(small())
    some = frozenset(list(world.truth)[::7])
    every = [d for d in documents(world, lists=lists, seed=2) if some & {*d.facts}]
    assert [*documents(world, lists=lists, seed=2, about=some)] == every and every


def test_a_share_of_lists_beyond_all_is_refused() -> None:
    with pytest.raises(UsageError, match=r"share of the mentions, 0 to 1; not 1\.5"):
        documents(make_world(small()), lists=1.5)


@FEW
@given(any_world())
def test_the_summary_counts_what_the_text_holds(settings: WorldSettings) -> None:
    world = make_world(settings)
    texts = [document.text for document in documents(world)]
    found = length(world)
    assert found.sentences == len(texts)
    assert found.words == sum(len(pieces(text)) for text in texts)
    rows = world.counts().sum().row(0, named=True)
    assert rows["mentions"] == len(texts) - len(introductions(world))
    assert rows["relations"] == settings.relations
    assert rows["taught"] == sum(t.exposure > 0 for t in world.truth.values())
