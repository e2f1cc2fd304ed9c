"""Numbers as texts, and exhibits as columns of text. The one place that decides on digits."""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import isinf, isnan
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from sonde.evaluation.layout import Exhibit

if TYPE_CHECKING:
    from rich.table import Table

NOT_MEASURED = "–"
# C0 and C1, which a terminal obeys, marks of bidirectional text, halves of characters
CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
READ = ("label", "color", "x", "y", "low", "high", "part", "text")  # what figures draw


class Estimate(NamedTuple):
    """A value with its 95% interval, the number of things it averages and the p of its test.

    None is not measured; so are ends that the data do not give.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    p: float | None = None


class Column(NamedTuple):
    head: str
    cells: Sequence[str]
    numeric: bool = False
    bars: Sequence[float] = ()  # shares that a page draws


def escape_control_characters(text: str) -> str:
    r"""The text with an escape for each control character.

    >>> print(escape_control_characters("caf\u00e9 \x1b[31m \u202e"))
    café \x1b[31m \u202e
    """
    return CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def format_number(value: float | None, unit: str = "number") -> str:
    """A number as it is read; points are differences of shares and have a sign.

    >>> format_number(0.1234, "percent"), format_number(-0.0312, "points")
    ('12.3%', '−3.1')
    >>> format_number(-0.0001, "points")
    '0.0'
    >>> format_number(1234, "count"), format_number(0.5)
    ('1,234', '0.500')
    >>> format_number(1e-5, "p"), format_number(None)
    ('<0.001', '–')
    """
    if value is None or isnan(value):
        return NOT_MEASURED
    if isinf(value):
        return "∞" if value > 0 else "−∞"
    match unit:
        case "percent" | "bar":
            text = f"{100 * value:.1f}%"
        case "points":
            text = f"{100 * value:+.1f}"
        case "count":
            text = f"{value:,.1f}".removesuffix(".0")
        case "p" if value < 0.001:
            text = "<0.001"
        case _:
            text = f"{value:,.3f}"
    text = text.replace("-", "−")
    return text if text.strip("+−0.%") else text.lstrip("+−")


def format_interval(e: Estimate, unit: str = "percent") -> str:
    """A value with its interval.

    >>> format_interval(Estimate(0.5, 0.4, 0.61)), format_interval(Estimate(0.5))
    ('50.0% [40.0, 61.0]', '50.0%')
    """
    return format_number(e.value, unit) + format_ends(e, unit, " [{}, {}]")


def format_ends(e: Estimate, unit: str, words: str) -> str:
    """The ends of an interval in words with two gaps; nothing without an interval."""
    if e.low is None or e.high is None:
        return ""
    return words.format(*(format_number(end, unit).removesuffix("%") for end in (e.low, e.high)))


def format_cell(value: Any, unit: str = "") -> str:
    """Any value as text on one line; a struct of value, low and high is an estimate."""
    match value:
        case bool():
            return "✓" if value else "✗"
        case dict():
            ends = Estimate(value["value"], value.get("low"), value.get("high"))
            return format_interval(ends, unit or "number")
        case int() | float() | None:
            return format_number(value, unit or ("count" if isinstance(value, int) else "number"))
        case list() | tuple():
            return ", ".join(map(format_cell, value))
    return escape_control_characters(str(value)).replace("\n", "⏎").replace("\t", " ")


def text_columns(item: Exhibit) -> list[Column]:
    """A table or figure as columns of text: of a figure, a row for each label or x."""
    match item.kind:
        case "intervals" | "bars" | "shares":
            return _pivot(item, "label", "x", "color")
        case "lines" | "histogram" if "label" not in item.frame.columns:
            return _pivot(item, "x", "y", "color")
        case "heat":
            return _pivot(item, "y", "color", "x")
    return [_column(item.frame[name], item.units.get(name, "")) for name in item.frame.columns]


def _column(values: pl.Series, unit: str) -> Column:
    cells = [format_cell(value, unit) for value in values.to_list()]
    bars = values.fill_null(0).to_list() if unit == "bar" else ()
    return Column(
        values.name, cells, isinstance(values.dtype, pl.Struct) or values.dtype.is_numeric(), bars
    )


def rows_by_label(
    frame: pl.DataFrame, row: str = "label", column: str = "color"
) -> dict[Any, dict[str, Any]]:
    """The rows of a figure: for each label, a row of the frame for each series."""
    rows: dict[Any, dict[str, Any]] = {}
    for line in frame.iter_rows(named=True):
        rows.setdefault(line[row], {})[line.get(column) or ""] = line
    return rows


def _pivot(item: Exhibit, row: str, value: str, column: str) -> list[Column]:
    """A column of labels, one per series, and those columns that no figure draws."""
    rows, unit = rows_by_label(item.frame, row, column), item.units.get(value, "number")
    # where each label has one series, they share a column
    shared = column == "color" and all(len(series) == 1 for series in rows.values())
    names = list(dict.fromkeys(name for series in rows.values() for name in series))
    if shared or (item.kind == "bars" and "text" in item.frame.columns):
        names = names[:1]  # a text speaks of all series

    def text(series: Mapping[str, Any], name: str) -> str:
        line = next(iter(series.values())) if shared else series.get(name)
        if line is None:
            return ""
        if "text" in line and (shared or name == names[0]) and line["text"] is not None:
            return format_cell(line["text"])
        ends = (line.get("low"), line.get("high"))
        ends = ends if name == names[0] or "low" in item.units else (None, None)
        return format_interval(Estimate(line[value], *ends), unit)

    axes = {"label": "", "x": item.x_label, "y": item.y_label}
    head = f"{item.x_label if value == 'x' else item.y_label}".strip() or "value"
    if "low" in item.frame.columns:
        head += " [95% CI]"
    first = Column(axes[row], [format_cell(label, item.units.get(row, "")) for label in rows])
    named = item.kind in ("heat", "shares") or ("low" in item.units and len(names) > 1)
    values = [
        Column(
            name if k or named else head,
            [text(series, name) for series in rows.values()],
            True,
        )
        for k, name in enumerate(names)
    ]
    more = item.frame.unique(row, keep="first", maintain_order=True).select(pl.exclude(READ))
    return [first, *values, *(_column(s, item.units.get(s.name, "")) for s in more)]


def rows_of_columns(shown: Sequence[Column]) -> Iterator[tuple[str, ...]]:
    """The rows of columns."""
    return zip(*(column.cells for column in shown), strict=True)


def rich_table(shown: Sequence[Column]) -> "Table":
    """Columns as a table of rich."""
    from rich.table import Table
    from rich.text import Text

    heads = any(column.head for column in shown)
    table = Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=heads, header_style="dim"
    )
    for column in shown:
        longest = max(map(len, column.cells), default=0)
        table.add_column(
            Text(escape_control_characters(column.head)),
            justify="right" if column.numeric else "left",
            overflow="fold",
            no_wrap=column.numeric,
            min_width=longest if column.numeric else min(longest, 10),
        )
    for row in rows_of_columns(shown):
        table.add_row(*map(Text, row))
    return table
