"""Which parts of a report have something to show. Knows tables, figures and sentences alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeVar

from sonde.core.reports import (
    Boxes,
    Cell,
    Curves,
    Estimate,
    Figure,
    HeatMap,
    HeatStrip,
    Histogram,
    Labelled,
    Strip,
    Table,
)

Part = TypeVar("Part", bound=Table | Figure | str)


def shown(parts: Iterable[Part | None]) -> tuple[Part, ...]:
    """The parts with content: no empty table, no figure of nothing measured, no empty words."""
    return tuple(part for part in parts if part is not None and has_content(part))


def has_content(part: Table | Figure | str) -> bool:
    """Whether there is anything to see."""
    match part:
        case Table():
            return _has_numbers(part)
        case Labelled():
            return any(_measured(value) for series in part.series for value in series.values)
        case Curves():
            return any(curve.x for curve in part.curves)
        case Histogram():
            return any(part.counts)
        case Strip() | Boxes():
            return any(part.values)
        case HeatMap():
            return any(_measured(value) for row in part.values for value in row)
        case HeatStrip():
            return bool(part.rows)
        case str():
            return bool(part)


def _has_numbers(table: Table) -> bool:
    """Whether a row has a number, where columns are for such; any row will do where none is."""
    numbers = [i for i, column in enumerate(table.columns) if column.kind in ("percent", "number")]
    if not numbers or table.browsable:
        return bool(table.rows)
    return any(_measured(row[i]) for row in table.rows for i in numbers)


def _measured(cell: Cell) -> bool:
    value = cell.value if isinstance(cell, Estimate) else cell
    return value is not None and not (isinstance(value, float) and math.isnan(value))
