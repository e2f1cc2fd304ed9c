"""The checks of tokens alone, on texts written down by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sonde.core.examinations import Text
from sonde.doctor.texts import cut_short, in_place, is_doubled, straddles

# "It is Oslo." as It| is| Os|lo|. after one token that opens it; "is " is 3..6
OSLO = Text(
    answer="Oslo",
    ids=(0, 11, 12, 13, 14, 15),
    pieces=("<s>", "It", " is", " Os", "lo", "."),
    start=3,
    stop=5,
    end=6,
    opens=(0,),
    closes=(),
    bos=frozenset({0}),
    content=(11, 12, 13, 14, 15),
    offsets=((0, 2), (2, 5), (5, 8), (8, 10), (10, 11)),
    apart=(11, 12, 16, 17, 14, 15),
    gap=5,
    begin=6,
    finish=10,
)


def test_a_text_in_order_has_nothing_to_tell() -> None:
    assert in_place(OSLO)
    assert not is_doubled(OSLO)
    assert not cut_short(OSLO)
    assert not straddles(OSLO)


@pytest.mark.parametrize(("start", "stop"), [(2, 4), (2, 5), (4, 5), (3, 4), (3, 6), (3, 3)])
def test_an_answer_of_more_or_fewer_tokens_is_out_of_place(start: int, stop: int) -> None:
    assert not in_place(replace(OSLO, start=start, stop=stop))


def test_a_space_of_its_own_may_be_the_answers_or_not() -> None:
    text = replace(
        OSLO,
        ids=(0, 11, 12, 16, 17, 14, 15),
        content=(11, 12, 16, 17, 14, 15),
        offsets=((0, 2), (2, 5), (5, 6), (6, 8), (8, 10), (10, 11)),
    )
    assert in_place(replace(text, start=3, stop=6))
    assert in_place(replace(text, start=4, stop=6))
    assert not in_place(replace(text, start=2, stop=6))


def test_a_token_that_reaches_into_the_answer_belongs_to_it() -> None:
    text = replace(OSLO, offsets=((0, 2), (2, 8), (8, 9), (9, 10), (10, 11)))
    assert in_place(replace(text, start=2, stop=5))
    assert straddles(replace(text, start=2, stop=5))
    assert not in_place(text)


def test_an_opening_is_doubled_at_the_start_or_inside() -> None:
    assert is_doubled(replace(OSLO, ids=(0, *OSLO.ids)))
    assert is_doubled(replace(OSLO, ids=(0, 11, 0, 12)))
    assert not is_doubled(replace(OSLO, opens=(), ids=(0, 11, 12)))


def test_a_text_is_cut_at_either_end() -> None:
    assert cut_short(replace(OSLO, ids=(0, 12, 13, 14, 15)))
    assert cut_short(replace(OSLO, ids=(0, 11, 12, 13)))
    assert not cut_short(replace(OSLO, ids=(0, 11, 13, 14)))
