"""A grid by relation: every prompt once, whatever order the prompts are in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.metrics.judged import Grid
from tests.grids import grid, grids, shuffled


@given(grids(), st.integers(0, 9), st.booleans())
def test_each_prompt_is_in_the_part_of_its_relation(of: Grid, seed: int, in_order: bool) -> None:
    if in_order:
        order = np.argsort(of.relations, kind="stable")
        places = np.argsort(order)
        rows = [
            (int(places[p]), int(t), 0, True, 0) for p, t in zip(of.pair, of.template, strict=True)
        ]
        of = grid(sorted(rows), of.relations[order].tolist(), of.template_relations.tolist())
    else:
        of = shuffled(of, seed)
    seen: list[int] = []
    for part in of.parts():
        rows_of = np.arange(len(of))[part.rows]
        seen += rows_of.tolist()
        assert (of.relations[part.pairs] == part.relation).all()
        assert (of.template_relations[part.templates] == part.relation).all()
        assert (part.pairs[part.grid.pair] == of.pair[rows_of]).all()
        assert (part.templates[part.grid.template] == of.template[rows_of]).all()
        assert isinstance(part.rows, slice) or not in_order
    assert sorted(seen) == list(range(len(of)))
    firsts = of.of_pairs(lambda part: part.pairs.astype(np.float64))
    assert firsts.tolist() == list(range(len(of.relations)))


def test_a_prompt_of_two_relations_is_refused() -> None:
    with pytest.raises(ValueError, match="a pair of one relation, a template of another"):
        list(grid([(0, 1, 0, True, 0)], [0, 1], [0, 1]).parts())
