"""Shares of options, and the accuracy of the choices that a model is sure of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.scores import shares
from sonde.metrics.accuracy import accuracy_at, accuracy_at_over

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
