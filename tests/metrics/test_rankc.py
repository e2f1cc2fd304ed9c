"""RankC: as it is defined, and of many rows at once."""

from __future__ import annotations

from itertools import permutations
from math import exp, isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sonde.metrics.ranking import consistencies, consistency

Table = NDArray[np.float64]


@st.composite
def tables(draw: st.DrawFn) -> tuple[Table, Table, NDArray[np.bool_], tuple[Table, Table]]:
    """Two tables of values, some equal, which of them count, and orders for equal ones."""
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 9))
    seed = np.random.default_rng(draw(st.integers(0, 10_000)))
    one, other = (seed.integers(0, 6, size=(rows, columns)).astype(float) for _ in range(2))
    ties = seed.permutation(columns).astype(float), seed.permutation(columns).astype(float)
    return one, other, seed.random((rows, columns)) < 0.8, ties


def ranking(values: Table, counted: NDArray[np.bool_], ties: Table) -> list[int]:
    """The candidates that count, the best first."""
    places = [i for i in range(len(values)) if counted[i]]
    return sorted(places, key=lambda i: (-values[i], ties[i]))


@given(tables())
def test_many_rows_at_once_are_as_each_is_defined(
    given: tuple[Table, Table, NDArray[np.bool_], tuple[Table, Table]],
) -> None:
    one, other, counted, ties = given
    found = consistencies(one, other, counted, ties)
    for row, value in enumerate(found):
        first = ranking(one[row], counted[row], ties[0])
        second = ranking(other[row], counted[row], ties[1])
        if len(first) < 2:
            assert isnan(value)
        else:
            assert value == pytest.approx(consistency(first, second), abs=1e-12)


@given(tables())
def test_it_is_symmetric_and_lies_between_none_and_all(
    given: tuple[Table, Table, NDArray[np.bool_], tuple[Table, Table]],
) -> None:
    one, other, counted, (first, second) = given
    found = consistencies(one, other, counted, (first, second))
    turned = consistencies(other, one, counted, (second, first))
    np.testing.assert_allclose(found, turned, atol=1e-12)
    assert all(0 < value <= 1 + 1e-12 for value in found if not isnan(value))


@given(st.integers(2, 60))
def test_a_ranking_is_like_itself(n: int) -> None:
    assert consistency(range(n), range(n)) == pytest.approx(1.0, abs=1e-12)
    values, every = np.arange(n, dtype=float)[None, :], np.ones((1, n), dtype=np.bool_)
    ties = np.zeros(n), np.zeros(n)
    assert consistencies(values, values, every, ties)[0] == pytest.approx(1.0, abs=1e-12)


def test_weights_are_those_of_the_paper() -> None:
    # of three, first and second changed places: nothing is shared at 1, all from 2 on
    weights = [exp(3 - j) for j in (1, 2, 3)]
    assert consistency("abc", "bac") == pytest.approx(sum(weights[1:]) / sum(weights))
    # second and third changed: half is shared at 2
    expected = (weights[0] + weights[1] / 2 + weights[2]) / sum(weights)
    assert consistency("abc", "acb") == pytest.approx(expected)


def test_no_other_ranking_is_as_like_one_as_itself_and_the_first_ranks_weigh_most() -> None:
    values = {order: consistency("abcd", order) for order in permutations("abcd")}
    assert max(values, key=lambda order: values[order]) == tuple("abcd")
    assert values[tuple("bacd")] < values[tuple("acbd")] < values[tuple("abdc")] < 1


def test_unrelated_rankings_share_as_much_as_chance_has_it() -> None:
    weights = [exp(5 - j) for j in range(1, 6)]
    chance = sum(w * j / 5 for j, w in enumerate(weights, 1)) / sum(weights)
    values = [consistency("abcde", order) for order in permutations("abcde")]
    assert sum(values) / len(values) == pytest.approx(chance)
