"""Trends beside their literal definitions: ranks by scipy, draws one fact after the other."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import rankdata, spearmanr

from sonde.core.fingerprints import draw_key
from sonde.core.words import told_apart
from sonde.metrics.trends import by_decades, permuted, trend
from sonde.stats.intervals import DRAWS, times_drawn

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def world(seed: int, facts: int = 60) -> tuple[Floats, Floats, Ints, Ints]:
    """Numbers, values, relations and clusters; a cluster is in one relation."""
    rng = np.random.default_rng(seed)
    clusters = rng.integers(0, facts // 2, facts)
    numbers = np.round(10 ** rng.uniform(0, 4, facts), 1)
    values = (rng.random(facts) < np.log10(numbers) / 5).astype(np.float64)
    return numbers, values, clusters % 3, clusters


def resampled(relations: Ints, clusters: Ints, draw: int, seed: int) -> Ints:
    """The facts of a draw, each as often as its cluster was drawn."""
    rows: list[int] = []
    for number in np.unique(relations).tolist():
        own = np.unique(clusters[relations == number])
        rng = np.random.default_rng(draw_key(seed, f"trend:{number}"))
        times = np.concatenate(list(times_drawn(len(own), rng, DRAWS)))[draw]
        for cluster, often in zip(own.tolist(), times.tolist(), strict=True):
            rows += np.flatnonzero(clusters == cluster).tolist() * often
    return np.array(rows)


def slope(numbers: Floats, values: Floats, relations: Ints) -> float:
    """Least squares with a level for each relation."""
    levels = (relations[:, None] == np.unique(relations)).astype(np.float64)
    table = np.column_stack([np.log10(numbers), levels])
    return float(np.linalg.lstsq(table, values, rcond=None)[0][0])


@pytest.mark.parametrize("seed", range(3))
def test_values_are_those_of_the_definitions(seed: int) -> None:
    numbers, values, relations, clusters = world(seed)
    found = trend(numbers, values, relations, clusters, seed)
    assert found.overall.value == pytest.approx(spearmanr(numbers, values).statistic)
    assert found.slope.value == pytest.approx(slope(numbers, values, relations))
    sides = [np.empty(len(numbers)), np.empty(len(numbers))]
    for number in range(3):
        at = relations == number
        for side, given in zip(sides, (numbers, values), strict=True):
            ranks = rankdata(given[at]) / at.sum()
            side[at] = ranks - ranks.mean()
    within = (sides[0] @ sides[1]) / np.sqrt((sides[0] @ sides[0]) * (sides[1] @ sides[1]))
    assert found.within.value == pytest.approx(within)


def test_intervals_are_those_of_literal_draws() -> None:
    numbers, values, relations, clusters = world(0)
    found = trend(numbers, values, relations, clusters, 7)
    ranks = rankdata(numbers), rankdata(values)
    overall, slopes = [], []
    for draw in range(DRAWS):
        rows = resampled(relations, clusters, draw, 7)
        overall.append(np.corrcoef(ranks[0][rows], ranks[1][rows])[0, 1])
        slopes.append(slope(numbers[rows], values[rows], relations[rows]) if draw < 50 else np.nan)
    assert (found.overall.low, found.overall.high) == pytest.approx(
        tuple(np.quantile(overall, [0.025, 0.975]))
    )
    assert found.slope.low is not None and found.slope.high is not None
    inside = [found.slope.low <= value <= found.slope.high for value in slopes[:50]]
    assert sum(inside) >= 44


def test_one_relation_has_the_same_trend_within_as_overall() -> None:
    numbers, values, relations, clusters = world(1)
    found = trend(numbers, values, np.zeros_like(relations), clusters, 0)
    assert found.within.value == pytest.approx(found.overall.value)


def test_what_does_not_vary_has_no_trend() -> None:
    numbers, values, relations, clusters = world(2)
    same = trend(numbers, np.ones_like(values), relations, clusters, 0)
    assert same.overall.value is None and same.within.value is None
    assert same.slope.value == 0.0
    level = trend(np.full_like(numbers, 3.0), values, relations, clusters, 0)
    assert level.overall.value is None and level.slope.value is None


def dealt(numbers: Floats, strata: Ints, clusters: Ints) -> list[Floats]:
    """The numbers in every order: clusters of one stratum and one size change places."""
    alike: dict[tuple[int, int], list[Ints]] = {}
    for cluster in np.unique(clusters).tolist():
        rows = np.flatnonzero(clusters == cluster)
        alike.setdefault((int(strata[rows[0]]), len(rows)), []).append(rows)
    every = []
    for orders in product(*(permutations(group) for group in alike.values())):
        moved = numbers.copy()
        for group, order in zip(alike.values(), orders, strict=True):
            for rows, taken in zip(group, order, strict=True):
                moved[rows] = numbers[taken]
        every.append(moved)
    return every


@pytest.mark.parametrize("seed", range(4))
def test_p_is_the_share_of_all_orders_with_as_strong_a_trend(seed: int) -> None:
    rng = np.random.default_rng(seed)
    clusters = np.array([0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9])
    strata = np.where(clusters > 5, 1, 0)
    numbers, values = rankdata(rng.integers(0, 9, 13)), (rng.random(13) < 0.5).astype(np.float64)
    level = np.array([values[strata == number].mean() for number in (0, 1)])[strata]
    sums = np.abs([moved @ (values - level) for moved in dealt(numbers, strata, clusters)])
    exact = (sums >= sums[0] - 1e-9).mean()
    assert permuted([(numbers, values)], strata, clusters, seed)[0] == pytest.approx(
        exact, abs=0.04
    )


@pytest.mark.parametrize(("facts", "right", "low"), [(40, 0.05, 0), (20, 0.5, 1)])
def test_trends_that_are_not_there_are_rarely_claimed(facts: int, right: float, low: int) -> None:
    rng = np.random.default_rng(0)
    claimed = []
    for seed in range(100):
        numbers = 10 ** rng.uniform(0, 5, facts)
        if low:  # all others are equal
            numbers = np.where(np.arange(facts) < low, 1.0, 2.0)
        values = (rng.random(facts) < right).astype(np.float64)
        found = trend(numbers, values, np.zeros(facts, dtype=np.int64), np.arange(facts), seed)
        claimed.append([told_apart(found.overall), told_apart(found.slope)])
    assert np.mean(claimed, axis=0).max() <= 0.08


def test_five_in_a_hundred_tests_of_nothing_are_below_the_level() -> None:
    rng = np.random.default_rng(0)
    alone, strata = np.arange(40), np.zeros(40, dtype=np.int64)
    columns = [(rng.random(40), rng.integers(0, 2, 40).astype(np.float64)) for _ in range(500)]
    ps = [permuted([pair], strata, alone, seed)[0] for seed, pair in enumerate(columns)]
    assert 0.02 < np.mean(np.array(ps) < 0.05) < 0.08


def test_trends_of_subjects_with_several_facts_are_rarely_claimed() -> None:
    rng = np.random.default_rng(1)
    claimed = []
    for seed in range(100):
        clusters = rng.integers(0, 20, 60)
        popular, known = 10 ** rng.uniform(0, 4, 20), (rng.random(20) < 0.4).astype(np.float64)
        found = trend(popular[clusters], known[clusters], clusters % 2, clusters, seed)
        claimed.append(told_apart(found.within))
    assert np.mean(claimed) <= 0.08


def test_a_trend_that_is_there_is_told() -> None:
    numbers, values, relations, clusters = world(0, 120)
    found = trend(numbers, values, relations, clusters, 0)
    assert all(
        told_apart(each) and each.p is not None and each.p < 0.01
        for each in (found.overall, found.within, found.slope)
    )


def test_draws_in_which_nothing_varies_have_no_trend() -> None:
    numbers, relations = np.arange(30.0), np.zeros(30, dtype=np.int64)
    found = trend(numbers, (numbers > 27).astype(np.float64), relations, np.arange(30), 0)
    assert found.overall.p is not None and found.overall.p < 0.05
    assert found.overall.low == 0.0  # one draw of eight has neither of the two that are right


def test_numbers_that_span_powers_of_ten_are_taken_so() -> None:
    assert by_decades(np.array([1.0, 100.0])) and not by_decades(np.array([1.0, 99.0]))
    assert not by_decades(np.array([0.0, 1000.0]))
