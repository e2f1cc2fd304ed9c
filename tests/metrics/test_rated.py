"""Columns of scored options give back the answers that they were gathered from."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.answers import Scored, Traced
from sonde.core.rated import RatedColumns

LOGPS = st.lists(st.integers(-9, 0).map(float), min_size=1, max_size=3).map(tuple)
SUFFIX = st.lists(st.integers(-9, 0).map(float), max_size=2).map(tuple)


@st.composite
def scored(draw: st.DrawFn) -> Scored:
    names = draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True))
    logps = tuple(draw(LOGPS) for _ in names)
    after = tuple(draw(SUFFIX) for _ in names)
    return Scored(options=tuple(names), logps=logps, suffix_logps=after if any(after) else ())


ANSWERS = st.lists(scored(), min_size=1, max_size=6)
TRACED = st.builds(Traced, logps=st.lists(LOGPS, min_size=1, max_size=3).map(tuple))


@given(answers=ANSWERS, order=st.randoms(use_true_random=False))
def test_prompts_chosen_in_any_order_keep_their_options(
    answers: list[Scored], order: Random
) -> None:
    places = list(range(len(answers)))
    order.shuffle(places)
    columns = RatedColumns.gathered(answers)
    assert list(columns.each()) == answers
    assert list(columns.rows(np.array(places)).each()) == [answers[i] for i in places]
    assert list(columns.rows(slice(1, 3)).each()) == answers[1:3]


@given(answers=ANSWERS, cut=st.integers(0, 6))
def test_parts_under_each_other_are_the_whole(answers: list[Scored], cut: int) -> None:
    parts = [RatedColumns.gathered(part) for part in (answers[:cut], answers[cut:]) if part]
    joined = RatedColumns.joined(parts)
    assert list(joined.each()) == answers
    assert joined.sums().tolist() == RatedColumns.gathered(answers).sums().tolist()


@given(answers=st.lists(TRACED, min_size=1, max_size=5))
def test_traced_spans_have_no_names(answers: list[Traced]) -> None:
    columns = RatedColumns.gathered(answers)
    assert columns.options is None
    assert list(columns.each()) == answers
