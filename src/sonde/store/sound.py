"""Find answers that hold a number which cannot be one. Knows columns, not what they mean.

Every log-probability is finite: an answer that is not allowed has none (null), and a control gives
what it never saw a small one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from sonde.core.prompts import KEY, Key, called
from sonde.store.blocks import watched_values
from sonde.store.schema import heads_of

LOGPS = ("logps", "suffix_logps", "top_logps", "mass", "text_logps", "end_logp")

SOUND: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(LOGPS, ("a log-probability", np.isfinite)),
    "counts": ("a count", lambda counts: counts > 0),
}
"""By column what its numbers are called, and whether each is one."""


def unsound(table: pa.Table) -> str:
    """What is wrong with the first answer that holds such a number; empty where all are sound."""
    found = []
    for name, (noun, test) in SOUND.items():
        if name in table.column_names:
            bad = _first(table.column(name).combine_chunks(), test)
            found += [] if bad is None else [(bad[0], f"{bad[1]} where {noun} belongs")]
    if "watched_logps" in table.column_names:
        bad = _first_watched(table)
        found += [] if bad is None else [(bad[0], f"{bad[1]} where a log-probability belongs")]
    if not found:
        return ""
    row, told = min(found)
    key = Key(**{name: table.column(name)[row].as_py() for name in KEY})
    prefix, suffix = (table.column(name)[row].as_py() for name in ("prefix", "suffix"))
    return f"{told}, in the answer to {called(key, prefix, suffix)}"


def _first_watched(table: pa.Table) -> tuple[int, str] | None:
    """The first row with a watched name that may be answered and has no number."""
    start = 0
    for head in heads_of(table):
        if head.kind == "filled" and head.names:
            logps, ranks = watched_values(table.slice(start, head.rows), head)
            bad = ~np.isfinite(logps)
            bad &= ranks > 0
            if bad.any():
                row, name = (int(i) for i in np.argwhere(bad)[0])
                return start + row, str(float(logps[row, name])).replace("nan", "NaN")
        start += head.rows
    return None


def _first(column: Any, test: Callable[[Any], Any]) -> tuple[int, str] | None:
    """The first row of a column of numbers, or of lists of them, with one that fails the test."""
    bounds = []
    while pa.types.is_list(column.type):
        ends = column.offsets.to_numpy()
        bounds.append(ends - ends[0])
        column = column.flatten()
    if column.null_count:  # where there is no number there is nothing wrong with it
        values = np.array([1 if value is None else value for value in column.to_pylist()])
    else:
        values = column.to_numpy()
    fine = test(values)
    if fine.all():
        return None
    place = int(fine.argmin())
    told = str(values[place].item()).replace("nan", "NaN")
    for ends in reversed(bounds):
        place = int(np.searchsorted(ends, place, side="right")) - 1
    return place, told
