"""One self-contained HTML page of a report. Knows nothing of files, servers or networks.

Nothing on the page is fetched: styles, scripts, data and the library that draws figures stand in
the file. What the page looks like is in `templates/`, how numbers are written in `cells.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sonde.core.reports import Estimate, Figure, HeatStrip, Report, Table
from sonde.reporting.build.parts import trimmed
from sonde.reporting.render import cells
from sonde.reporting.render.figures.draw import library, spec, to_table
from sonde.reporting.render.json import plain
from sonde.reporting.render.markup import asset, policy, rendered
from sonde.reporting.render.strips import FAINT, Shade, parted, signed, visible

SCRIPTS = ("cells.js", "browse.js", "sort.js", "figures.js", "page.js")
LONG = 1000  # rows up to here are written out whole where a browsable table was not asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A figure with what draws it, nothing for strips, and its numbers where they are few."""

    plot: Figure
    spec: Mapping[str, Any] | None
    table: Table | None

    @property
    def room(self) -> str:
        """Its place on the page: its height, and its width where it wants no more."""
        layout = self.spec["layout"] if self.spec else {}
        widest = layout.get("meta", {}).get("width")
        height = f"height:{layout.get('height', 420)}px"
        return height + (f";max-width:{widest}px" if widest else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A dot and its whisker on a scale from 0 to 100 %, in percent of its width."""

    css: str
    value: str
    low: str
    width: str


def page(report: Report, provenance: Mapping[str, object]) -> str:
    """The whole report as one HTML file, to be opened from disk or served as it is."""
    report = trimmed(report)
    theme, own = asset("theme.js"), "\n".join(asset(name) for name in SCRIPTS)
    figures = [drawn(figure) for figure in report.figures]
    scripts = [library(), own] if any(figure.spec for figure in figures) else [own]
    values: dict[str, object] = {
        "report": report,
        "contents": list(contents(report, provenance)),
        "figures": figures,
        "tables": [table for table in report.tables if not table.browsable],
        "browsable": [table for table in report.tables if table.browsable],
        "provenance": plain(provenance),
        "long": LONG,
        "policy": policy((theme, *scripts)),
        "style": Markup(asset("style.css")),
        "theme": Markup(theme),
        "scripts": [Markup(script) for script in scripts],
    }
    words = {"cells": cells, "marks": marks, "parted": parted, "ground": ground,
             "signed": signed, "visible": visible}  # fmt: skip
    # a lone surrogate, which a model may well emit, has no place in a file
    return rendered("page.html", values | words).encode("utf-8", "replace").decode("utf-8")


def contents(report: Report, provenance: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The sections that have content, in reading order: id and title."""
    long = [table for table in report.tables if table.browsable]
    for id, title, filled in (
        ("findings", "Findings", report.findings),
        ("figures", "Figures", report.figures),
        ("tables", "Tables", len(report.tables) > len(long)),
        ("browse", "Browse", long),
        ("estimates", "Estimates and counts", report.estimates or report.counts),
        ("notes", "Notes", report.notes),
        ("provenance", "Provenance", provenance),
    ):
        if filled:
            yield id, title


def drawn(plot: Figure) -> Drawn:
    """A figure, ready for the page."""
    own = None if isinstance(plot, HeatStrip) else spec(plot)
    return Drawn(plot=plot, spec=own, table=to_table(plot))


def marks(read: cells.Read) -> list[Mark]:
    """Number and control on one scale from 0 to 100 %; none where they do not fit on it."""
    pairs = (("estimate", read.estimate), ("control", read.control))
    known = [(css, e) for css, e in pairs if e is not None and cells.known(e.value) is not None]
    if read.scale != "percent" or any(min(e.ends) < 0 for _, e in known):
        return []
    return [mark(css, estimate) for css, estimate in known]


def mark(css: str, estimate: Estimate) -> Mark:
    """An estimate with its interval, placed on the scale."""
    low, high = estimate.ends
    value, start, width = (
        f"{share * 100:.2f}" for share in (estimate.value or 0.0, low, high - low)
    )
    return Mark(css=css, value=value, low=start, width=width)


def ground(shade: Shade) -> str:
    """The class of a token's ground: none for hardly any weight."""
    if abs(shade.strength) < FAINT:
        return ""
    return " towards" if shade.strength > 0 else " away"
