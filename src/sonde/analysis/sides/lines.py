"""Numbers that several reports share, taken out of headlines and tables. Knows reports, no probe.

A line is what a row is called, which number of it is meant, and that number in each report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sonde.core.reports import Cell, Column, Estimate, Headline, Report, Table
from sonde.reporting.catalogue import UNITS

NUMBERS = ("percent", "points", "number")
CONTROL = "…"
"""What the name of a control begins with, under the number that it is held against."""

Row = tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A number in every report; `row` says what it is of, in as many cells as there are heads."""

    row: Row
    number: str
    cells: Row

    @property
    def measured(self) -> bool:
        """Whether some report has it."""
        values = (cell.value if isinstance(cell, Estimate) else cell for cell in self.cells)
        return any(value is not None for value in values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Lines of one unit under their heads; `likeness` is a column whose cells look like theirs."""

    id: str
    title: str
    note: str
    heads: tuple[Column, ...]
    likeness: Column
    lines: tuple[Line, ...]

    @property
    def numbers(self) -> list[str]:
        """Which numbers the lines are."""
        return list(dict.fromkeys(line.number for line in self.lines))

    def of(self, numbers: Sequence[str]) -> Lines:
        """Those of some numbers."""
        return replace(self, lines=tuple(line for line in self.lines if line.number in numbers))


def shared_headlines(reports: Sequence[Report]) -> list[Headline]:
    """The headlines of the first report whose number all reports have."""
    return [h for h in reports[0].headlines if all(h.estimate in r.estimates for r in reports)]


def headline_lines(reports: Sequence[Report]) -> Iterator[Lines]:
    """Every headline with its controls under it, the units apart."""
    shared = shared_headlines(reports)
    kinds = list(dict.fromkeys(headline.kind for headline in shared))
    for kind in kinds:
        labels = _labels([headline for headline in shared if headline.kind == kind])
        yield Lines(
            **_named("headlines", "Headline numbers", kind, kinds),
            note="",
            heads=(Column(title="number"),),
            likeness=Column(title="", kind=kind),
            lines=tuple(
                Line(row=(label,), number="", cells=tuple(r.estimates.get(name) for r in reports))
                for label, name in labels.items()
            ),
        )


def _labels(headlines: Sequence[Headline]) -> dict[str, str]:
    """The names of numbers by what they are called: each headline, then what it is held against,
    which also says of what where that would be told twice."""
    controls: dict[str, dict[str, str]] = {h.estimate: {} for h in headlines}
    used: dict[str, str] = {}
    for headline in headlines:
        if headline.control:
            label = f"{CONTROL} {headline.control_label or 'control'}"
            if used.setdefault(label, headline.control) != headline.control:
                label = f"{label} ({headline.label})"
            controls[headline.estimate][label] = headline.control
    named = {headline.estimate: headline.label for headline in reversed(headlines)}
    return {
        label: name
        for estimate, own in controls.items()
        for label, name in ({named[estimate]: estimate} | own).items()
    }


def _named(id: str, title: str, kind: str, kinds: Sequence[str]) -> dict[str, str]:
    """What lines of one unit are called."""
    return {
        "id": id if kind == kinds[0] else f"{id}-{kind}",
        "title": f"{title}: {UNITS[kind]}s" if len(kinds) > 1 else title,
    }


def shared_tables(reports: Sequence[Report]) -> Iterator[list[Table]]:
    """Every table that two reports have, but for those to be searched; in one that lacks it nothing
    was measured."""
    every = [{table.id: table for table in report.tables} for report in reports]
    for id in dict.fromkeys(id for tables in every for id in tables):
        found = [tables[id] for tables in every if id in tables]
        if len(found) > 1 and not found[0].browsable and not _numbered(found):
            yield [tables.get(id) or _blank(found[0]) for tables in every]


def _numbered(tables: Sequence[Table]) -> bool:
    """Whether rows have numbers for names and estimate nothing, as bins do and places in a text:
    the fifth row of one run has nothing to do with that of another."""
    cells = (cell for table in tables for row in table.rows for cell in row)
    return tables[0].columns[0].kind == "count" and not any(isinstance(c, Estimate) for c in cells)


def _blank(table: Table) -> Table:
    """The table with nothing but what its rows are called."""
    width = heads(table)
    rows = ((*row[:width], *(None for _ in row[width:])) for row in table.rows)
    return replace(table, rows=tuple(rows))


def table_lines(tables: Sequence[Table]) -> Iterator[Lines]:
    """The numbers of a table that all reports have, the units apart."""
    first, rows = tables[0], common_rows(tables)
    numbers = [column for column in common_columns(tables) if not column.detail] if rows else []
    kinds = list(dict.fromkeys(column.kind for column in numbers))
    for kind in kinds:
        own = [column for column in numbers if column.kind == kind]
        lines = tuple(_lines(tables, rows, own))
        if lines:
            yield Lines(
                **_named(first.id, first.title, kind, kinds),
                note=first.note,
                heads=first.columns[: heads(first)],
                likeness=own[0],
                lines=lines,
            )


def _lines(tables: Sequence[Table], rows: Rows, columns: Sequence[Column]) -> Iterator[Line]:
    """Number by number, a line for each row that some report has it in."""
    for column in columns:
        places = [place(table, column) for table in tables]
        for row in rows[0]:
            cells = (own[row][at] for own, at in zip(rows, places, strict=True))
            line = Line(row=row, number=column.title, cells=tuple(cells))
            if line.measured:
                yield line


def heads(table: Table) -> int:
    """How many columns say what a row is: the first, and texts right after it."""
    others = [i for i, column in enumerate(table.columns) if i and column.kind != "text"]
    return others[0] if others else len(table.columns)


Rows = Sequence[Mapping[Row, Row]]
"""Of each table the rows that all have, by what they are called, in the order of the first."""


def common_rows(tables: Sequence[Table]) -> Rows:
    """The rows that tables have in common; none where most differ, or a name stands there twice."""
    width = heads(tables[0])
    every = [{row[:width]: row for row in table.rows} for table in tables]
    shared = [row for row in every[0] if all(row in other for other in every)]
    alike = all(
        table.columns[:width] == tables[0].columns[:width]
        and len(rows) == len(table.rows) <= 2 * len(shared)
        for table, rows in zip(tables, every, strict=True)
    )
    found = [row for row in shared if alike and not _given(row, every)]
    return [{row: rows[row] for row in found} for rows in every] if found else []


def _given(row: Row, every: Rows) -> bool:
    """Whether a row is the same in all reports and estimated in none, as what always True gives."""
    cells = every[0][row]
    estimated = any(isinstance(cell, Estimate) for cell in cells)
    numbers = any(isinstance(cell, float) for cell in cells)
    return numbers and not estimated and all(own[row] == cells for own in every)


def common_columns(tables: Sequence[Table]) -> list[Column]:
    """The columns of numbers that all tables have."""
    titles = [{(column.title, column.kind) for column in table.columns} for table in tables]
    return [
        column
        for column in tables[0].columns
        if column.kind in NUMBERS and all((column.title, column.kind) in own for own in titles)
    ]


def place(table: Table, column: Column) -> int:
    """Where a table has a column."""
    titles = [(other.title, other.kind) for other in table.columns]
    return titles.index((column.title, column.kind))
