"""Tables as HTML: small ones written out, browsable ones as data for the page's script.

Knows nothing of what the columns mean beyond their kind.
"""

from __future__ import annotations

import math

from sonde.core.reports import Cell, Column, ColumnKind, Estimate, Table
from sonde.reporting.render import cells
from sonde.reporting.render.markup import EMPTY, Markup, join, json_block, styled, tag, text

LONG = 1000  # rows up to here are written out whole where a browsable table was not asked for


def table_section(table: Table) -> Markup:
    """A table with its heading, note and column help; searched and paged if browsable or long."""
    browsable = table.browsable or len(table.rows) > LONG
    body = browser(table) if browsable else written_out(table)
    return tag(
        "section",
        tag("h3", text(table.title)),
        styled("p", "note", text(table.note)) if table.note else EMPTY,
        body,
        column_help(table.columns),
        attributes={"id": f"table-{table.id}", "class": "table-section"},
    )


def column_help(columns: tuple[Column, ...]) -> Markup:
    """What the columns mean, for those that say so."""
    entries = [
        tag("div", tag("dt", text(c.title)), tag("dd", text(c.help))) for c in columns if c.help
    ]
    if not entries:
        return EMPTY
    summary = tag("summary", text("About the columns"))
    return styled("details", "help", summary, tag("dl", *entries))


def written_out(table: Table) -> Markup:
    """The whole table as HTML, sortable where the script runs."""
    table_n, own = cells.with_n(table), cells.apart(table)
    rows = join(row_markup(row, table_n.columns, own) for row in table_n.rows)
    inner = tag(
        "table",
        styled("caption", "unseen", text(table.title)),
        head(table_n.columns),
        tag("tbody", rows),
        attributes={"data-sortable": ""},
    )
    # focusable, so that a keyboard can scroll it sideways
    attributes = {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": table.title}
    return tag("div", inner, attributes=attributes)


def head(columns: tuple[Column, ...]) -> Markup:
    """The header row; each title is a button that sorts."""
    return tag("thead", tag("tr", *(heading(column) for column in columns)))


def heading(column: Column) -> Markup:
    """One column's title."""
    attributes = {"scope": "col", "class": column.kind, "data-kind": column.kind}
    if not column.title:
        return tag("td", attributes={"class": column.kind})
    button = tag("button", text(column.title), attributes={"type": "button", "class": "sort"})
    return tag("th", button, attributes=attributes | {"aria-sort": "none"})


def row_markup(row: tuple[Cell, ...], columns: tuple[Column, ...], own: bool) -> Markup:
    """One row; its first text cell is its header."""
    made = []
    for i, (cell, column) in enumerate(zip(row, columns, strict=True)):
        first = i == 0 and column.kind == "text"
        attributes = {"class": column.kind, "data-key": sort_key(cell, column.kind)}
        content = cell_markup(cell, column.kind, own)
        extra = {"scope": "row"} if first else {}
        made.append(tag("th" if first else "td", content, attributes=attributes | extra))
    return tag("tr", *made)


def sort_key(cell: Cell, kind: ColumnKind) -> str:
    """What a column sorts by: the plain number where there is one; nothing when not measured."""
    value = cell.value if isinstance(cell, Estimate) else cell
    if kind == "verdict":
        return cells.verdict(cell)
    return "" if value is None or value != value else str(value)


def cell_markup(cell: Cell, kind: ColumnKind, own: bool) -> Markup:
    """A cell's content; an estimate with its interval, and its n where rows do not share one."""
    if kind == "verdict":
        return verdict_markup(cells.verdict(cell))
    if cell is None:
        return missing()
    if isinstance(cell, Estimate) and cells.known(cell.value) is None:
        return Markup(missing() + styled("span", "interval"))  # keeps the dash under the values
    if not isinstance(cell, Estimate):
        return text(cells.cell_text(cell, kind))
    n = f"n = {cells.fixed(cell.n, 0)}" if own else ""
    return join(
        styled("span", css, text(words))
        for css, words in (
            ("value", cells.number(cell.value, kind)),
            ("interval", cells.interval(cell, kind)),
            ("n", n),
        )
        if words
    )


def missing() -> Markup:
    """An en dash that says aloud what it means."""
    attributes = {"class": "missing", "title": cells.NOT_MEASURED, "aria-label": cells.NOT_MEASURED}
    return tag("span", text(cells.DASH), attributes=attributes | {"role": "img"})


def verdict_markup(word: str) -> Markup:
    """A coloured mark and the word."""
    known = word if word in cells.MARKS else "other"
    mark = tag("span", text(cells.MARKS.get(word, "")), attributes={"aria-hidden": "true"})
    return styled(
        "span", f"verdict-{known}", mark, text((" " if word in cells.MARKS else "") + word)
    )


def browser(table: Table) -> Markup:
    """The frame of a browsable table and its data; `assets/browse.js` does the rest."""
    n = cells.fixed(len(table.rows), 0)
    noscript = tag("noscript", tag("p", text(f"These {n} rows need JavaScript to be shown.")))
    frame = tag(
        "table",
        styled("caption", "unseen", text(table.title)),
        head(table.columns),
        tag("tbody"),
    )
    return tag(
        "div",
        styled("div", "controls"),
        tag("p", attributes={"class": "range", "role": "status", "aria-live": "polite"}),
        styled("div", "rows", frame),
        tag("nav", attributes={"class": "pager", "aria-label": f"Pages of {table.title}"}),
        noscript,
        json_block(browsable_data(table)),
        attributes={"class": "browse", "data-browse": "", "data-title": table.title},
    )


def browsable_data(table: Table) -> dict[str, object]:
    """The table as the page's script reads it; cells stay raw so that they sort as numbers."""
    columns = [{"title": c.title, "kind": c.kind} for c in table.columns]
    return {"columns": columns, "rows": [[raw(cell) for cell in row] for row in table.rows]}


def raw(cell: Cell) -> object:
    """A cell as JSON: an estimate is a list of value, low, high and n."""
    if isinstance(cell, Estimate):
        return [raw(cell.value), raw(cell.low), raw(cell.high), cell.n]
    if isinstance(cell, float) and not math.isfinite(cell):
        return None if math.isnan(cell) else cells.fixed(cell, 0)
    return cell
