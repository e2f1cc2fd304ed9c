"""Counting adds up, shares what is shared, and never comes to more than the naive way."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sonde.core.costs import FIELDS, Cost, Memory
from sonde.engine.counting import (
    Kept,
    Ledger,
    count_openings,
    count_rows,
    count_trees,
    distinct_rows,
)
from sonde.engine.encode import Span
from sonde.engine.trie import merge

IDS = st.lists(st.integers(0, 3), min_size=2, max_size=8).map(tuple)
COSTS = st.builds(Cost, **{f.name: st.integers(0, 99) for f in FIELDS})
BUDGETS = st.sampled_from([1, 5, 20, 1000])


def span(ids: tuple[int, ...]) -> Span:
    """A text whose last token is the answer."""
    return Span(ids=ids, start=len(ids) - 1, stop=len(ids), end=len(ids))


PROMPTS = st.lists(st.lists(IDS.map(span), min_size=1, max_size=4), min_size=1, max_size=4)


def trees(prompts: list[list[Span]], budget: int) -> Ledger:
    ledger = Ledger([Cost()] * len(prompts))
    count_trees(ledger, (), list(enumerate(prompts)), budget, Kept(0, 1))
    return ledger


def total(ledger: Ledger) -> Cost:
    return sum(ledger.costs, Cost())


@given(COSTS, COSTS, COSTS)
def test_costs_add_up_in_any_order(a: Cost, b: Cost, c: Cost) -> None:
    assert (a + b) + c == a + (c + b)
    assert a + Cost() == a
    assert a.scaled(2) == a + a
    assert (a + b).fed == a.fed + b.fed


def test_memory_for_either_is_room_for_the_larger() -> None:
    both = Memory(weights=5, stems=0, batch=2) | Memory(weights=5, stems=3, batch=1)
    assert both == Memory(weights=5, stems=3, batch=2)
    assert both.total == 10


@given(PROMPTS)
def test_one_pass_feeds_the_nodes_of_the_tree(prompts: list[list[Span]]) -> None:
    ledger = trees(prompts, budget=1000)
    tree = merge([text for texts in prompts for text in texts])
    read = {node for reads in tree.reads for node, _ in reads}
    assert total(ledger).computed == len(tree.ids)
    assert [(p.width, p.reads) for p in ledger.passes] == [(len(tree.ids), len(read))]


@given(PROMPTS, BUDGETS)
def test_trees_never_take_more_than_their_texts(prompts: list[list[Span]], budget: int) -> None:
    ledger = trees(prompts, budget)
    for cost, texts in zip(ledger.costs, prompts, strict=True):
        assert cost.computed <= sum(len(text.ids) - 1 for text in texts)
    assert sum(p.rows * p.width for p in ledger.passes) == total(ledger).fed


@given(PROMPTS)
def test_a_prompt_that_comes_again_is_paid_by_the_first(prompts: list[list[Span]]) -> None:
    once, twice = trees(prompts, 1000), trees([prompts[0], *prompts], 1000)
    assert total(once).computed == total(twice).computed
    assert min(twice.costs[0].computed, twice.costs[1].computed) == 0


@given(st.lists(IDS, min_size=1, max_size=9), BUDGETS)
def test_padding_is_what_rows_lack_to_the_longest(
    texts: list[tuple[int, ...]], budget: int
) -> None:
    ledger = Ledger([Cost()])
    count_rows(ledger, [(0, (ids, 0)) for ids in texts], budget)
    assert total(ledger).computed == sum(map(len, texts))
    assert total(ledger).fed == sum(p.rows * p.width for p in ledger.passes)


def test_the_same_input_is_counted_once() -> None:
    rows = distinct_rows([(4, [((1, 2), 0), ((1, 2), 1)]), (6, [((1, 2), 0), ((3,), 0)])])
    assert rows == [(4, ((1, 2), 0)), (4, ((1, 2), 1)), (6, ((3,), 0))]


def test_a_stem_is_paid_once_while_it_is_kept() -> None:
    kept = Kept(budget=50, size=10)
    assert [kept.pay((1, 2)), kept.pay((1, 2)), kept.pay((3, 4, 5))] == [2, 0, 3]
    assert kept.pay((1, 2)) == 0
    assert kept.pay((6,)) == 1  # drops the stem that was used longest ago
    assert [kept.pay((1, 2)), kept.pay((3, 4, 5))] == [0, 3]
    assert kept.most == 60


def test_prompts_to_write_on_from_keep_room_for_what_they_add() -> None:
    openings = [(0, (1, 2, 3)), (1, (1, 2, 4))]
    for room, computed in (([1, 1], 4), ([9, 9], 6)):  # together in one tree, or apart
        ledger = Ledger([Cost(), Cost()])
        count_openings(ledger, (), openings, room, 10, Kept(0, 1))
        assert total(ledger).computed == computed
