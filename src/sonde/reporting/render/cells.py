"""How numbers, intervals and verdicts are written. Knows nothing of terminals or HTML.

`assets/cells.js` writes the same cells in the browser; a test holds the two together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Literal

from sonde.core.reports import Cell, Column, ColumnKind, Estimate, Headline, Report, Table, Unit

Scale = Unit

NOT_MEASURED = "not measured"
WRAPPED = 26  # letters of a text that need not be broken
ROUNDING = 1e-12  # how far from 1 a mean of ones may be
DASH = "–"
MINUS = "−"
VERDICTS = {True: "right", False: "wrong", None: "skipped"}
MARKS = {"right": "✓", "wrong": "✗", "skipped": DASH}


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An estimate in words: its value, its interval in brackets, its n; empty where unknown."""

    value: str
    interval: str
    n: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A headline with the three estimates it names, and the scale they share."""

    label: str
    scale: Scale
    estimate: Estimate
    control: Estimate | None
    control_name: str
    difference: Estimate | None


def known(value: float | None) -> float | None:
    """The value, or None where it was not measured (NaN included)."""
    return None if value is None or math.isnan(value) else value


def fixed(value: float, digits: int) -> str:
    """A number with so many decimals, ties away from zero, thousands apart.

    >>> fixed(31.25, 1), fixed(-1234567.0, 0), fixed(-0.04, 1)
    ('31.3', '−1,234,567', '0.0')
    """
    if math.isinf(value):
        return "∞" if value > 0 else MINUS + "∞"
    rounded = Decimal(value).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)
    return (MINUS if rounded < 0 else "") + f"{abs(rounded):,}"


def share(value: float) -> str:
    """A share 0..1 as a percentage that never rounds a little to nothing or a lot to all.

    >>> share(0.311), share(0.0001), share(0.99999), share(1.0), share(1 - 1e-16)
    ('31.1%', '<0.1%', '>99.9%', '100.0%', '100.0%')
    """
    if 0 < value < 0.0005:
        return "<0.1%"
    if 0.9995 <= value < 1 - ROUNDING:
        return ">99.9%"
    return fixed(value * 100, 1) + "%"


def plain_number(value: float) -> str:
    """A number with about three digits that matter.

    >>> plain_number(1234.5), plain_number(2.345), plain_number(0.25), plain_number(0.000012)
    ('1,235', '2.35', '0.250', '1.2e−5')
    """
    size = abs(value)
    if math.isfinite(value) and 0 < size < 0.0005:
        digits, exponent = f"{size:.1e}".split("e")
        return (MINUS if value < 0 else "") + f"{digits}e{MINUS}{abs(int(exponent))}"
    return fixed(value, 0 if size >= 100 else 2 if size >= 1 else 3)


def digits_for(step: float) -> int:
    """Decimals of a percentage that tell values apart which lie so far from each other.

    >>> digits_for(0.1), digits_for(0.005), digits_for(0.0004)
    (0, 1, 2)
    """
    return min(4, max(0, math.ceil(-math.log10(step * 100) - 1e-9))) if step > 0 else 1


def number(value: float | None, kind: ColumnKind, step: float = 0.0) -> str:
    """A number as its column or figure shows it; an en dash where it was not measured.

    `step` is the distance to values that a percentage must be told apart from.
    """
    value = known(value)
    if value is None:
        return DASH
    if kind == "percent":
        digits = digits_for(step)
        return share(value) if digits <= 1 else fixed(value * 100, digits) + "%"
    if kind == "points":
        return signed(value, "percent")
    if kind == "count":
        return fixed(value, 0)
    return plain_number(value)


def interval(estimate: Estimate, kind: ColumnKind) -> str:
    """The 95 % interval in brackets, without repeating the unit; empty where there is none."""
    low, high = known(estimate.low), known(estimate.high)
    if known(estimate.value) is None or low is None or high is None:
        return ""
    if kind == "percent":
        return brackets(fixed(low * 100, 1), fixed(high * 100, 1))
    return brackets(number(low, kind), number(high, kind))


def brackets(low: str, high: str) -> str:
    """Two ends as they are written; nothing where they read the same, as if all were certain."""
    return f"[{low}, {high}]" if low != high else ""


def written(estimate: Estimate, kind: ColumnKind) -> Written:
    """An estimate in words, for where there is room to say "not measured"."""
    if known(estimate.value) is None:
        return Written(value=NOT_MEASURED, interval="", n="")
    if kind == "points":
        return written_difference(estimate, "percent")
    return Written(
        value=number(estimate.value, kind),
        interval=interval(estimate, kind),
        n=f"n = {fixed(estimate.n, 0)}",
    )


def written_difference(estimate: Estimate, scale: Scale) -> Written:
    """A difference in words: signed, and in percentage points where the scale is a share.

    >>> d = Estimate(value=0.091, low=-0.002, high=0.104, n=41)
    >>> written_difference(d, "percent").value, written_difference(d, "percent").interval
    ('+9.1 points', '[−0.2, +10.4]')
    """
    if known(estimate.value) is None:
        return Written(value=NOT_MEASURED, interval="", n="")
    parts = [known(part) for part in (estimate.value, estimate.low, estimate.high)]
    value, low, high = ("" if part is None else signed(part, scale) for part in parts)
    return Written(
        value=value + (" points" if scale == "percent" else ""),
        interval=brackets(low, high),
        n=f"n = {fixed(estimate.n, 0)}",
    )


def signed(value: float, scale: Scale) -> str:
    """A difference with its sign; shares in percentage points, without the unit."""
    text = fixed(value * 100, 1) if scale == "percent" else plain_number(value)
    return "+" + text if value > 0 else text


def verdict(cell: Cell) -> str:
    """The word of a verdict: right, wrong, skipped, or what the probe calls it."""
    if cell is None or isinstance(cell, bool):
        return VERDICTS[cell]
    return str(cell)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A cell as terminal and page write it; `spaced`: it stands in a column of intervals."""

    kind: Literal["text", "estimate", "missing", "verdict"]
    value: str
    interval: str = ""
    mark: str = ""
    spaced: bool = False


