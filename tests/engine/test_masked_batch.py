"""Texts as columns are the texts they were made from, and equal ones are found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.engine.masked_batch import MaskedText, MaskedTexts, columns, joined

TEXTS = st.lists(
    st.lists(st.integers(0, 2), min_size=1, max_size=4).flatmap(
        lambda ids: st.tuples(st.just(tuple(ids)), st.integers(0, len(ids) - 1))
    ),
    min_size=1,
    max_size=20,
)


def back(holes: MaskedTexts) -> list[MaskedText]:
    parts = np.split(holes.ids, holes.offsets[1:-1])
    return [
        (tuple(ids.tolist()), place)
        for ids, place in zip(parts, holes.places.tolist(), strict=True)
    ]


@given(texts=TEXTS)
def test_columns_hold_the_texts(texts: list[MaskedText]) -> None:
    holes = columns(texts)
    assert back(holes) == texts
    longest = max(len(ids) for ids, _ in texts)
    rows = holes.rows(range(len(texts))).tolist()
    assert rows == [[*ids, *[0] * (longest - len(ids))] for ids, _ in texts]


@given(parts=st.lists(TEXTS, min_size=1, max_size=4))
def test_joined_columns_hold_all_texts(parts: list[list[MaskedText]]) -> None:
    assert back(joined([columns(part) for part in parts])) == [t for part in parts for t in part]


@pytest.mark.parametrize("colliding", [False, True])
@given(texts=TEXTS)
def test_equal_texts_are_found_in_the_order_they_come(
    colliding: bool, texts: list[MaskedText]
) -> None:
    holes = columns(texts)
    with pytest.MonkeyPatch.context() as patch:
        if colliding:
            patch.setattr(MaskedTexts, "_hashes", lambda self: np.zeros(len(self), dtype=np.uint64))
        first, inverse = holes.distinct()
    known = list(dict.fromkeys(texts))
    assert [texts[i] for i in first] == known
    assert [known[i] for i in inverse] == texts
    assert [texts.index(text) for text in known] == first.tolist()
