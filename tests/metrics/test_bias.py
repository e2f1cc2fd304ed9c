"""Bias of templates before they know what is asked."""

from __future__ import annotations

from math import isnan, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sonde.core.reports import Estimate
from sonde.metrics.calibration import bias_level, bias_of, drawn_bias, most_inflated
from sonde.metrics.judged import Floats
from tests.grids import measured

TABLES = st.integers(2, 5).flatmap(
    lambda k: st.integers(1, 5).flatmap(
        lambda n: arrays(np.float64, (n, k), elements=st.floats(0.0, 1.0) | st.just(0.0)).map(
            lambda table: table + np.eye(k)[np.arange(n) % k] * 0.01
        )
    )
)


def bias_over_relations(tables: list[Floats]) -> tuple[Estimate, Estimate]:
    return bias_of(drawn_bias(shares, f"bias:{i}", 0) for i, shares in enumerate(tables))


def test_the_level_is_one_less_the_share_of_the_largest_entropy() -> None:
    entropy = -(0.75 * log(0.75) + 0.25 * log(0.25))
    assert bias_level(np.array([0.75, 0.25, 0.0])) == pytest.approx(1 - entropy / log(3))


@given(TABLES)
def test_levels_are_in_bounds_and_know_no_order(shares: Floats) -> None:
    for row in shares:
        assert 0 <= bias_level(row) <= 1
        assert bias_level(row[::-1]) == pytest.approx(bias_level(row), abs=1e-12)
        assert bias_level(7 * row) == pytest.approx(bias_level(row), abs=1e-12)


@given(TABLES)
def test_many_prompts_are_never_more_biased_than_one(shares: Floats) -> None:
    single, multi = bias_over_relations([shares])
    assert multi.value is not None and single.value is not None
    assert multi.value <= single.value + 1e-9


def test_opposite_templates_cancel() -> None:
    opposite = np.array([[1.0, 0.0], [0.0, 1.0]])
    single, multi = bias_over_relations([opposite])
    assert (single.value, multi.value) == (1.0, 0.0)
    assert most_inflated(opposite).tolist() == [0, 1]


def test_what_a_template_inflates_is_measured_against_the_average() -> None:
    # the first candidate is the likeliest everywhere; only the second template favours the third
    shares = np.array([[0.8, 0.1, 0.1], [0.6, 0.1, 0.3]])
    assert most_inflated(shares).tolist() == [0, 2]


def test_one_candidate_cannot_be_favoured() -> None:
    assert isnan(bias_level(np.array([1.0])))
    single, multi = bias_over_relations([np.ones((3, 1))])
    assert single.value is multi.value is None


def test_chance_preferences_do_not_push_the_interval_off_the_value() -> None:
    tables = list(np.random.default_rng(0).dirichlet(np.full(30, 0.3), (5, 10)))
    _, multi = bias_over_relations(tables)
    low, value, high = measured(multi)
    assert low < 0.9 * value < 1.1 * value < high


@given(st.lists(TABLES, min_size=1, max_size=3))
def test_single_counts_every_template_the_same_and_multi_every_relation(
    tables: list[Floats],
) -> None:
    single, multi = bias_over_relations(tables)
    templates = [bias_level(row) for table in tables for row in table]
    assert single.value == pytest.approx(np.mean(templates))
    evened = [table / table.sum(axis=1, keepdims=True) for table in tables]
    assert multi.value == pytest.approx(np.mean([bias_level(e.mean(axis=0)) for e in evened]))
    assert single.n == multi.n == sum(len(table) for table in tables)
    for estimate in (single, multi) if single.n > len(tables) else ():
        low, value, high = measured(estimate)
        assert -1e-12 <= low <= value <= high <= 1 + 1e-12


def test_the_interval_of_single_weighs_relations_by_their_templates_too() -> None:
    nine = np.random.default_rng(0).dirichlet(np.ones(5), 9)
    alone, _ = bias_over_relations([nine])
    both, _ = bias_over_relations([nine, np.array([[1.0, 0.0]])])
    # the one template of the second relation leans as far as it can, and does not vary
    assert measured(both) == pytest.approx(tuple(0.9 * end + 0.1 for end in measured(alone)))


def test_one_template_per_relation_leaves_no_interval() -> None:
    single, multi = bias_over_relations([np.array([[0.2, 0.8]]), np.array([[0.5, 0.5]])])
    assert single.value == multi.value
    assert (single.low, single.high, single.n) == (None, None, 2)
