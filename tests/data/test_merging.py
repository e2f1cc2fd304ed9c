"""Facts made one by columns are what a plain walk over them gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sonde.core.fact_frames import frame_of
from sonde.core.facts import APART, Entity, Fact, facts_of
from sonde.data.catalog import merged_facts

LETTERS = st.sampled_from("abc")
ENTITIES = st.builds(Entity, id=LETTERS, names=st.lists(LETTERS, min_size=1, max_size=3).map(tuple))
SEVERAL = st.lists(ENTITIES, max_size=3).map(tuple)
FACTS = st.lists(
    st.builds(
        Fact,
        id=st.uuids().map(str),
        relation=st.just("P1"),
        subject=ENTITIES,
        objects=st.lists(ENTITIES, min_size=1, max_size=3).map(tuple),
        split=st.sampled_from(("test", "train")),
        tags=st.lists(st.sampled_from(("hard", "old", APART)), max_size=2).map(tuple),
        wrong=SEVERAL,
        details=st.dictionaries(LETTERS, LETTERS, max_size=2),
        date=st.sampled_from(("", "2015")),
        numbers=st.dictionaries(LETTERS, st.floats(0, 1), max_size=1),
    ),
    max_size=6,
)


def united(entities: Iterable[Entity]) -> tuple[Entity, ...]:
    names: dict[str, dict[str, None]] = {}
    for entity in entities:
        names.setdefault(entity.id, {}).update(dict.fromkeys(entity.names))
    return tuple(Entity(id=id, names=tuple(all_names)) for id, all_names in names.items())


def plainly(facts: Iterable[Fact]) -> Iterator[Fact]:
    """One fact per subject, split and date, as they appear; those collected apart follow."""
    groups: dict[tuple[str, str, str], list[Fact]] = {}
    for fact in facts:
        if APART not in fact.tags:
            groups.setdefault((fact.subject.id, fact.split, fact.date), []).append(fact)
    for (subject, split, date), group in groups.items():
        objects = united(entity for fact in group for entity in fact.objects)
        right = {entity.id for entity in objects}
        yield replace(
            group[0],
            id=":".join(["P1", subject, *[split] * (split != "test"), *[date] * bool(date)]),
            subject=united(fact.subject for fact in group)[0],
            objects=objects,
            wrong=tuple(entity for entity in group[0].wrong if entity.id not in right),
            tags=tuple(dict.fromkeys(tag for fact in group for tag in fact.tags)),
        )
    yield from (fact for fact in facts if APART in fact.tags)


@given(FACTS)
def test_columns_and_a_plain_walk_make_the_same_facts_one(facts: list[Fact]) -> None:
    assert list(facts_of(merged_facts(frame_of(facts)))) == list(plainly(facts))
