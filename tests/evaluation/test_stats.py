"""Intervals, tests and distributions: algebra, exact small cases and known values."""

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.evaluation import stats

RNG = np.random.default_rng(0)


def test_streams_depend_on_seed_and_name() -> None:
    first, same, other = (
        stats.random_generator(*key).random() for key in ((0, "a"), (0, "a"), (1, "a"))
    )
    assert first == same != other


def test_resampled_sums_count_every_column_alike() -> None:
    columns = np.column_stack([np.arange(5.0), np.ones(5), 2 * np.arange(5.0)])
    sums = stats.resampled_sums(columns, stats.random_generator(0, "r"), 300)
    assert sums.shape == (300, 3)
    assert (sums[:, 1] == 5).all()
    assert (sums[:, 2] == 2 * sums[:, 0]).all()
    assert sums[:, 0].mean() == pytest.approx(10, abs=1)


def test_flipped_sums_are_of_half_the_clusters() -> None:
    sums = stats.flipped_sums(np.ones((10, 1)), stats.random_generator(0, "r"), 2000)
    assert sums.mean() == pytest.approx(5, abs=0.2)
    assert set(sums.ravel()) <= set(range(11))


@given(st.integers(0, 50), st.integers(1, 50))
def test_wilson_holds_the_share_and_is_possible(successes: int, n: int) -> None:
    low, high = stats.wilson_interval(min(successes, n), n)
    assert -1e-12 <= low <= min(successes, n) / n <= high <= 1 + 1e-12


def test_newcombe_of_no_difference_is_symmetric() -> None:
    low, high = stats.newcombe_interval(0.0, 0.0, 30)
    assert (round(low, 3), round(high, 3)) == (-0.114, 0.114)


def mcnemar(differences: stats.Floats) -> float:
    won, lost = int((differences > 0).sum()), int((differences < 0).sum())
    fewer = sum(comb(won + lost, k) for k in range(min(won, lost) + 1))
    return float(min(1.0, 2 * fewer / 2.0 ** (won + lost)))


@pytest.mark.parametrize("n", [8, 40, 150])
def test_a_sign_flip_of_0_1_outcomes_is_mcnemars(n: int) -> None:
    differences = RNG.choice((-1.0, 0.0, 1.0), n, p=(0.1, 0.7, 0.2))
    assert stats.sign_flip_test(differences, np.ones(len(differences)), RNG)[2] == pytest.approx(
        mcnemar(differences), abs=0.02
    )


def test_a_sign_flip_is_the_test_over_all_sets_of_clusters() -> None:
    differences = np.array([0.5, 0.25, 1.0, -0.25, 0.75, 0.5, 1.0])
    sums = [abs(np.dot(signs, differences)) for signs in product((-1, 1), repeat=7)]
    exact = np.mean([s >= abs(differences.sum()) - 1e-9 for s in sums])
    assert stats.sign_flip_test(differences, np.ones(len(differences)), RNG)[2] == pytest.approx(
        exact, abs=0.01
    )


@given(st.lists(st.floats(-1, 1), min_size=6, max_size=40), st.randoms(use_true_random=False))
def test_interval_and_p_never_contradict(values: list[float], random: object) -> None:
    low, high, p = stats.sign_flip_test(
        np.array(values), np.ones(len(values)), stats.random_generator(0, "p"), 999
    )
    assert (low <= 1e-9 and high >= -1e-9) == (p >= stats.LEVEL)


def test_p_has_no_floor() -> None:
    differences = RNG.normal(0.5, 1, 400)
    p = stats.sign_flip_test(differences, np.ones(400), RNG, 999)[2]
    t = differences.sum() / np.sqrt((differences**2).sum())
    assert p < 1e-10
    assert 6 < t < 13
    # but it is not below what all sets of few clusters can give
    assert stats.sign_flip_test(np.ones(14), np.ones(14), RNG, 99)[2] >= 2**-13


def test_holm_multiplies_by_how_many_are_left() -> None:
    assert stats.holm_corrected([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert stats.holm_corrected([]) == []


def test_intervals_that_hold_together_agree_with_their_p() -> None:
    for _ in range(50):
        value = RNG.normal(0, 2, 5)
        draws = np.vstack([value, value + RNG.normal(0, 1, (1999, 5))])
        reach, p = stats.max_t_test(draws)
        assert ((np.abs(value) <= reach) == (p >= stats.LEVEL)).all()


def test_few_clusters_have_wider_intervals_than_their_draws() -> None:
    draws = np.linspace(-1, 1, 2001)
    draws = np.concatenate([[0.0], draws])
    ends = [stats.bootstrap_interval(draws, n)[1] for n in (5, 50, 10**6)]
    assert ends == pytest.approx([0.95 * 5**0.5 / 2 * 2.776 / 1.96, 0.95 * 1.036, 0.95], abs=2e-3)
    # two strata of 25 have one free cluster less than one of 50
    assert stats.interval_widening(50, 2) > stats.interval_widening(50, 1) > 1
    assert np.isinf(stats.interval_widening(3, 3))


def test_centered_intervals_are_shifted_to_their_value() -> None:
    draws = np.concatenate([[0.0], np.linspace(-0.1, 1.9, 2001)])
    low, high = stats.bootstrap_interval(draws, 10**6, centered=True)
    assert (low, high) == pytest.approx((-0.95, 0.95), abs=1e-3)
    never_negative = stats.bootstrap_interval(draws + 0.1, 10**6, centered=True)
    assert never_negative == pytest.approx([0.0, 1.05], abs=1e-3)
    assert np.isnan(stats.bootstrap_interval(np.ones(2001), 50)).all()


def test_student_reach_is_that_of_the_table() -> None:
    known = {1: 12.706, 2: 4.303, 4: 2.776, 10: 2.228, 30: 2.042, 10**6: 1.96}
    assert stats.student_half_width(np.array([*known])) == pytest.approx(
        [*known.values()], abs=2e-3
    )


def test_ranks_of_equal_numbers_are_their_mean() -> None:
    assert stats.ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1, 3.5, 2]


def test_correlations_of_equal_lists_are_not_measured() -> None:
    same, rising = np.ones(4), np.arange(4.0)
    assert stats.pearson(same, rising) is None
    assert stats.kendall_tau_b(same, rising) is None
    assert stats.pearson(rising, -rising) == pytest.approx((-1.0, 0.0), abs=1e-6)
    assert stats.kendall_tau_b(rising, np.array([0.0, 2, 1, 3])) == pytest.approx(2 / 3)


@given(st.lists(st.lists(st.floats(0, 1), min_size=2, max_size=2), min_size=1, max_size=6))
def test_successes_are_those_of_all_outcomes(rates: list[list[float]]) -> None:
    table = np.array(rates)
    exact = np.zeros(len(rates) + 1)
    for way, outcome in product((0, 1), product((0, 1), repeat=len(rates))):
        chance = np.where(outcome, table[:, way], 1 - table[:, way]).prod()
        exact[sum(outcome)] += chance / 2
    assert stats.success_distribution(table) == pytest.approx(exact, abs=1e-9)


def test_sums_of_numbers_are_convolved() -> None:
    coin = np.array([0.5, 0.5])
    assert stats.sum_distribution([coin, coin]) == pytest.approx([0.25, 0.5, 0.25])
