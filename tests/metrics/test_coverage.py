"""Coverage: what some prompt and the best prompt know."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.metrics.accuracy import known
from sonde.metrics.judged import Grid
from tests.grids import acc_at_1, coverage, grid, grids, measured, one_relation, shuffled


def test_the_four_shares_of_a_small_world() -> None:
    # template 0 is right for the first pair; template 1, by one of its names, for both others
    of = one_relation([[[0, 0], [1, 1]], [[1, 1], [0, 1]], [[1], [0]], [[1], [1]]])
    found = coverage(of)
    assert found.average.value == pytest.approx((0.5 + 0.25 + 0.5 + 0) / 4)
    assert found.average_best_name.value == pytest.approx((0.5 + 0.5 + 0.5 + 0) / 4)
    assert found.maximum.value == 2 / 4
    assert found.oracle.value == 3 / 4
    assert found.oracle.n == 4


@given(grids(complete=True))
def test_each_share_is_as_large_as_the_one_before(of: Grid) -> None:
    found = coverage(of)
    order = (found.average, found.average_best_name, found.maximum, found.oracle)
    for one, next_one in pairwise(order):
        assert measured(one)[1] <= measured(next_one)[1] + 1e-9
    for estimate in order:
        low, value, high = measured(estimate)
        assert 0 <= low <= value <= high <= 1
    assert found.average == acc_at_1(of)


@given(grids())
def test_the_oracle_is_the_share_of_pairs_with_a_right_prompt(of: Grid) -> None:
    asked = set(of.pair.tolist())
    right = set(of.pair[of.right].tolist())
    expected = len(right) / len(asked) if asked else None
    assert coverage(of).oracle.value == (None if expected is None else pytest.approx(expected))


def test_the_best_template_is_chosen_for_each_relation() -> None:
    rows = [(0, 0, 0, True, 0), (0, 1, 0, False, 1), (1, 2, 0, False, 1), (1, 3, 0, True, 0)]
    assert coverage(grid(rows, [0, 1], [0, 0, 1, 1])).maximum.value == 1


@given(grids(), st.integers(0, 9))
def test_the_order_of_prompts_does_not_matter(of: Grid, seed: int) -> None:
    assert coverage(of) == coverage(shuffled(of, seed))


@given(grids())
def test_a_cell_is_known_where_some_name_is_right(of: Grid) -> None:
    cells: dict[tuple[int, int], bool] = {}
    for template, pair, right in zip(of.template, of.pair, of.right, strict=True):
        cell = (int(template), int(pair))
        cells[cell] = cells.get(cell, False) or bool(right)
    templates, pairs, right = known(of)
    found = zip(templates.tolist(), pairs.tolist(), right.tolist(), strict=True)
    assert {(t, p): r for t, p, r in found} == cells
    assert len(right) == len(cells)
