"""Trends beside their literal definitions: ranks by scipy, draws one fact after the other."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import rankdata, spearmanr

from sonde.core.fingerprints import draw_key
from sonde.metrics.trends import by_decades, trend
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


def test_numbers_that_span_powers_of_ten_are_taken_so() -> None:
    assert by_decades(np.array([1.0, 100.0])) and not by_decades(np.array([1.0, 99.0]))
    assert not by_decades(np.array([0.0, 1000.0]))
