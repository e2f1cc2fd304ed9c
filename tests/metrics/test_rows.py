"""Rows of judged prompts, added some at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sonde.metrics.judged import Rows

ROW = st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(-9, 9))


@given(st.lists(st.lists(ROW, max_size=6), max_size=5))
def test_rows_come_in_the_order_of_their_keys_and_of_equal_ones_the_last_counts(
    parts: list[list[tuple[int, int, int]]],
) -> None:
    names = ("pair", "template", "value")
    rows = Rows("pair", "template", kinds=dict.fromkeys(names, np.int32))
    for part in parts:
        columns = np.array(part, dtype=np.int64).reshape(-1, 3).T
        rows.add(dict(zip(names, columns, strict=True)))
    last = {row[:2]: row[2] for part in parts for row in part}
    whole = rows.whole()
    assert [*zip(*(whole[name].tolist() for name in names), strict=True)] == [
        (*key, last[key]) for key in sorted(last)
    ]
