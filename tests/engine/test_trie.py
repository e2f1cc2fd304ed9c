"""A trie holds each distinct beginning once and gives back every sequence."""

from __future__ import annotations

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from sonde.engine.encode import Span
from sonde.engine.token_tree import TokenTree, merge


@st.composite
def spans(draw: st.DrawFn) -> Span:
    ids = tuple(draw(st.lists(st.integers(0, 3), min_size=2, max_size=7)))
    start = draw(st.integers(1, len(ids) - 1))
    stop = draw(st.integers(start + 1, len(ids)))
    return Span(ids=ids, start=start, stop=stop, end=len(ids))


def path(trie: TokenTree, node: int) -> tuple[int, ...]:
    """The tokens from the root down to a node."""
    parent = trie.parents[node]
    return (*(path(trie, parent) if parent >= 0 else ()), int(trie.ids[node]))


@given(st.lists(spans(), min_size=1, max_size=8))
def test_nodes_are_the_distinct_proper_beginnings(texts: list[Span]) -> None:
    trie = merge(texts)
    beginnings = {span.ids[:length] for span in texts for length in range(1, len(span.ids))}
    paths = [path(trie, node) for node in range(len(trie.ids))]
    assert len(paths) == len(set(paths))
    assert set(paths) == beginnings
    assert [len(p) - 1 for p in paths] == list(trie.depths)


@given(st.lists(spans(), min_size=1, max_size=8))
def test_reads_give_back_every_scored_token_after_its_beginning(texts: list[Span]) -> None:
    trie = merge(texts)
    reads = zip(trie.nodes.tolist(), trie.tokens.tolist(), strict=True)
    for span, size in zip(texts, trie.sizes, strict=True):
        found = [(path(trie, node), token) for node, token in islice(reads, size)]
        assert found == [(span.ids[:i], span.ids[i]) for i in range(span.start, span.end)]


@given(st.lists(spans(), min_size=1, max_size=8))
def test_a_parent_comes_before_its_children(texts: list[Span]) -> None:
    trie = merge(texts)
    assert all(parent < node for node, parent in enumerate(trie.parents))


def test_a_sequence_that_begins_another_adds_no_node() -> None:
    long = Span(ids=(1, 2, 3, 4), start=2, stop=4, end=4)
    short = Span(ids=(1, 2, 3), start=2, stop=3, end=3)
    assert merge([long, short]).ids.tolist() == merge([long]).ids.tolist() == [1, 2, 3]
    assert merge([short]).ids.tolist() == [1, 2]
