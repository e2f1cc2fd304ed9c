"""Trees set side by side have the nodes and the reads of one tree of all their texts."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sonde.engine.encode import Span, lengthened
from sonde.engine.token_tree import PromptTexts, TokenTree, merge, merge_prompts, options_tree

TOKENS = st.integers(0, 3)
CHAINS = st.lists(TOKENS, min_size=1, max_size=4).map(tuple)


@st.composite
def spans(draw: st.DrawFn) -> Span:
    ids = tuple(draw(st.lists(TOKENS, min_size=1, max_size=4)))
    start = draw(st.integers(0, len(ids) - 1))
    return Span(ids=ids, start=start, stop=draw(st.integers(start + 1, len(ids))), end=len(ids))


PROMPTS = st.lists(
    st.tuples(CHAINS, st.lists(spans(), min_size=1, max_size=4).map(tuple)), min_size=1, max_size=5
)


def paths(found: TokenTree) -> list[tuple[int, ...]]:
    """What each node stands for: the tokens from the root to it."""
    by_depth = [np.flatnonzero(row) for row in found.seen]
    return [
        tuple(found.ids[sorted(nodes, key=lambda n: found.depths[n])].tolist())
        for nodes in by_depth
    ]


def reads(found: TokenTree) -> list[list[tuple[tuple[int, ...], int]]]:
    """For each sequence, what it reads: the tokens before, and the token."""
    known = paths(found)
    steps = iter(zip(found.nodes.tolist(), found.tokens.tolist(), strict=True))
    return [
        [(known[node], token) for node, token in (next(steps) for _ in range(size))]
        for size in found.sizes
    ]


@given(prompts=PROMPTS, twice=st.booleans())
def test_side_by_side_equals_one_tree(prompts: list[PromptTexts], twice: bool) -> None:
    prompts = prompts * 2 if twice else prompts
    texts = [lengthened(span, chain) for chain, options in prompts for span in options]
    found = merge_prompts(prompts)
    whole = merge(texts)
    assert len(found.ids) == len(whole.ids) == len(set(paths(found)))
    for text, steps in zip(texts, reads(found), strict=True):
        assert steps == [(text.ids[:i], text.ids[i]) for i in range(text.start, text.end)]


@given(prompts=PROMPTS)
def test_depths_count_the_ancestors(prompts: list[PromptTexts]) -> None:
    found = merge_prompts(prompts)
    assert (found.seen.sum(1) == found.depths + 1).all()


def test_equal_options_are_merged_once() -> None:
    options = (Span(ids=(1, 2), start=0, stop=2, end=2), Span(ids=(1, 3), start=0, stop=2, end=2))
    before = options_tree.cache_info().misses
    merge_prompts([((chain,), options) for chain in range(5, 50)])
    assert options_tree.cache_info().misses <= before + 1
