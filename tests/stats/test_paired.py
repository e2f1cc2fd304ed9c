"""Paired tests: exact where they say so, and right about chance."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, fisher_exact

from sonde.stats.paired import holm, mcnemar, shuffled, sign_flip, swapped

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


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_s_correction_keeps_the_order_and_never_makes_smaller(found: list[float]) -> None:
    made = holm(found)
    assert all(p <= q <= 1 for p, q in zip(found, made, strict=True))
    assert [made[i] for i in np.argsort(found, kind="stable")] == sorted(made)
    assert not found or min(made) == pytest.approx(min(1.0, len(found) * min(found)))


def test_among_equals_one_is_seldom_called_better_after_the_correction() -> None:
    rng = np.random.default_rng(0)
    best = [min(holm(rng.random(9).tolist())) for _ in range(2000)]
    assert np.mean(np.array(best) < 0.05) == pytest.approx(0.05, abs=0.015)


def test_swapping_agrees_with_flipping_signs_where_the_whole_is_the_same() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.random((2, 12))
    flipped = sign_flip(first - second, np.random.default_rng(1), draws=50_000)
    tables = (np.column_stack([own, np.ones(12)]) for own in (first, second))
    one, other = ([table] for table in tables)
    assert swapped(one, other, np.random.default_rng(2), 50_000) == pytest.approx(flipped, abs=0.01)


def test_equal_ratios_are_seldom_told_apart_however_few_things_there_are() -> None:
    rng = np.random.default_rng(3)
    found = []
    for _ in range(300):
        tables = rng.random((2, 2, 4, 2)) + 0.2
        found.append(swapped(list(tables[0]), list(tables[1]), rng, draws=200))
    assert np.mean(np.array(found) < 0.05) < 0.08


def test_shuffling_two_samples_agrees_with_fisher_s_exact_test() -> None:
    first, second = np.array([1.0] * 9 + [0.0] * 3), np.array([1.0] * 4 + [0.0] * 10)
    exact = fisher_exact([[9, 3], [4, 10]]).pvalue
    assert shuffled(first, second, np.random.default_rng(0), 100_000) == pytest.approx(
        exact, abs=0.005
    )


def test_three_things_all_unlike_three_others_are_no_proof() -> None:
    assert shuffled(np.ones(3), np.zeros(3), np.random.default_rng(0)) == pytest.approx(
        0.1, abs=0.01
    )