def shown_cell(cell: Cell, kind: ColumnKind) -> Shown:
    """What a cell shows; an estimate with its interval."""
    if kind == "verdict":
        word = verdict(cell)
        return Shown(kind="verdict", value=word, mark=MARKS.get(word, ""))
    if isinstance(cell, Estimate):
        if known(cell.value) is None:
            return Shown(kind="missing", value=DASH, spaced=True)
        value, ends = number(cell.value, kind), interval(cell, kind)
        return Shown(kind="estimate", value=value, interval=ends)
    if cell is None:
        return Shown(kind="missing", value=DASH)
    if isinstance(cell, bool):
        return Shown(kind="text", value="yes" if cell else "no")
    return Shown(kind="text", value=cell if isinstance(cell, str) else number(cell, kind))


def cell_text(cell: Cell, kind: ColumnKind) -> str:
    """A cell on one line, as a dense table shows it."""
    shown = shown_cell(cell, kind)
    return " ".join(part for part in (shown.mark, shown.value, shown.interval) if part)


def sort_key(cell: Cell) -> str:
    """What a cell of numbers sorts by; nothing when not measured."""
    value = cell.value if isinstance(cell, Estimate) else cell
    if value is None or value != value:
        return ""
    return str(brief(value)) if isinstance(value, float) else str(value)


def browsable_data(table: Table) -> dict[str, object]:
    """The table as the page's script reads it, by column; raw, so that numbers sort as numbers."""
    columns = []
    for i, column in enumerate(table.columns):
        values = [raw(row[i]) for row in table.rows]
        columns.append({"title": column.title, "kind": column.kind, **coded(values)})
    return {"columns": columns, "count": len(table.rows)}


def coded(values: Sequence[object]) -> dict[str, object]:
    """Values as they are, or, of words that come again and again, each once and its numbers."""
    if not all(isinstance(value, str) for value in values):
        return {"values": values}
    codes: dict[object, int] = {}
    found = [codes.setdefault(value, len(codes)) for value in values]
    return (
        {"names": list(codes), "codes": found}
        if len(codes) * 2 < len(found)
        else {"values": values}
    )


def raw(cell: Cell) -> object:
    """A cell as JSON: an estimate is a list of value, low, high and n."""
    if isinstance(cell, Estimate):
        return [raw(cell.value), raw(cell.low), raw(cell.high), cell.n]
    if isinstance(cell, float):
        return brief(cell) if math.isfinite(cell) else None if math.isnan(cell) else fixed(cell, 0)
    return cell


