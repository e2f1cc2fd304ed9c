"""Pages from our templates: a report as one self-contained file, and figures to be made pictures.

Nothing on a page is fetched: styles, scripts, data and drawings stand in the file. A content
security policy lets only our own scripts run, known by their hashes, and every text is escaped.
What pages look like is in `templates/`, how numbers are written in `cells.py`. Knows nothing of
files, servers, networks or browsers.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from html import unescape
from importlib.resources import files
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sonde.core.errors import SondeError
from sonde.core.reports import Figure, HeatStrip, Report, Table
from sonde.reporting.build.parts import trimmed
from sonde.reporting.render import cells
from sonde.reporting.render.figures import OnPage, on_page
from sonde.reporting.render.json import plain
from sonde.reporting.render.numbers import FAINT, Shade, parted, signed_weight, to_table, visible

SCRIPTS = ("unpack.js", "cells.js", "browse.js", "sort.js", "figures.js", "page.js")
ACROSS = 140  # letters from which on a table has its intervals below their values
LONG = 1000  # rows up to here are written out whole where a browsable table was not asked for
PNG_SCALE = 2  # picture points per pixel
UNSAFE_IN_JSON = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
PICTURE = re.compile(r'<pre id="sonde-pictures-(\w+)">(.*?)</pre>', re.DOTALL)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("sonde.reporting.render"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"json_block": json_block, "packed": packed}
    environment.globals["across"] = ACROSS
    return environment


def rendered(template: str, values: Mapping[str, object]) -> str:
    """A template with these values."""
    return _environment().get_template(template).render(values)


def json_block(value: object, id: str = "") -> Markup:
    """Data for a script to read: JSON in which nothing can end the element it stands in."""
    data = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    named = Markup(' id="{}"').format(id) if id else ""
    block = Markup('<script type="application/json"{}>{}</script>')
    return block.format(named, Markup(data.translate(UNSAFE_IN_JSON)))


def packed(value: object) -> Markup:
    """Data for a script to unpack: JSON, deflated, in letters that mean nothing in HTML."""
    data = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    deflated = zlib.compress(data.encode("utf-8", "replace"), 9)
    letters = base64.b64encode(deflated).decode()
    return Markup('<script type="text/plain" data-packed="">{}</script>').format(letters)


def asset(name: str) -> str:
    """The text of one of our own files."""
    return (files("sonde.reporting.render") / "assets" / name).read_text(encoding="utf-8")


def policy(scripts: Iterable[str]) -> str:
    """The names by which a content security policy lets these scripts run, and no others."""
    digests = (hashlib.sha256(source.encode()).digest() for source in scripts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


class Drawn(NamedTuple):
    """A figure with its drawings, none for heat strips, which are text, and its numbers."""

    plot: Figure
    drawings: OnPage | None
    table: Table


def page(report: Report, provenance: Mapping[str, object]) -> str:
    """The whole report as one HTML file, to be opened from disk or served as it is."""
    report = trimmed(report)
    theme, own = asset("theme.js"), "\n".join(asset(name) for name in SCRIPTS)
    values: dict[str, object] = {
        "report": report,
        "contents": list(contents(report, provenance)),
        "figures": [drawn(figure) for figure in report.figures],
        "tables": [table for table in report.tables if not table.browsable],
        "browsable": [table for table in report.tables if table.browsable],
        "provenance": plain(provenance),
        "long": LONG,
        "policy": policy((theme, own)),
        "style": Markup(asset("style.css")),
        "theme": Markup(theme),
        "script": Markup(own),
    }
    words = {"cells": cells, "marks": marks, "parted": parted, "ground": ground,
             "signed": signed_weight, "visible": visible}  # fmt: skip
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
    drawings = None if isinstance(plot, HeatStrip) else on_page(plot)
    return Drawn(plot, drawings, to_table(plot))


def marks(read: cells.Read) -> list[dict[str, str]]:
    """Number and control as dots with whiskers on one scale from 0 to 100 %, if they fit on it."""
    pairs = (("estimate", read.estimate), ("control", read.control))
    known = [(css, e) for css, e in pairs if e is not None and cells.known(e.value) is not None]
    if read.scale != "percent" or any(min(e.ends) < 0 for _, e in known):
        return []
    placed = []
    for css, estimate in known:
        low, high = estimate.ends
        places = {"value": estimate.value or 0.0, "low": low, "width": high - low}
        percents = {name: f"{place * 100:.2f}" for name, place in places.items()}
        placed.append({"css": css, **percents})
    return placed


def ground(shade: Shade) -> str:
    """The class of a token's ground: none for hardly any weight."""
    if abs(shade.strength) < FAINT:
        return ""
    return " towards" if shade.strength > 0 else " away"


def picture_page(pictures: Sequence[str]) -> str:
    """A page on which a browser turns each drawing into a PNG, kept as text in its body."""
    script = asset("pictures.js")
    job = {"scale": PNG_SCALE, "pictures": pictures}
    values = {"job": job, "policy": policy([script]), "script": Markup(script)}
    return rendered("pictures.html", values)


def read_pictures(count: int, drawn: str) -> list[bytes]:
    """So many pictures, from the page as the browser left it."""
    texts = {name: unescape(text) for name, text in PICTURE.findall(drawn)}
    if "error" in texts:
        raise SondeError(f"the browser could not draw a figure: {texts['error']}")
    if "done" not in texts:
        raise SondeError(
            "the browser did not finish drawing the figures; update it, or name another one in "
            "the environment variable SONDE_BROWSER"
        )
    return [base64.b64decode(texts[str(k)].partition(",")[2]) for k in range(count)]
