"""Tables from rows and what stands in their columns. Knows estimates by name, no probe.

A column is a metric, whose cell is looked up for each row, or a `Field`, which a row fills itself.
A mere title is a column of text:

    by_relation(estimates, relations, [P1, MAJORITY, ABOVE, UHN.detail()])
    by_place(estimates, {"1-1": "kind.1-1", "all": "mean_over_relations"}, [P1, ABOVE], head="type")
    listing(estimates, [CONSIST, OVERCONF])
    side_by_side(runs, [P1, ABOVE], lambda run, metric: of_run[run][metric.id])
    browse(rows_of_a_frame, ["subject", "prompt", Field("rank", kind="count", help="1 is best")])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from sonde.core.facts import Relation
from sonde.core.fingerprints import draw_key
from sonde.core.reports import (
    Cell,
    Column,
    ColumnKind,
    Estimate,
    Estimates,
    Metric,
    Rows,
    Table,
)

if TYPE_CHECKING:
    from polars import DataFrame

Row = TypeVar("Row")
Look = Callable[[Row, Metric], Cell]
"""Finds the number of a metric that belongs into a row."""


@dataclass(frozen=True)  # with slots, `Field[Relation](…)` could not be written
class Field(Generic[Row]):
    """A column that is no estimate. Without a `cell`, a row is a mapping that has one by the title:
    that of a data frame, say, by `frame.iter_rows(named=True)`. Where rows are numbers, all values
    of the column may be given; nan was not measured."""

    title: str
    cell: Callable[[Row], Cell] | Sequence[Cell] | NDArray[Any] | None = None
    kind: ColumnKind = "text"
    help: str = ""
    detail: bool = False

    @property
    def column(self) -> Column:
        """How a table heads it."""
        return Column(title=self.title, kind=self.kind, help=self.help, detail=self.detail)

    def of(self, row: Row) -> Cell:
        """What a row has in it."""
        if callable(self.cell):
            return self.cell(row)
        if self.cell is not None:
            value = self.cell[cast(int, row)]
            plain: Cell = value.item() if isinstance(value, np.generic) else value
            return measured(plain) if isinstance(plain, float) else plain
        assert isinstance(row, Mapping), f"no cell for the column {self.title!r}"
        found: Cell = row[self.title]
        return found


Fields = Sequence[Metric | Field[Row] | str]

RELATION: tuple[Field[Relation], ...] = (
    Field("relation", lambda r: r.id),
    Field("label", lambda r: r.label),
)
"""How a row says which relation it is of: in two columns, or in one."""
RELATION_IN_ONE: tuple[Field[Relation], ...] = (Field("relation", lambda r: titled(r)),)


def titled(relation: Relation) -> str:
    """A relation as figures and long tables call it."""
    return relation.title


def measured(value: float) -> float | None:
    """A plain number as a cell; what is not a number was not measured."""
    return None if isnan(value) else float(value)


def table(
    rows: Iterable[Row],
    fields: Fields[Row],
    look: Look[Row] | None = None,
    *,
    id: str,
    title: str,
    note: str = "",
    browsable: bool = False,
) -> Table:
    """A row for each thing, a column for each field; `look` finds the numbers of the metrics."""
    columns = [Field[Row](field) if isinstance(field, str) else field for field in fields]

    def cell(row: Row, field: Metric | Field[Row]) -> Cell:
        if isinstance(field, Field):
            return field.of(row)
        assert look is not None, f"nothing finds {field.id} for the table {id}"
        found = look(row, field)
        return found.value if field.bare and isinstance(found, Estimate) else found

    return Table(
        id=id,
        title=title,
        columns=tuple(field.column for field in columns),
        rows=tuple(tuple(cell(row, field) for field in columns) for row in rows),
        note=note,
        browsable=browsable,
    )


def by_relation(
    estimates: Estimates,
    relations: Iterable[Relation],
    fields: Fields[Relation],
    *,
    id: str = "by-relation",
    title: str = "By relation",
    note: str = "",
    head: Sequence[Field[Relation]] = RELATION,
) -> Table:
    """A row per relation."""

    def look(relation: Relation, metric: Metric) -> Estimate:
        return estimates[metric.at(f"relation.{relation.id}")]

    return table(relations, [*head, *fields], look, id=id, title=title, note=note)


def by_place(
    estimates: Estimates,
    places: Mapping[str, str],
    metrics: Sequence[Metric],
    *,
    head: str,
    id: str,
    title: str,
    note: str = "",
) -> Table:
    """A row per place: its label, and the numbers whose names end so."""

    def look(label: str, metric: Metric) -> Estimate:
        return estimates[metric.at(places[label])]

    return side_by_side(places, metrics, look, head=head, id=id, title=title, note=note)


def side_by_side(
    names: Iterable[str],
    fields: Fields[str],
    look: Look[str] | None = None,
    *,
    head: str = "run",
    id: str,
    title: str,
    note: str = "",
) -> Table:
    """A row per name: of a run, an estimator, a task."""
    fields = [Field(head, lambda name: name), *fields]
    return table(names, fields, look, id=id, title=title, note=note)


def across(
    names: Iterable[str],
    cell: Callable[[Row, str], Cell],
    kind: ColumnKind = "percent",
    help: str = "",
    detail: bool = False,
) -> list[Field[Row]]:
    """A column per name, all of one number: every run's accuracy beside each other."""

    def column(name: str) -> Field[Row]:
        return Field(name, lambda row: cell(row, name), kind, help, detail)

    return [column(name) for name in names]


def listing(
    estimates: Estimates,
    metrics: Sequence[Metric],
    over: str = "",
    *,
    head: str = "number",
    value: str = "value",
    id: str,
    title: str,
    note: str = "",
) -> Table:
    """A row per metric: its label, its value, what it means. The column has one unit for all."""
    units = {metric.unit for metric in metrics}
    fields: list[Field[Metric]] = [
        Field(head, lambda metric: metric.label),
        Field(
            value,
            lambda metric: estimates[metric.at(over)],
            units.pop() if len(units) == 1 else "number",
        ),
        Field("meaning", lambda metric: metric.sentence),
    ]
    return table(metrics, fields, id=id, title=title, note=note)


def browse(
    rows: Iterable[Row] | DataFrame | Callable[[], DataFrame],
    fields: Sequence[Field[Row] | str],
    *,
    id: str,
    title: str,
    count: int = 0,
    total: int = 0,
    what: str = "facts",
    note: str = "",
) -> Table:
    """A long table to be searched; it says so where its rows are drawn from a larger total.

    A frame has a column for each field, by its title; nan was not measured. One of `count` rows may
    be made only when they are looked at.
    """
    import polars

    if isinstance(rows, polars.DataFrame):
        count, rows = rows.height, rows.clone
    kept = () if callable(rows) else tuple(rows)
    count = count or len(kept)
    some = f"{count:,} of the {total:,} {what}, drawn by the seed; every number counts them all."
    note = " ".join(part for part in (some if count < total else "", note) if part)
    made = table(kept, fields, id=id, title=title, note=note, browsable=True)
    if not callable(rows):
        return made
    frame, titles = rows, [column.title for column in made.columns]
    return replace(made, rows=Rows(count, lambda: frame().select(titles).fill_nan(None).rows()))


def drawn(ids: Sequence[str], seed: int, most: int) -> list[int]:
    """The places of the rows to show, in order: all, or those that a draw by the seed picks."""
    if len(ids) <= most:
        return list(range(len(ids)))
    keys = np.array([draw_key(seed, id) for id in ids], dtype=np.uint64)
    return sorted(np.argsort(keys, kind="stable")[:most].tolist())
