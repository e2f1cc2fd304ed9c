"""Passes answer every text once; counted, they add up and never exceed the naive way."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sonde.core.costs import FIELDS, Cost, Memory
from sonde.engine.batching import Budget
from sonde.engine.dry_run import DryRun
from sonde.engine.encode import Branches, Span, gathered, lengthened
from sonde.engine.prefixes import PrefixCache
from sonde.engine.schedule import (
    Pass,
    Passes,
    Pieces,
    Root,
    row_passes,
    score_passes,
    text_passes,
    trace_passes,
    write_passes,
)
from sonde.engine.spans import SpanTokens
from sonde.engine.token_tree import merge

IDS = st.lists(st.integers(0, 3), min_size=2, max_size=8).map(tuple)
COSTS = st.builds(Cost, **{f.name: st.integers(0, 99) for f in FIELDS})
BUDGETS = st.sampled_from([1, 5, 20, 1000])


def span(ids: tuple[int, ...]) -> Span:
    """A text whose last token is the answer."""
    return Span(ids=ids, start=len(ids) - 1, stop=len(ids), end=len(ids))


# every text opens alike, since a head has at least one token
PROMPTS = st.lists(
    st.lists(IDS.map(lambda ids: span((9, *ids))), min_size=1, max_size=4).map(gathered),
    min_size=1,
    max_size=4,
)


def budget(tokens: int) -> Budget:
    return Budget(tokens, lambda _: True)


def counted(passes: Passes, payers: list[int]) -> DryRun:
    dry = DryRun(max(payers, default=0) + 1)
    dry.count(passes, payers)
    return dry


def total(dry: DryRun) -> Cost:
    return sum(dry.costs, Cost())


def trees(prompts: list[Branches], tokens: int) -> DryRun:
    return counted(score_passes(budget(tokens), prompts), list(range(len(prompts))))


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


WHOLE = st.lists(
    st.lists(IDS, min_size=1, max_size=4).map(
        lambda texts: gathered(
            [Span(ids=(9, *ids), start=1, stop=len(ids), end=len(ids) + 1) for ids in texts]
        )
    ),
    min_size=1,
    max_size=4,
)


@given(WHOLE, BUDGETS)
def test_texts_in_order_come_once_and_share_nearly_all(prompts: list[Branches], most: int) -> None:
    texts = [lengthened(span, own.head) for own in prompts for span in own.spans]
    passes = list(text_passes(budget(most), prompts))
    assert sorted(n for each in passes for n in each.texts) == list(range(len(texts)))
    for each in passes:
        assert len(each.work.ids) <= max(most, max(len(text.ids) for text in texts))
        sizes = [len(texts[n].ids) - 1 for n in each.texts]
        assert list(each.work.sizes) == sizes, "every token is read but the first"
    fed = sum(len(each.work.ids) for each in passes)
    longest = max(len(text.ids) for text in texts)
    assert fed <= len(merge(texts).ids) + (len(passes) - 1) * longest
    assert counted(text_passes(budget(1000), prompts), list(range(len(prompts)))).shapes


def test_texts_that_do_not_fit_into_memory_come_again_in_smaller_passes() -> None:
    texts = [span((9, *ids)) for ids in ((1, 2, 3), (1, 2, 4), (2, 5, 6), (2, 5, 7))]
    passes = text_passes(budget(1000), [gathered(texts)])
    first = next(passes)
    assert list(first.texts) == [0, 1, 2, 3] and first.divisible
    found = [passes.send(True)]
    found += list(passes)
    assert [n for each in found for n in each.texts] == [0, 1, 2, 3]
    assert all(len(each.texts) < 4 for each in found)


@given(PROMPTS)
def test_one_pass_feeds_the_nodes_of_the_tree(prompts: list[Branches]) -> None:
    dry = trees(prompts, 1000)
    tree = merge([lengthened(text, p.head) for p in prompts for text in p.spans])
    read = set(tree.nodes.tolist())
    assert total(dry).computed == len(tree.ids)
    assert [(s.width, s.reads) for s in dry.shapes] == [(len(tree.ids), len(read))]


@given(PROMPTS, BUDGETS)
def test_trees_never_take_more_than_their_texts(prompts: list[Branches], tokens: int) -> None:
    dry = trees(prompts, tokens)
    for cost, texts in zip(dry.costs, prompts, strict=True):
        naive = sum(len(texts.head) + len(text.ids) - 1 for text in texts.spans)
        assert cost.computed <= naive
    assert sum(s.rows * s.width for s in dry.shapes) == total(dry).fed


@given(PROMPTS)
def test_a_prompt_that_comes_again_is_paid_by_the_first(prompts: list[Branches]) -> None:
    once, twice = trees(prompts, 1000), trees([prompts[0], *prompts], 1000)
    assert total(once).computed == total(twice).computed
    assert min(twice.costs[0].computed, twice.costs[1].computed) == 0


def run(passes: Passes, room: int) -> list[Pass]:
    """The passes that succeed where only so many tokens fit into memory at once."""
    done: list[Pass] = []
    step = next(passes, None)
    while step is not None:
        failed = step.divisible and any(s.rows * s.width > room for s in step.shapes)
        done += [] if failed else [step]
        try:
            step = passes.send(failed)
        except StopIteration:
            step = None
    return done


@given(PROMPTS, BUDGETS, st.integers(1, 40))
def test_every_option_is_scored_once_however_little_memory_there_is(
    prompts: list[Branches], tokens: int, room: int
) -> None:
    scored = []
    for step in run(score_passes(budget(tokens), prompts), room):
        if len(step.members) > 1:
            scored += [(i, k) for i in step.members for k in range(len(prompts[i].spans))]
        else:
            scored += [(step.members[0], step.first + k) for k in range(len(step.work.sizes))]
    assert sorted(scored) == [(i, k) for i, p in enumerate(prompts) for k in range(len(p.spans))]


@given(st.lists(IDS, min_size=1, max_size=6), BUDGETS, st.integers(1, 40))
def test_every_text_is_read_once_however_little_memory_there_is(
    texts: list[tuple[int, ...]], tokens: int, room: int
) -> None:
    marked = [SpanTokens(ids=ids, ranges=((1, len(ids)),)) for ids in texts]
    done = run(trace_passes(budget(tokens), marked), room)
    assert sorted(i for step in done for i in step.members) == list(range(len(texts)))
    for step in done:
        if isinstance(step.work, Pieces):
            assert step.work.bounds[-1][1] == sum(step.new) == sum(s.width for s in step.shapes)


@given(st.lists(IDS, min_size=1, max_size=9), BUDGETS, st.sampled_from([0, 6, 16]))
def test_padding_is_what_rows_lack_to_the_longest_and_the_last_row_to_be_full(
    texts: list[tuple[int, ...]], tokens: int, packed: int
) -> None:
    passes = row_passes(budget(tokens), [len(ids) for ids in texts], packed=packed)
    dry = counted(passes, [0] * len(texts))
    assert total(dry).computed == sum(map(len, texts))
    assert total(dry).fed == sum(s.rows * s.width for s in dry.shapes)


def test_a_prefix_is_paid_once_while_it_is_kept() -> None:
    cache: PrefixCache[None] = PrefixCache(lambda ids: (None, 10 * len(ids)), budget=50)
    dry = DryRun(1)

    def pay(*ids: int) -> int:
        before = dry.spent["stems"][0]
        step = Pass(members=[0], new=[0], shapes=(), prefix=ids)
        dry.count([step], [0], prefixes=cache)
        return dry.spent["stems"][0] - before

    assert [pay(1, 2), pay(1, 2), pay(3, 4, 5)] == [2, 0, 3]
    assert pay(1, 2) == 0
    assert pay(6) == 1  # drops the prefix that was used longest ago
    assert [pay(1, 2), pay(3, 4, 5)] == [0, 3]
    assert cache.most == 60


def test_prompts_to_write_on_from_keep_room_for_what_they_add() -> None:
    for room, computed in ((1, 4), (9, 6)):  # together in one tree, or apart
        roots = [Root(ids=ids, room=room) for ids in ((1, 2, 3), (1, 2, 4))]
        assert total(counted(write_passes(budget(10), roots), [0, 1])).computed == computed
