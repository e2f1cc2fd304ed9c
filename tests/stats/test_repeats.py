"""Means over repeats: Student's interval, and one with a width where all repeats are equal."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t

from sonde.stats.intervals import repeats_mean, unvaried_mean, vary


def test_the_interval_is_that_of_student() -> None:
    values = [0.2, 0.5, 0.4, 0.9]
    ends = t.interval(0.95, 3, np.mean(values), np.std(values, ddof=1) / 2)
    assert repeats_mean(values) == pytest.approx((0.5, *ends))


def test_equal_repeats_do_not_vary_and_rounding_is_no_variation() -> None:
    assert not vary([0.1 + 0.2, 0.3]) and vary([0.3, 0.31])


def test_equal_repeats_have_the_interval_of_independent_measurements() -> None:
    low, high = unvaried_mean(0.5, [(0.4, 0.7)] * 4)
    assert (low, high) == pytest.approx((0.45, 0.6))
    assert unvaried_mean(0.5, [(0.4, 0.7)]) == pytest.approx((0.4, 0.7))
