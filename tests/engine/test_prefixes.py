"""Prefixes: which prompts share a beginning, and how much of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sonde.engine.prefixes import shared, shared_prefixes

BEGINNINGS = st.lists(st.lists(st.integers(0, 2), max_size=12).map(tuple), max_size=12)


@given(BEGINNINGS, st.integers(1, 4))
def test_every_prompt_is_in_one_group_and_opens_with_its_prefix(
    beginnings: list[tuple[int, ...]], step: int
) -> None:
    groups = shared_prefixes(beginnings, step)
    assert sorted(i for g in groups for i in g.members) == list(range(len(beginnings)))
    for group in groups:
        assert len(group.ids) % step == 0
        assert all(beginnings[i][: len(group.ids)] == group.ids for i in group.members)


@given(BEGINNINGS, st.integers(1, 4), st.randoms())
def test_groups_do_not_depend_on_the_order_of_prompts(
    beginnings: list[tuple[int, ...]], step: int, random: object
) -> None:
    order = list(range(len(beginnings)))
    random.shuffle(order)  # type: ignore[attr-defined]
    there = {
        (g.ids, tuple(sorted(beginnings[i] for i in g.members)))
        for g in shared_prefixes(beginnings, step)
    }
    again = shared_prefixes([beginnings[i] for i in order], step)
    moved = {(g.ids, tuple(sorted(beginnings[order[i]] for i in g.members))) for g in again}
    assert there == moved


def test_two_relations_with_long_beginnings_stay_apart() -> None:
    one, other = tuple(range(100, 164)), tuple(range(300, 364))
    groups = shared_prefixes([(*one, 1), (*other, 1), (*one, 2), (*other, 2), (7,)])
    assert {(g.ids, g.members) for g in groups} == {(one, (0, 2)), (other, (1, 3)), ((), (4,))}


def test_a_short_common_opening_does_not_split_a_long_one() -> None:
    """Joining a stranger would shrink the prefix by more than it saves."""
    long = tuple(range(200))
    groups = shared_prefixes([(*long, 1), (*long, 2), (*long, 3), (*long[:16], 999)])
    assert sorted(len(g.members) for g in groups) == [1, 3]


def test_prompts_that_share_nothing_stay_together_in_one_batch() -> None:
    assert [g.members for g in shared_prefixes([(1,), (2,), (3,)])] == [(0, 1, 2)]


@given(st.lists(st.integers(0, 2)), st.lists(st.integers(0, 2)))
def test_shared_counts_the_common_opening(one: list[int], other: list[int]) -> None:
    n = shared(one, other)
    assert one[:n] == other[:n]
    assert n in (len(one), len(other)) or one[n] != other[n]
