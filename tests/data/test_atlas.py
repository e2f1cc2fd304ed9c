"""The bundled dataset keeps its promises."""

from __future__ import annotations

import re
from collections import Counter

import pytest

import sonde
from sonde.core.facts import Dataset, Relation

RELATIONS = (
    "P17 P19 P20 P27 P30 P31 P36 P37 P39 P47 P101 P103 P106 P108 P127 P131 P136 P138 P140 P159 "
    "P176 P178 P190 P264 P276 P279 P361 P364 P407 P413 P449 P463 P495 P527 P530 P740 P937 P1001 "
    "P1303 P1376 P1412"
).split()
MONITOR = (
    "P17 P19 P20 P27 P30 P37 P101 P103 P108 P127 P159 P176 P178 P264 P276 P364 P495 P740 P1376 "
    "P1412"
).split()


@pytest.fixture(scope="module")
def atlas() -> Dataset:
    return sonde.dataset("atlas")


@pytest.fixture(params=RELATIONS)
def relation(request: pytest.FixtureRequest, atlas: Dataset) -> Relation:
    return atlas.relation(request.param)


def test_it_has_the_41_relations(atlas: Dataset) -> None:
    assert sorted(r.id for r in atlas.relations) == sorted(RELATIONS)


def test_facts_are_many_and_split_apart(atlas: Dataset, relation: Relation) -> None:
    facts = list(atlas.facts(relation.id))
    splits = Counter(fact.split for fact in facts)
    assert splits["train"] >= 50
    assert splits["test"] >= 30
    assert set(splits) == {"train", "test"}
    subjects = [fact.subject.id for fact in facts]
    assert len(set(subjects)) == len(subjects), "a subject stands in two facts"


def test_entities_have_wikidata_ids_and_clean_names(atlas: Dataset, relation: Relation) -> None:
    for fact in atlas.facts(relation.id):
        for entity in (fact.subject, *fact.objects):
            assert re.fullmatch(r"Q\d+", entity.id)
            assert len(set(entity.names)) == len(entity.names)
            assert all(name == name.strip() and "[" not in name for name in entity.names)
        assert len({o.id for o in fact.objects}) == len(fact.objects)


def test_no_alias_is_another_objects_usual_name(atlas: Dataset, relation: Relation) -> None:
    objects = {o.id: o for fact in atlas.facts(relation.id) for o in fact.objects}
    usual = {o.name.casefold(): o.id for o in objects.values()}
    assert len(usual) == len(objects), "two objects share their usual name"
    for entity in objects.values():
        for alias in entity.names[1:]:
            assert usual.get(alias.casefold(), entity.id) == entity.id, f"{alias} is ambiguous"


def test_templates_are_enough_and_grouped(relation: Relation) -> None:
    manual = [t for t in relation.templates if t.source == "manual"]
    paraphrases = [t for t in relation.templates if t.source == "paraphrase"]
    assert len(manual) == 5
    assert len(paraphrases) >= 15
    assert len(manual) + len(paraphrases) == len(relation.templates)
    groups = Counter(t.group for t in paraphrases)
    assert all(groups[t.id] >= 3 and t.group == t.id for t in manual)
    styles = {t.id: t.style for t in manual}
    assert all(t.style == styles[t.group] for t in paraphrases)
    assert any(t.style == "question" and t.answer_last for t in manual)


def test_templates_are_sentences(relation: Relation) -> None:
    for template in relation.templates:
        text = template.text
        assert text[0].isupper() or text.startswith("["), text
        assert text.endswith("."), text
        assert not re.search(r"  | [.,?]", text), text
        assert not re.search(r"\b[Aa]n? \[Y\]", text), f"article before the answer: {text}"
        question = template.style == "question"
        assert question == text.endswith("? [Y]."), text


def test_monitor_relations_have_frames_enough(atlas: Dataset) -> None:
    for id in MONITOR:
        templates = atlas.relation(id).templates
        assert sum(t.style == "question" for t in templates) >= 7
        assert sum(t.style == "statement" and t.answer_last for t in templates) >= 7


def test_some_subjects_are_hard_and_marked(atlas: Dataset) -> None:
    tags = Counter("hard" in f.tags for r in atlas.relations for f in atlas.facts(r.id))
    assert tags[True] >= 400
    assert tags[False] >= 2000
