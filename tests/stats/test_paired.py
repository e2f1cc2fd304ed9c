"""Paired tests: exact where they say so, and right about chance."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from sonde.stats.paired import mcnemar, sign_flip

OUTCOMES = st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0])), min_size=1)


@given(OUTCOMES)
def test_mcnemar_is_the_binomial_test_of_what_differs(pairs: list[tuple[float, float]]) -> None:
    first, second = np.array(pairs).T
    better, worse = int((first > second).sum()), int((first < second).sum())
    expected = binomtest(better, better + worse).pvalue if better + worse else 1.0
    assert mcnemar(first, second) == pytest.approx(expected)
    assert mcnemar(second, first) == mcnemar(first, second)


def test_flipping_signs_agrees_with_trying_them_all() -> None:
    differences = np.array([0.5, -0.25, 0.75, 0.25, 0.0, 1.0, 0.3])
    sums = [abs(np.dot(signs, differences)) for signs in product((-1, 1), repeat=7)]
    exact = np.mean([s >= abs(differences.sum()) - 1e-12 for s in sums])
    found = sign_flip(differences, np.random.default_rng(0), draws=200_000)
    assert found == pytest.approx(exact, abs=0.005)


def test_flipping_signs_agrees_with_mcnemar_on_outcomes() -> None:
    first, second = np.array([1.0] * 14 + [0.0] * 6), np.array([0.0] * 11 + [1.0] * 9)
    found = sign_flip(first - second, np.random.default_rng(0), draws=200_000)
    assert found == pytest.approx(mcnemar(first, second), abs=0.005)


def test_nothing_that_differs_is_no_evidence() -> None:
    same = np.array([1.0, 0.0, 0.5])
    assert mcnemar(same[:2], same[:2]) == 1.0
    assert sign_flip(same - same, np.random.default_rng(0)) == 1.0


def test_chance_is_called_unlikely_as_often_as_it_should_be() -> None:
    rng = np.random.default_rng(1)
    found = [sign_flip(rng.normal(size=30), rng, draws=400) for _ in range(400)]
    assert np.mean(np.array(found) <= 0.05) == pytest.approx(0.05, abs=0.03)
