"""Correlations: known values, and nothing where nothing can be said."""

from __future__ import annotations

from itertools import combinations
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.stats.correlation import kendall_tau_b

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
@settings(deadline=None)
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
