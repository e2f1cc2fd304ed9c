"""Correlations: known values, and nothing where nothing can be said."""

from __future__ import annotations

from itertools import combinations
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, rankdata, spearmanr

from sonde.stats.correlation import kendall_tau_b, pearson, pearson_by_row, ranks_by_row

PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=8)


def by_definition(a: list[int], b: list[int]) -> float | None:
    """τ-b from every pair of places."""
    signs = [
        (np.sign(a[i] - a[j]), np.sign(b[i] - b[j])) for i, j in combinations(range(len(a)), 2)
    ]
    untied = [sum(s[k] != 0 for s in signs) for k in (0, 1)]
    if not all(untied):
        return None
    return float(sum(x * y for x, y in signs) / sqrt(untied[0] * untied[1]))


@given(PAIRS)
def test_kendall_is_that_of_the_definition(points: list[tuple[int, int]]) -> None:
    a, b = (list(column) for column in zip(*points, strict=True))
    found = kendall_tau_b(np.array(a, dtype=np.float64), np.array(b, dtype=np.float64))
    expected = by_definition(a, b)
    assert found == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("values", [[], [1.0], [2.0, 2.0, 2.0]])
def test_a_constant_goes_with_nothing(values: list[float]) -> None:
    a, b = np.array(values), np.arange(len(values), dtype=np.float64)
    assert kendall_tau_b(a, b) is None


def test_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="3 numbers cannot be paired with 2"):
        kendall_tau_b(np.ones(3), np.ones(2))


def test_pearson_gives_r_and_its_p() -> None:
    a, b = np.array([1.0, 2.0, 3.0, 5.0]), np.array([2.0, 1.0, 4.0, 3.0])
    found = pearson(a, b)
    assert found is not None
    r, p = found
    assert r == pytest.approx(np.corrcoef(a, b)[0, 1])
    # of Student's t with two degrees of freedom
    t = r * sqrt(2 / (1 - r**2))
    assert p == pytest.approx(1 - t / sqrt(2 + t**2))


def test_pearson_needs_three_pairs_that_differ() -> None:
    assert pearson(np.array([1.0, 2.0]), np.array([1.0, 2.0])) is None
    assert pearson(np.array([1.0, 1.0, 1.0]), np.array([1.0, 2.0, 3.0])) is None


@given(PAIRS)
def test_row_by_row_is_one_by_one(pairs: list[tuple[int, int]]) -> None:
    a, b = (np.array(x, dtype=np.float64) for x in zip(*pairs, strict=True))
    rows = pearson_by_row(np.stack([a, b]), np.stack([b, b]))
    alone = pearson(a, b)
    if alone is not None:
        assert rows[0] == pytest.approx(alone[0])
    ranked = pearson_by_row(ranks_by_row(a[None]), ranks_by_row(b[None]))[0]
    varied = np.ptp(a) > 0 and np.ptp(b) > 0
    assert varied != bool(np.isnan(ranked))
    if varied:
        assert ranked == pytest.approx(spearmanr(a, b).statistic)


TABLES = st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=1, max_size=9)


@given(TABLES)
def test_ranks_are_scipy_s(rows: list[list[int]]) -> None:
    table = np.array(rows, dtype=np.float64)
    assert np.array_equal(ranks_by_row(table), rankdata(table, axis=1))
    assert np.array_equal(ranks_by_row(table.T), rankdata(table.T, axis=1))


@given(PAIRS)
def test_pearson_is_scipy_s(pairs: list[tuple[int, int]]) -> None:
    a, b = (np.array(x, dtype=np.float64) for x in zip(*pairs, strict=True))
    if (found := pearson(a, b)) is not None:
        r, p = pearsonr(a, b)
        assert found[0] == pytest.approx(r, abs=1e-9)
        assert found[1] == pytest.approx(p, abs=1e-7)  # of three pairs, the last bit of r near 1
