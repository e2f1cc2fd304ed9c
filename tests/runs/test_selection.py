"""Which facts are asked about: the same ones tomorrow, and none that nobody wanted."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import UsageError
from sonde.core.facts import Dataset, Selection
from tests.worlds import dataset_of, numbered, numbered_fact


def asked(dataset: Dataset, relation: str = "P1") -> list[str]:
    return [f.id for f in dataset.asked(relation)]


@given(
    first=st.integers(1, 40),
    added=st.integers(0, 20),
    limit=st.integers(1, 10),
    seed=st.integers(0, 5),
)
def test_a_draw_moves_only_for_facts_that_are_drawn_instead(
    first: int, added: int, limit: int, seed: int
) -> None:
    few = [numbered_fact("P1", n) for n in range(first)]
    new = [numbered_fact("P1", n) for n in range(first, first + added)]
    more = [*new[::2], *few, *new[1::2]]
    selection = Selection(limit=limit, seed=seed)
    before = asked(dataset_of(few).select(selection))
    after = asked(dataset_of(more).select(selection))
    assert len(after) == min(limit, first + added)
    assert set(after) - set(before) <= {f.id for f in new}
    assert after == sorted(after, key=[f.id for f in more].index), "the dataset's order is kept"


def test_a_larger_limit_asks_the_same_and_more() -> None:
    dataset = numbered(20)
    draws = [set(asked(dataset.select(Selection(limit=n)))) for n in (1, 3, 7, 20, 99)]
    for smaller, larger in pairwise(draws):
        assert smaller <= larger


def test_another_seed_draws_other_facts() -> None:
    dataset = numbered(20)
    draws = {tuple(asked(dataset.select(Selection(limit=5, seed=seed)))) for seed in range(5)}
    assert len(draws) > 1


def test_a_relation_is_drawn_from_without_regard_to_the_others() -> None:
    limited = numbered(20).select(Selection(limit=5))
    alone = numbered(20).select(Selection(limit=5, relations=("P2",)))
    assert asked(limited, "P2") == asked(alone, "P2")
    assert [r.id for r in alone.asked_relations()] == ["P2"]


def test_only_the_split_is_asked_but_every_object_is_an_option() -> None:
    facts = [
        numbered_fact("P1", 1, "train"),
        numbered_fact("P1", 2, "test"),
        numbered_fact("P1", 3, "train"),
    ]
    dataset = dataset_of(facts)
    assert asked(dataset) == ["P1:2"]
    assert asked(dataset.select(Selection(split="train"))) == ["P1:1", "P1:3"]
    assert dataset.object_names("P1") == ("object 1", "object 2", "object 3")


@pytest.mark.parametrize(
    "selection",
    [Selection(split="no"), Selection(relations=("P1", "P9")), Selection(limit=0)],
)
def test_a_selection_that_leaves_nothing_is_refused(selection: Selection) -> None:
    with pytest.raises(UsageError):
        numbered().select(selection)
