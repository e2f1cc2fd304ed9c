"""Intervals cover what they claim and never point the wrong way."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from sonde.stats.intervals import (
    paired_difference,
    percentile_interval,
    resampled_means,
    wilson,
)


@given(n=st.integers(1, 5000), data=st.data())
def test_wilson_equals_scipys(n: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, n))
    theirs = binomtest(successes, n).proportion_ci(0.95, method="wilson")
    low, high = wilson(successes, n)
    assert abs(low - theirs.low) < 1e-9
    assert abs(high - theirs.high) < 1e-9
    assert low <= successes / n <= high


def test_the_bootstrap_has_the_spread_that_theory_gives() -> None:
    values = np.array([0.0, 1.0] * 200)
    other = np.linspace(0, 1, 300)
    draws = resampled_means([values, other], seed=1, draws=20_000)
    for column, group in zip(draws.T, (values, other), strict=True):
        assert abs(column.mean() - group.mean()) < 0.002
        assert abs(column.std() - group.std() / np.sqrt(len(group))) < 0.0005


def test_the_interval_covers_the_truth_about_95_times_in_100() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for i in range(400):
        groups = [rng.binomial(1, p, 60).astype(float) for p in (0.2, 0.5, 0.9)]
        low, high = percentile_interval(resampled_means(groups, seed=i, draws=500).mean(axis=1))
        covered += low <= (0.2 + 0.5 + 0.9) / 3 <= high
    assert 0.90 <= covered / 400 <= 0.985


@settings(max_examples=30)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.integers(0, 5))
def test_a_group_keeps_its_draws_when_others_follow(values: list[float], seed: int) -> None:
    group = np.array(values)
    alone = resampled_means([group], seed, draws=50)
    among = resampled_means([group, group[::-1].copy()], seed, draws=50)
    assert np.array_equal(alone[:, 0], among[:, 0])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_draws_stay_within_the_values(values: list[float]) -> None:
    draws = resampled_means([np.array(values)], seed=0, draws=50)
    assert draws.min() >= min(values) - 1e-12
    assert draws.max() <= max(values) + 1e-12


def test_the_paired_interval_covers_the_truth_about_95_times_in_100() -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(2000):
        both = rng.random(40)
        first, second = (both < 0.5).astype(float), ((both < 0.2) | (both > 0.9)).astype(float)
        low, high = paired_difference(first, second)
        covered += low <= 0.5 - 0.3 <= high
    assert 0.93 <= covered / 2000 <= 0.985


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_the_paired_interval_holds_the_difference_and_turns_with_it(
    trials: list[tuple[bool, bool]],
) -> None:
    first, second = (np.array(column, dtype=float) for column in zip(*trials, strict=True))
    low, high = paired_difference(first, second)
    assert low - 1e-9 <= first.mean() - second.mean() <= high + 1e-9
    back = paired_difference(second, first)
    assert abs(low + back[1]) < 1e-9
    assert abs(high + back[0]) < 1e-9


def test_two_wins_in_twelve_do_not_make_a_difference() -> None:
    wins = np.array([1.0, 1.0] + [0.0] * 10)
    assert paired_difference(wins, np.zeros(12))[0] < 0
