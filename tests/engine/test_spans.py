"""Which tokens belong to which part of a text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import PromptError
from sonde.engine.encode import CausalEncoder, Start
from sonde.engine.spans import SpanTokens, mark, part_tokens
from sonde.engine.token_tree import merge_texts
from tests.tiny import byte_pairs, metaspaces, word_pieces


def marked(text: str, *parts: tuple[int, int], start: Start | None = None) -> SpanTokens:
    encoder = CausalEncoder(byte_pairs(), start or Start(id=0, always=False))
    (tokens,) = encoder.whole([text])
    return mark(tokens, text, parts, encoder.start)


@st.composite
def cut(draw: st.DrawFn) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Offsets of tokens, some of them bytes of one character, and parts of the same text."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=8))
    offsets: list[tuple[int, int]] = []
    for size in sizes:
        begin = offsets[-1][1] if offsets else 0
        offsets += [(begin, begin + size)] * draw(st.integers(1, 2))
    places = st.lists(st.integers(0, offsets[-1][1]), min_size=2, max_size=6, unique=True)
    ends = sorted(draw(places))
    parts = [pair for pair in pairwise(ends) if draw(st.booleans())]
    return offsets, parts


@given(cut())
def test_a_token_is_the_first_parts_it_shares_a_character_with(
    given_: tuple[list[tuple[int, int]], list[tuple[int, int]]],
) -> None:
    offsets, parts = given_
    owners: list[list[int]] = [[] for _ in parts]
    for token, (a, b) in enumerate(offsets):
        shares = [k for k, (begin, end) in enumerate(parts) if b > begin and a < end]
        if shares:
            owners[shares[0]].append(token)
    assert [list(range(a, b)) for a, b in part_tokens(offsets, parts)] == owners


def test_a_start_token_stands_first_where_the_first_token_is_read() -> None:
    bare = marked("Paris is", (6, 8))
    opened = marked("Paris is", (0, 2))
    assert opened.ids == (0, *bare.ids)
    assert opened.reads[0] == 1
    always = marked("Paris is", (6, 8), start=Start(id=0, always=True))
    assert always.ids == opened.ids
    assert always.reads == tuple(i + 1 for i in bare.reads)


def test_only_what_stands_before_the_last_read_is_fed() -> None:
    text = marked("It is Paris is it", (5, 11))
    assert len(text.fed) == text.reads[-1] < len(text.ids)
    assert len(text.unread) == text.reads[0] - 1


def test_a_part_without_a_token_is_refused_unless_the_part_before_holds_it() -> None:
    encoder = CausalEncoder(word_pieces(), Start(id=2, always=False))
    text = "Paris  is"
    (tokens,) = encoder.whole([text])
    with pytest.raises(PromptError, match="the part '  ' has no token"):
        mark(tokens, text, [(5, 7)], encoder.start)
    with pytest.raises(PromptError, match="the part ' ' has no token"):
        mark(tokens, text, [(0, 5), (5, 6)], encoder.start)
    assert mark(tokens, text, [(0, 3), (3, 5)], encoder.start).ranges == ((1, 2), (2, 2))


def test_bytes_of_a_character_are_all_its_parts() -> None:
    text = "Paris 東"
    encoder = CausalEncoder(metaspaces(), Start(id=1, always=True))
    (tokens,) = encoder.whole([text])
    ((start, stop),) = mark(tokens, text, [(6, 7)], encoder.start).ranges
    assert stop - start == 3
    assert stop == len(tokens[0]) + 1


def test_texts_that_share_tokens_share_nodes_and_are_read_where_asked() -> None:
    trees = merge_texts([((1, 2, 3, 4, 5), (2, 4)), ((1, 2, 3, 9), (3,)), ((1, 7), (1,))])
    assert trees.ids.tolist() == [1, 2, 3, 4]
    assert trees.nodes.tolist() == [1, 3, 2, 0]
    assert trees.tokens.tolist() == [3, 5, 9, 7]
    assert trees.sizes == (2, 1, 1)
