"""Exact distributions against enumeration, scipy and plain simulation."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray
from scipy.stats import binom, chisquare

from sonde.stats.distributions import drawn, independent, range_interval, successes, summed
from sonde.stats.intervals import resampled_at_once, resampled_sums

Floats = NDArray[np.float64]

RATES = st.sampled_from([0.0, 1.0, 0.5, 1 / 3, 2 / 3, 0.125])
TABLES = arrays(
    np.float64, array_shapes(min_dims=2, max_dims=2, max_side=5), elements=RATES | st.floats(0, 1)
)


def enumerated(rates: Floats) -> Floats:
    """The definition: every way, every outcome of every trial."""
    trials, ways = rates.shape
    found = np.zeros(trials + 1)
    for way in range(ways):
        for outcome in product([0, 1], repeat=trials):
            chances = [p if hit else 1 - p for hit, p in zip(outcome, rates[:, way], strict=True)]
            found[sum(outcome)] += prod(chances) / ways
    return found


@given(TABLES)
def test_successes_are_distributed_as_enumeration_says(rates: Floats) -> None:
    np.testing.assert_allclose(successes(rates), enumerated(rates), atol=1e-12)


@pytest.mark.parametrize("p", [0.0, 0.002, 0.5, 0.9, 1.0])
def test_equal_rates_are_a_binomial(p: float) -> None:
    trials = 3000
    expected = binom.pmf(np.arange(trials + 1), trials, p)
    np.testing.assert_allclose(independent(np.full(trials, p)), expected, atol=1e-12)


def test_many_different_rates_have_the_mean_and_variance_of_their_sum() -> None:
    rates = np.random.default_rng(0).random(5000)
    found, number = independent(rates), np.arange(5001)
    mean = found @ number
    assert mean == pytest.approx(rates.sum(), rel=1e-9)
    assert found @ (number - mean) ** 2 == pytest.approx((rates * (1 - rates)).sum(), rel=1e-6)


def test_parts_of_a_table_give_the_same_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = np.random.default_rng(0).integers(0, 4, (40, 7)) / 3
    whole = successes(rates)
    monkeypatch.setattr("sonde.stats.distributions.TABLE", 10)
    np.testing.assert_allclose(successes(rates), whole, atol=1e-14)


@given(st.lists(arrays(np.float64, 3, elements=st.floats(0.01, 1)), min_size=1, max_size=4))
def test_a_sum_is_distributed_as_the_convolution(parts: list[Floats]) -> None:
    even = [part / part.sum() for part in parts]
    expected = np.ones(1)
    for part in even:
        expected = np.convolve(expected, part)
    np.testing.assert_allclose(summed(even), expected, atol=1e-13)


def test_draws_come_as_often_as_the_distribution_says() -> None:
    distribution = np.array([0.0, 0.1, 0.0, 0.6, 0.3, 0.0])
    draws = drawn(distribution, 20_000, np.random.default_rng(3))
    seen = np.bincount(draws, minlength=6)
    assert seen[distribution == 0].sum() == 0
    possible = distribution > 0
    assert chisquare(seen[possible], 20_000 * distribution[possible]).pvalue > 0.001


def test_the_range_interval_holds_the_ranges_of_other_draws() -> None:
    distribution = independent(np.full(200, 0.3))
    rng = np.random.default_rng(0)
    ranges = np.array([np.ptp(drawn(distribution, 500, rng)) for _ in range(2000)])
    low, high = range_interval(distribution, 500)
    # the numbers are whole, so the exact quantiles are those of the simulation or their neighbours
    assert abs(low - np.quantile(ranges, 0.025)) <= 1
    assert abs(high - np.quantile(ranges, 0.975)) <= 1
    assert low < np.median(ranges) < high


def test_the_range_interval_is_exact_for_two_draws() -> None:
    distribution = np.array([0.0, 0.5, 0.3, 0.2])
    ranges: Floats = np.zeros(4)
    for (a, p), (b, q) in product(enumerate(distribution), repeat=2):
        ranges[abs(a - b)] += p * q
    below = np.cumsum(ranges)
    expected = (int(np.searchsorted(below, 0.025)), int(np.searchsorted(below, 0.975)))
    assert range_interval(distribution, 2) == expected == (0, 2)


def test_one_possible_number_has_no_range() -> None:
    assert range_interval(np.array([0.0, 1.0, 0.0]), 50_000) == (0, 0)


def test_resampled_sums_count_every_row_as_often_as_chance_does() -> None:
    sums = resampled_sums(np.eye(5), np.random.default_rng(0), draws=20_000)
    assert (sums.sum(axis=1) == 5).all()
    np.testing.assert_allclose(sums.mean(axis=0), 1, atol=0.03)
    np.testing.assert_allclose(sums.var(axis=0), 0.8, atol=0.03)


def test_resampling_in_blocks_gives_every_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sonde.stats.intervals.PICKS", 12)
    sums = resampled_sums(np.ones((5, 1)), np.random.default_rng(0), draws=7)
    assert sums.tolist() == [[5.0]] * 7


def test_equal_streams_draw_alike_and_move_on_alike() -> None:
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    values = np.random.default_rng(0).random((40, 2))
    first = [resampled_sums(values, one, draws=9) for _ in range(2)]
    again = [resampled_sums(values, other, draws=9) for _ in range(2)]
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[0], first[1])
    assert one.random() == other.random()


def test_a_column_that_is_drawn_once_has_the_sums_of_counts() -> None:
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    values = np.random.default_rng(0).random((40, 1))
    picked = resampled_sums(values, one, draws=9, once=True)
    np.testing.assert_allclose(picked, resampled_sums(values, other, draws=9), rtol=1e-14)
    assert one.random() == other.random()


def test_columns_of_several_are_summed_as_those_of_one() -> None:
    rng = np.random.default_rng(0)
    tables = [rng.random((40, 2)), rng.random((30, 1)), rng.random((40, 3))]
    made = resampled_at_once(tables, lambda: np.random.default_rng(5))
    for table, sums in zip(tables, made, strict=True):
        alone = resampled_sums(table, np.random.default_rng(5))
        np.testing.assert_allclose(sums, alone, rtol=1e-14)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40).filter(any), st.integers(0, 99))
def test_numbers_are_drawn_as_if_each_were_looked_up(parts: list[float], seed: int) -> None:
    distribution = np.array(parts) / np.sum(parts)
    below = np.cumsum(distribution)
    uniform = np.random.default_rng(seed).random(200)
    expected = np.searchsorted(below / below[-1], uniform, side="right")
    found = drawn(distribution, 200, np.random.default_rng(seed))
    assert found.tolist() == expected.tolist()
