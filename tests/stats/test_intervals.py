"""Intervals cover what they claim and never point the wrong way."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from scipy.stats import t as student

from sonde.stats.intervals import (
    Floats,
    clustered_means,
    paired_difference,
    percentile_interval,
    resampled_means,
    unvaried_difference,
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


def means(values: list[float] | Floats, seed: int, draws: int) -> Floats:
    """Resampled means of values that stand each for itself."""
    group = np.array(values)
    return resampled_means(group, np.ones(len(group)), np.random.default_rng(seed), draws)


@pytest.mark.parametrize(
    "values",
    [[0.0, 1.0] * 200, np.linspace(0, 1, 300), np.tile(np.linspace(0, 1, 100), 120)],
    ids=["few kinds", "all distinct", "many of many kinds"],
)
def test_the_bootstrap_has_the_spread_that_theory_gives(values: list[float] | Floats) -> None:
    group = np.array(values)
    drawn = means(group, seed=1, draws=20_000)
    assert abs(drawn.mean() - group.mean()) < 0.002
    assert abs(drawn.std() - group.std() / np.sqrt(len(group))) < 0.0005


def test_values_that_always_come_together_count_as_one() -> None:
    """Ten copies of each of forty values say no more than the forty."""
    values = np.random.default_rng(0).random(40)
    rng = np.random.default_rng(1)
    copied = resampled_means(10 * values, np.full(40, 10.0), rng, 20_000)
    assert abs(copied.std() - values.std() / np.sqrt(40)) < 0.001
    assert copied.std() > 2.5 * means(np.repeat(values, 10), seed=1, draws=20_000).std()


def test_the_interval_covers_the_truth_about_95_times_in_100() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for i in range(400):
        groups = [rng.binomial(1, p, 60).astype(float) for p in (0.2, 0.5, 0.9)]
        drawn = sum(means(group, seed=3 * i + j, draws=500) for j, group in enumerate(groups)) / 3
        low, high = percentile_interval(np.asarray(drawn))
        covered += low <= (0.2 + 0.5 + 0.9) / 3 <= high
    assert 0.90 <= covered / 400 <= 0.985


@given(st.lists(st.floats(0, 1), min_size=1, max_size=90))
def test_draws_stay_within_the_values(values: list[float]) -> None:
    drawn = means(values, seed=0, draws=50)
    assert drawn.min() >= min(values) - 1e-12
    assert drawn.max() <= max(values) + 1e-12


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


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_trials_that_agree_on_everything_may_differ_on_others(outcomes: list[bool]) -> None:
    same = np.array(outcomes, dtype=float)
    _, high = wilson(0, len(same))
    assert paired_difference(same, same) == pytest.approx((-high, high))


@given(st.floats(-1, 1), st.integers(1, 500))
def test_a_difference_that_is_the_same_in_every_trial_has_a_width(gap: float, n: int) -> None:
    low, high = unvaried_difference(gap, n)
    assert low < gap + 1e-12 and gap - 1e-12 < high and high - low > 1e-3
    assert unvaried_difference(-gap, n) == pytest.approx((-high, -low))


def test_two_wins_in_twelve_do_not_make_a_difference() -> None:
    wins = np.array([1.0, 1.0] + [0.0] * 10)
    assert paired_difference(wins, np.zeros(12))[0] < 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.floats(-1, 1)), min_size=1))
def test_means_of_many_groups_are_those_of_each(rows: list[tuple[int, int, float]]) -> None:
    groups, clusters, values = (np.array(column) for column in zip(*rows, strict=True))
    for number, mean, reach, n in zip(*clustered_means(values, clusters, groups), strict=True):
        own, of = values[groups == number], clusters[groups == number]
        assert n == len(own)
        assert mean == pytest.approx(own.mean(), abs=1e-12)
        off = [float((own[of == cluster] - own.mean()).sum()) for cluster in np.unique(of)]
        if len(off) == 1:
            assert reach == inf
        else:
            spread = sqrt(sum(o * o for o in off) * len(off) / (len(off) - 1)) / n
            assert reach == pytest.approx(student.ppf(0.975, len(off) - 1) * spread, abs=1e-9)
