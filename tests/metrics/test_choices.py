"""Choices between options: what counts as right, as sure, and as mass on the right one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import ModelError
from sonde.core.scores import shares
from sonde.metrics.choices import (
    accuracy,
    accuracy_at,
    accuracy_at_over,
    choose,
    choose_from,
    mass,
)

LOGPS = st.lists(st.floats(-2000, 0), min_size=2, max_size=8)


@given(LOGPS)
def test_shares_are_probabilities_however_small_the_options(logps: list[float]) -> None:
    found = shares(logps)
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()


@given(LOGPS, st.floats(-500, 500))
def test_a_common_factor_changes_no_share(logps: list[float], factor: float) -> None:
    moved = [value + factor for value in logps]
    np.testing.assert_allclose(shares(moved), shares(logps), atol=1e-9)


@given(LOGPS, st.data())
def test_right_means_strictly_likelier_than_every_other(
    logps: list[float], data: st.DataObject
) -> None:
    gold = data.draw(st.integers(0, len(logps) - 1))
    found = choose(logps, gold)
    others = [value for i, value in enumerate(logps) if i != gold]
    assert found.right == all(logps[gold] > value for value in others)
    assert found.rank == 1 + sum(value >= logps[gold] for value in others)
    assert found.tied == (logps.count(max(logps)) > 1)
    assert logps[found.chosen] == max(logps)
    assert found.mass <= found.sure


@given(LOGPS, st.data())
def test_the_order_of_the_options_does_not_matter(logps: list[float], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(logps))))
    one = choose(logps, 0)
    other = choose([logps[i] for i in order], order.index(0))
    assert (one.right, one.rank, one.tied) == (other.right, other.rank, other.tied)
    assert one.mass == pytest.approx(other.mass)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=20))
def test_accuracy_at_zero_is_the_accuracy_and_keeps_everything(
    rows: list[tuple[float, bool]],
) -> None:
    sure, right = (np.array(column) for column in zip(*rows, strict=True))
    found = accuracy_at(sure, right, 0.0)
    assert found.accuracy == pytest.approx(right.mean())
    assert found.retained == 1.0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0, 1), st.floats(0, 1))
def test_a_higher_level_never_keeps_more(values: list[float], one: float, other: float) -> None:
    sure, right = np.array(values), np.zeros(len(values), dtype=np.bool_)
    low, high = sorted((one, other))
    assert accuracy_at(sure, right, high).retained <= accuracy_at(sure, right, low).retained


def test_where_nothing_is_left_there_is_no_accuracy() -> None:
    assert accuracy_at(np.array([0.4]), np.array([True]), 0.5).accuracy is None


def test_a_relation_that_retains_nothing_has_a_share_but_no_accuracy() -> None:
    sure, right = np.array([0.9, 0.9, 0.6, 0.1]), np.array([True, False, True, True])
    found = accuracy_at_over(sure, right, np.array([0, 0, 1, 2]), 0.5)
    assert found.accuracy == pytest.approx((0.5 + 1) / 2)
    assert found.retained == pytest.approx((1 + 1 + 0) / 3)


def test_options_that_are_all_impossible_are_a_tie() -> None:
    found = choose([-np.inf, -np.inf], gold=0)
    assert (found.right, found.tied, found.mass) == (False, True, 0.5)


def test_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(ModelError, match="not a number"):
        choose([-1.0, float("nan")], gold=0)


def test_accuracy_and_mass_are_means_over_choices() -> None:
    choices = [choose_from([0.3, 0.1], gold=0), choose_from([0.3, 0.1], gold=1)]
    assert accuracy(choices) == 0.5
    assert mass(choices) == pytest.approx(0.5)
