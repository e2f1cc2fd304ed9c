"""A report as plain data, wholly. Knows what reports are made of, nothing of who makes them.

values      estimates and counts, the cells of tables, what figures are drawn from
intervals   the ends of their intervals, apart, so that these can be compared otherwise
words       titles, notes, findings, how columns are headed

What tells the time of a run differs every time and is left out; so is how columns are explained.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from .inside import Estimate, Report

Plain = Any
"""What JSON can hold."""

Document = dict[str, Plain]
"""Plain data by section."""

Place = tuple[str, ...]
Ends = dict[Place, Plain]
"""The ends of intervals, by where their estimates stand."""

CLOCK = re.compile(r"seconds|a second$")


def plain_report(report: Report) -> Document:
    """Everything that a report holds."""
    ends: Ends = {}
    figures = [figure for figure in report.figures if not CLOCK.search(figure.title)]
    values = {
        "counts": plain(report.counts, ("counts",), ends),
        "estimates": {
            name: plain(value, ("estimates", name), ends)
            for name, value in report.estimates.items()
            if not CLOCK.search(name)
        },
        "figures": {f.id: _drawn(f, ("figures", f.id), ends) for f in figures},
        "tables": {t.id: _cells(t, ("tables", t.id), ends) for t in report.tables},
    }
    words = {
        "findings": list(report.findings),
        "headlines": [list(dataclasses.astuple(line)) for line in report.headlines],
        "notes": list(report.notes),
        "summary": report.summary,
        "title": report.title,
        "figures": {figure.id: _said(figure) for figure in figures},
        "tables": {table.id: _headed(table) for table in report.tables},
    }
    return {"values": values, "intervals": _nested(ends), "words": words}


def plain(value: object, where: Place, ends: Ends) -> Plain:
    """A value as JSON can hold it; an estimate as [value, n], its ends put into `ends`."""
    if isinstance(value, Estimate):
        if value.low is not None or value.high is not None:
            ends[where] = [number(value.low), number(value.high)]
        return [number(value.value), value.n]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _fields(value, where, ends)
    if isinstance(value, Mapping):
        return {str(k): plain(v, (*where, str(k)), ends) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(member, (*where, str(i)), ends) for i, member in enumerate(value)]
    return number(value)


def number(value: object) -> Plain:
    """A number, a word or nothing; what JSON has no number for becomes a word."""
    if hasattr(value, "item"):  # numpy's
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    assert value is None or isinstance(value, str | int | float), f"not plain: {value!r}"
    return value


def row_names(rows: Sequence[Sequence[Plain]]) -> list[str]:
    """A name for each row: its place and the text that it begins with."""
    heads = (row[0] if row and isinstance(row[0], str) else "" for row in rows)
    return [f"{i} {head}".strip() for i, head in enumerate(heads)]


def _fields(value: Any, where: Place, ends: Ends) -> dict[str, Plain]:
    found = {}
    for name in (field.name for field in dataclasses.fields(value)):
        given = getattr(value, name)
        if name in ("low", "high") and isinstance(given, tuple):  # of every point of a curve
            ends |= {(*where, name): plain(given, (), {})} if given else {}
        else:
            found[name] = plain(given, (*where, name), ends)
    return found


def _cells(table: Any, where: Place, ends: Ends) -> dict[str, Plain]:
    """Columns by their titles, and a list of cells for each row."""
    titles = _distinct([column.title for column in table.columns])
    kept = [i for i, title in enumerate(titles) if not CLOCK.search(title)]
    names = row_names(table.rows)
    rows = [
        [plain(row[i], (*where, name, titles[i]), ends) for i in kept]
        for name, row in zip(names, table.rows, strict=True)
    ]
    return {"columns": [titles[i] for i in kept], "rows": rows}


def _drawn(figure: Any, where: Place, ends: Ends) -> dict[str, Plain]:
    found = _fields(figure, where, ends)
    return {name: value for name, value in found.items() if not isinstance(value, str)}


def _said(figure: Any) -> dict[str, Plain]:
    texts = {f.name: getattr(figure, f.name) for f in dataclasses.fields(figure) if f.name != "id"}
    told = {name: text for name, text in texts.items() if isinstance(text, str) and text}
    return {"drawn as": type(figure).__name__, **told}


def _headed(table: Any) -> dict[str, Plain]:
    columns = [f"{c.title} ({c.kind}{', detail' if c.detail else ''})" for c in table.columns]
    note = {"note": table.note} if table.note else {}
    browsable = {"browsable": True} if table.browsable else {}
    return {"title": table.title, "columns": "; ".join(columns), **note, **browsable}


def _nested(ends: Ends) -> Plain:
    """The same by the parts of each place."""
    found: dict[str, Plain] = {}
    for place, value in ends.items():
        inner = found
        for part in place[:-1]:
            inner = inner.setdefault(part, {})
        inner[place[-1]] = value
    return found


def _distinct(titles: Sequence[str]) -> list[str]:
    """The titles, a number behind one that stood there before."""
    seen: Counter[str] = Counter()
    found = []
    for title in titles:
        seen[title] += 1
        found.append(title if seen[title] == 1 else f"{title} #{seen[title]}")
    return found
