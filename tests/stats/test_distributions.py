"""Quantiles and sums that are worked out here are those of scipy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import bdtr, chdtri, stdtrit

from sonde.stats.distributions import MANY_TOSSES, at_most, chi_square, student_reach

FREE = st.integers(1, 400) | st.integers(1, 30_000)


@given(FREE)
def test_student_s_interval_reaches_as_far_as_scipy_s(free: int) -> None:
    assert student_reach(free) == pytest.approx(stdtrit(free, 0.975), rel=1e-10)


@given(FREE, st.booleans())
def test_the_ends_of_chi_square_are_scipy_s(free: int, upper: bool) -> None:
    expected = chdtri(free, 0.025 if upper else 0.975)
    assert chi_square(free, upper) == pytest.approx(expected, rel=1e-9)


@given(st.integers(0, MANY_TOSSES + 10), st.floats(0, 0.5))
def test_heads_of_many_tosses_are_scipy_s(tosses: int, share: float) -> None:
    heads = int(tosses * share)
    assert at_most(heads, tosses) == pytest.approx(bdtr(heads, tosses, 0.5), rel=1e-9, abs=1e-300)
