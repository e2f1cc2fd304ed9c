"""Pairs by columns are what a plain walk over the facts gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sonde.core.facts import Dataset, Entity, Fact, Selection, commonest_objects
from sonde.evaluation.tables import fact_table
from sonde.prompting.templates import pairs_with_subject_names
from tests.worlds import relation, world

LETTERS = st.sampled_from("abc")
ENTITIES = st.builds(Entity, id=LETTERS, names=st.lists(LETTERS, min_size=1, max_size=3).map(tuple))
FACTS = st.lists(
    st.builds(
        Fact,
        id=st.uuids().map(str),
        relation=st.just("P1"),
        subject=ENTITIES,
        objects=st.lists(ENTITIES, min_size=1, max_size=3).map(tuple),
        split=st.sampled_from(("test", "train")),
    ),
    max_size=6,
)


def plainly(dataset: Dataset, relation: str) -> Iterator[tuple[object, ...]]:
    """The pairs, one after the other."""
    firsts: dict[str, Fact] = {}
    for fact in dataset.asked(relation):
        firsts.setdefault(fact.subject.id, fact)
    names: dict[str, dict[str, None]] = {id: {} for id in firsts}
    objects: dict[str, dict[str, tuple[str, ...]]] = {id: {} for id in firsts}
    for fact in dataset.facts(relation):
        if fact.subject.id in firsts:
            names[fact.subject.id].update(dict.fromkeys(fact.subject.names))
            right = objects[fact.subject.id]
            for entity in fact.objects:
                right[entity.id] = tuple(dict.fromkeys((*right.get(entity.id, ()), *entity.names)))
    ranked = commonest_objects(dataset.split_frame(relation))
    for id, fact in firsts.items():
        yield (
            fact.id,
            id,
            [*dict.fromkeys((*fact.subject.names, *names[id]))],
            [[*right] for right in objects[id].values()],
            any(right[0] == ranked[0][0] for right in objects[id].values()),
        )


@given(FACTS, st.none() | st.integers(1, 4))
def test_columns_and_a_plain_walk_give_the_same_pairs(facts: list[Fact], limit: int | None) -> None:
    dataset = replace(world(facts, relation("P1")), selection=Selection(limit=limit))
    assert list(dataset.facts("P1")) == facts
    columns = ("fact", "subject_id", "aliases", "gold_names", "majority_correct")
    pairs = fact_table(dataset, "pair").select(columns)
    assert pairs.rows() == list(plainly(dataset, "P1"))
    assert (
        pairs_with_subject_names(dataset, "P1").select("fact", "names").rows()
        == pairs.select("fact", "aliases").rows()
    )
