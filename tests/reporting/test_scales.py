"""Axes and words of figures: round numbers along a reach, and labels that fit their room."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.reporting.render.figures.canvas import (
    Linear,
    fits,
    from_zero,
    measure,
    shortened,
    tick_words,
    ticks,
    wrapped,
)

VALUES = st.floats(min_value=-1e9, max_value=1e9, allow_nan=False)
WIDE = st.floats(min_value=1e-6, max_value=1e9)
MOST = st.integers(min_value=2, max_value=12)
WORDS = st.text(max_size=80)


@given(VALUES, WIDE, MOST, st.booleans())
def test_round_numbers_rise_within_their_reach_and_are_not_too_many(
    low: float, wide: float, most: int, whole: bool
) -> None:
    high = low + wide
    found = ticks(low, high, most, whole)
    slack = 1e-6 * max(abs(low), abs(high), wide)
    assert len(found) <= most
    assert all(low - slack <= place <= high + slack for place in found)
    assert all(a < b for a, b in pairwise(found)) or low + wide * 1e-3 == low


@given(st.integers(min_value=0, max_value=10**9), MOST)
def test_an_axis_of_counts_has_whole_numbers_from_zero(highest: int, most: int) -> None:
    found = ticks(0.0, highest * 1.03 or 1.0, most, whole=True)
    assert found[0] == 0 and all(place.is_integer() for place in found)
    assert len(set(tick_words(found, "number"))) == len(found)


@given(st.floats(min_value=1e-4, max_value=1.0), MOST)
def test_the_words_of_shares_differ_and_say_the_numbers(high: float, most: int) -> None:
    found = ticks(0.0, high, most)
    words = tick_words(found, "percent")
    assert len(set(words)) == len(words)
    for place, said in zip(found, words, strict=True):
        assert float(said.rstrip("%")) / 100 == pytest.approx(place, abs=1e-9)


@given(VALUES, WIDE, VALUES, st.floats(min_value=1, max_value=2000))
def test_a_scale_puts_its_ends_at_the_ends_and_keeps_the_order(
    low: float, wide: float, start: float, length: float
) -> None:
    high = low + wide
    if high == low:
        return
    scale = Linear(low, high, start, start + length)
    assert scale(low) == start and scale(high) == pytest.approx(start + length)
    assert scale(low) <= scale(low + wide / 2) <= scale(high)


@given(st.lists(st.floats(min_value=-10, max_value=10)), st.sampled_from(["percent", "number"]))
def test_an_axis_from_zero_holds_zero_and_every_value(values: list[float], kind: str) -> None:
    low, high = from_zero(values, "percent" if kind == "percent" else "number")
    assert low <= 0 <= high and low < high
    assert all(low <= value <= high for value in values)


@given(WORDS, st.floats(min_value=20, max_value=400), st.sampled_from([11, 12, 13]))
def test_shortened_words_fit_and_begin_as_the_whole_does(
    words: str, room: float, size: int
) -> None:
    shown = shortened(words, room, size)
    assert shown == words or (shown.endswith("…") and words.startswith(shown[:-1]))
    assert measure(shown, size) <= room


@given(WORDS, st.floats(min_value=40, max_value=400), st.integers(min_value=1, max_value=5))
def test_wrapped_words_fit_on_every_line(words: str, room: float, most: int) -> None:
    lines = wrapped(words, room, 12, most)
    assert 1 <= len(lines) <= most
    assert all(measure(line, 12) <= room for line in lines)
    if fits(words, room, 12, most):
        assert "".join(" ".join(lines).split()) == "".join(words.split())


@given(WORDS)
def test_words_without_an_end_of_lines_are_all_there(words: str) -> None:
    assert "".join("".join(wrapped(words, 60, 12)).split()) == "".join(words.split())