def brief(value: float) -> float:
    """A number with the six digits that matter; what is nearly 0 or 1 does not become so.

    >>> brief(0.12345678), brief(0.99999999), brief(3.0)
    (0.123457, 0.99999999, 3.0)
    """
    short = float(f"{value:.6g}")
    return value if short in (0.0, 1.0) else short


def across(table: Table) -> int:
    """How many letters a table is wide with intervals beside their values; long texts can wrap."""
    widths = []
    for i, column in enumerate(table.columns):
        longest = max((len(cell_text(row[i], column.kind)) for row in table.rows), default=0)
        most = WRAPPED if column.kind == "text" else longest
        widths.append(max(min(longest, most), len(column.title)) + 3)
    return sum(widths)


def with_n(table: Table) -> Table:
    """The same table with columns for the numbers of things that its estimates average.

    Columns whose estimates rest on the same numbers share one, behind the last of them, or at the
    end if there is no other; none is added for numbers that a column shows already. One that stands
    behind estimates of other numbers too says whose it is.
    """
    groups = counted(table)
    width = len(table.columns)
    missing = [(at, counts) for at, counts in groups
               if not any(shows(table, i, counts) for i in range(width))]  # fmt: skip
    ends = {max(at) if len(groups) > 1 else width - 1: (at, counts) for at, counts in missing}
    columns: list[Column] = []
    taken: list[Sequence[Cell]] = []
    before: set[int] = set()
    for i, column in enumerate(table.columns):
        columns.append(column)
        taken.append([row[i] for row in table.rows])
        before |= {i} if any(i in at for at, _ in groups) else set()
        if i in ends:
            at, counts = ends[i]
            columns.append(n_column(table, at, alone=before <= set(at)))
            taken.append(counts)
            before = set()
    return replace(table, columns=tuple(columns), rows=tuple(zip(*taken, strict=True)))


def counted(table: Table) -> list[tuple[list[int], list[int | None]]]:
    """Columns whose estimates rest on the same numbers, with the number of each row."""
    groups: list[tuple[list[int], list[int | None]]] = []
    for i in range(len(table.columns)):
        counts = [row_n(row[i]) for row in table.rows]
        if not any(counts):
            continue
        for at, known_counts in groups:
            if all(
                a is None or b is None or a == b for a, b in zip(counts, known_counts, strict=True)
            ):
                at.append(i)
                known_counts[:] = [a or b for a, b in zip(counts, known_counts, strict=True)]
                break
        else:
            groups.append(([i], counts))
    return groups


def row_n(cell: Cell) -> int | None:
    """The number that an estimate averages, where it was measured."""
    return cell.n if isinstance(cell, Estimate) and known(cell.value) is not None else None


def shows(table: Table, i: int, counts: Sequence[int | None]) -> bool:
    """Whether a column holds just these numbers."""
    pairs = zip(table.rows, counts, strict=True)
    return all(row[i] == n for row, n in pairs if n is not None)


def n_column(table: Table, at: Sequence[int], alone: bool) -> Column:
    """The column of the numbers behind the estimates of some columns, `alone` behind no others."""
    titles = ", ".join(filter(None, (table.columns[i].title for i in at))) or "the estimates"
    help = f"how many things are averaged: {titles}"
    return Column(title="n" if alone else f"n of {titles}", kind="count", help=help)


def read_headline(headline: Headline, report: Report) -> Read:
    """A headline with its estimates looked up; the report has made sure they are there."""
    return Read(
        label=headline.label,
        scale=headline.kind,
        estimate=report.estimates[headline.estimate],
        control=report.estimates.get(headline.control),
        control_name=headline.control_label or spoken(headline.control),
        difference=report.estimates.get(headline.difference),
    )


def estimates_table(report: Report) -> Table:
    """Every estimate of a report under its stable name, in its own unit."""
    columns = (Column(title="name"), Column(title="estimate", kind="number"))
    rows = tuple(sorted(report.estimates.items()))
    return Table(id="estimates", title="All estimates", columns=columns, rows=rows)


def spoken(name: str) -> str:
    """A stable name as words.

    >>> spoken("majority.mean_over_relations")
    'majority, mean over relations'
    """
    return name.replace(".", ", ").replace("_", " ")
