"""Reports of cards, labs and attributions as reports: until those packages build theirs directly.

`to_report(report)` turns a `core.reports.Report` into a `reports.model.Report`; the rest builds
tables and figures of the former from estimates by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import polars as pl
from numpy.typing import NDArray

from sonde.core import reports as old
from sonde.core.facts import Relation
from sonde.core.reports import Column, ColumnKind, Estimate, Estimates, Metric, Table
from sonde.evaluation.layout import Exhibit
from sonde.reports.cells import Estimate as Shown
from sonde.reports.cells import format_cell, format_interval, format_number
from sonde.reports.model import Item, Report, Section

RELATIONS, FACTS = "mean_over_relations", "mean_over_facts"
OVER = {RELATIONS: "mean over relations", FACTS: "mean over facts"}
ESTIMATE = {"value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "n": pl.Int64}
WHISKERS = "Whiskers are 95% intervals."

Row = TypeVar("Row")
Part = TypeVar("Part")
Named = Mapping[str, Metric]


@dataclass(frozen=True)  # with slots, `Field[Relation](…)` could not be written
class Field(Generic[Row]):
    """A column that is no metric. `cell` makes it from a row, or has the cell of each row number;
    without it a row is a mapping."""

    title: str
    cell: Callable[[Row], Any] | Sequence[Any] | NDArray[Any] | None = None
    kind: ColumnKind = "text"
    help: str = ""
    detail: bool = False

    @property
    def column(self) -> Column:
        return Column(title=self.title, kind=self.kind, help=self.help, detail=self.detail)

    def value_in(self, row: Row) -> Any:
        if callable(self.cell):
            return self.cell(row)
        return (
            self.cell[cast(int, row)]
            if self.cell is not None
            else cast(Mapping[str, Any], row)[self.title]
        )


Fields = Sequence[Metric | Field[Row] | str]


def table(
    rows: Iterable[Row],
    fields: Fields[Row],
    look: Callable[[Row, Metric], Any] | None = None,
    *,
    id: str,
    title: str,
    note: str = "",
    browsable: bool = False,
) -> Table:
    """A row for each thing, a column for each field; `look` finds the numbers of metrics."""
    columns = [Field[Row](field) if isinstance(field, str) else field for field in fields]

    def value(row: Row, field: Metric | Field[Row]) -> Any:
        if isinstance(field, Field):
            return field.value_in(row)
        assert look is not None
        estimate = look(row, field)
        return estimate.value if field.bare and isinstance(estimate, Estimate) else estimate

    return Table(
        id=id,
        title=title,
        columns=tuple(field.column for field in columns),
        rows=tuple(tuple(value(row, field) for field in columns) for row in rows),
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
) -> Table:
    """A row per relation."""
    head = [
        Field[Relation]("relation", lambda r: r.id),
        Field[Relation]("label", lambda r: r.label),
    ]

    def look(relation: Relation, metric: Metric) -> Estimate:
        return estimates[metric.at(f"relation.{relation.id}")]

    return table(relations, [*head, *fields], look, id=id, title=title, note=note)


def headline(metric: Metric, over: str = "", *, label: str = "") -> old.Headline:
    """A number for the summary."""
    words = OVER.get(over, over)
    label = label or (f"{metric.label}, {words}" if words else metric.label)
    return old.Headline(label=label, estimate=metric.at(over), kind=metric.unit)


def without_none(*parts: Part | None) -> tuple[Part, ...]:
    """The parts that there are."""
    return tuple(part for part in parts if part)


def dot_plot(
    estimates: Estimates,
    places: Mapping[str, str],
    series: Named,
    *,
    id: str,
    title: str,
    axis: str,
    note: str = WHISKERS,
) -> old.DotPlot:
    """A row of dots for each place: its label, and how the names of its estimates end."""
    unit = next(iter(series.values()), Metric("", "")).unit
    return old.DotPlot(
        id=id,
        title=title,
        kind="percent" if unit in ("percent", "points") else "number",
        axis=axis,
        labels=tuple(places),
        series=tuple(
            old.Series(name=name, values=tuple(estimates[m.at(over)] for over in places.values()))
            for name, m in series.items()
        ),
        note=note,
    )


def curve(name: str, points: Iterable[tuple[float, Estimate]]) -> old.Curve:
    """Estimates at their places, with their intervals, if they are measured."""
    measured = [(x, y) for x, y in points if y.value is not None]
    return old.Curve(
        name=name,
        x=tuple(x for x, _ in measured),
        y=tuple(y.value or 0.0 for _, y in measured),
        low=tuple(y.ends[0] for _, y in measured),
        high=tuple(y.ends[1] for _, y in measured),
    )


def to_report(report: old.Report) -> Report:
    """The same report for all outputs."""
    summary = [report.summary] if report.summary else []
    numbers = {
        name: Shown(e.value, e.low, e.high, e.n, e.p) for name, e in report.estimates.items()
    }
    for line in report.headlines:
        summary.append(f"{line.label}: {format_interval(numbers[line.estimate], line.kind)}.")
    figures: list[Item] = [exhibit for figure in report.figures for exhibit in _figure(figure)]
    tables: list[Item] = [_table(table) for table in report.tables]
    sections = [
        Section("tables", "Tables", tables),
        Section("figures", "Figures", figures),
        Section("notes", "Notes", list(report.notes)),
    ]
    return Report(
        title=report.title,
        summary=[*summary, *report.findings],
        sections=[section for section in sections if section.items],
        estimates=numbers,
        counts=report.counts,
    )


def _table(table: Table) -> Exhibit:
    """Numbers stay numbers, estimates become structs."""
    columns: dict[str, pl.Series] = {}
    units: dict[str, str] = {}
    for i, column in enumerate(table.columns):
        values = [row[i] for row in table.rows]
        name = column.title
        while name in columns:
            name += " "
        units[name] = "" if column.kind in ("text", "verdict") else column.kind
        kinds = {type(v) for v in values if v is not None}
        if Estimate in kinds:
            parts = [
                (v.value, v.low, v.high, v.n) if isinstance(v, Estimate) else (v, None, None, 0)
                for v in values
            ]
            columns[name] = pl.DataFrame(parts, ESTIMATE, orient="row").to_struct()
        elif kinds <= {int, float} and kinds:
            columns[name] = pl.Series(values, dtype=pl.Float64 if float in kinds else pl.Int64)
        else:
            texts = [None if v is None else format_cell(v, units[name]) for v in values]
            columns[name], units[name] = pl.Series(texts, dtype=pl.String), ""
    return Exhibit(table.id, table.title, pl.DataFrame(columns), units, note=table.note)


def _figure(figure: Any) -> Iterator[Exhibit]:
    unit, note = figure.kind, figure.note
    rows: list[dict[str, Any]] = []
    more: dict[str, Any] = {}
    match figure:
        case old.Labelled():
            kind, units = "intervals", {"x": unit}
            more = {"x_label": figure.axis}
            rows = [
                {"label": label, "color": s.name, "x": e.value, "low": e.low, "high": e.high}
                for s in figure.series
                for label, e in zip(figure.labels, s.values, strict=True)
                if e.value is not None
            ]
        case old.Curves():
            kind, units = "lines", {"x": figure.x_kind or unit, "y": unit}
            more = {"x_label": figure.x_axis, "y_label": figure.y_axis}
            for c in figure.curves:
                for i, (x, y) in enumerate(zip(c.x, c.y, strict=True)):
                    row = {"x": x, "y": y, "color": c.name}
                    if figure.x_labels:
                        row["x"] = figure.x_labels[round(x)]
                    if c.low:
                        row |= {"low": c.low[i], "high": c.high[i]}
                    if not c.joined:
                        row["label"] = c.name
                    rows.append(row)
        case old.Histogram():
            kind, units = "histogram", {"x": unit, "y": "count"}
            more = {"x_label": figure.axis}
            rows = [{"x": x, "y": y} for x, y in zip(figure.edges, figure.counts, strict=False)]
            marks = ", ".join(f"{name} {format_number(x, unit)}" for name, x in figure.marks)
            note = " ".join(filter(None, (note, marks)))
        case old.HeatStrip():
            kind, units = "strip", {"color": "number"}
            more = {"limit": figure.limit}
            for text in figure.rows:
                tokens, weights = list(text.tokens), list(text.weights)
                if text.folded:  # examples are shown as one
                    tokens = [text.folded_name, *tokens[text.folded :]]
                    weights = [sum(weights[: text.folded]), *weights[text.folded :]]
                title = f"{text.label}: {text.note}" if text.note else text.label
                rows += [
                    {"y": title, "label": t, "color": w}
                    for t, w in zip(tokens, weights, strict=True)
                ]
        case _:
            raise TypeError(f"no report shows a {type(figure).__name__}")
    if rows:
        frame = pl.DataFrame(rows, infer_schema_length=None)
        yield Exhibit(figure.id, figure.title, frame, units, cast(Any, kind), note, **more)


def html(part: Any) -> str:
    """A report, table or figure of the former kind, for a notebook."""
    from sonde.reports.notebook import exhibit_html, report_html

    if isinstance(part, old.Report):
        return report_html(to_report(part))
    parts = [_table(part)] if isinstance(part, Table) else list(_figure(part))
    return "".join(map(exhibit_html, parts))
