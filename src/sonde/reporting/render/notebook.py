"""Reports, tables and figures as pieces of HTML for notebooks, by the templates of the page.

A piece brings its own style, which holds within it alone; nothing in it is a script, and nothing is
fetched. Long tables are cut: the page has all of them. Knows nothing of notebooks themselves.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from markupsafe import Markup

from sonde.core.reports import Figure, Report, Table
from sonde.reporting.build.parts import trimmed
from sonde.reporting.render import cells
from sonde.reporting.render.html import asset, drawn, ground, marks, rendered
from sonde.reporting.render.numbers import parted, signed_weight, visible

SHORT, LONG = 10, 60
"""Rows that are shown of a table which is meant to be searched, and of any other."""


def html(shown: Report | Table | Figure) -> str:
    """A piece of HTML that stands by itself."""
    if isinstance(shown, Report):
        return _piece(report=trimmed(shown))
    if isinstance(shown, Table):
        return _piece(tables=[shown])
    return _piece(figures=[shown])


def _piece(
    report: Report | None = None, tables: list[Table] | None = None, figures: object = ()
) -> str:
    words = {"cells": cells, "marks": marks, "parted": parted, "ground": ground,
             "signed": signed_weight, "visible": visible, "draw": drawn}  # fmt: skip
    values = {
        "report": report,
        "tables": [*map(_cut, tables or ())],
        "of_report": [*map(_cut, report.tables)] if report else [],
        "figures": figures,
        "style": Markup(_style()),
    }
    return rendered("notebook.html", values | words).encode("utf-8", "replace").decode("utf-8")


def _cut(table: Table) -> tuple[Table, int]:
    """The first rows of a table, and how many are left out."""
    most = SHORT if table.browsable else LONG
    return replace(table, rows=table.rows[:most]), max(0, len(table.rows) - most)


@cache
def _style() -> str:
    """The style of the page, holding within the piece alone."""
    text = re.sub(r"/\*.*?\*/", "", asset("style.css"), flags=re.DOTALL).replace(":root", "&")
    return ".sonde-piece {" + " ".join(text.split()) + "}"
