"""A report as one self-contained page: no requests, a strict policy, everything escaped.

Only one script and one style sheet run, known by their hashes. Facts are JSON that the script
reads, deflated if there are many; everything else works without it.
"""

import base64
import hashlib
import json
import re
import zlib
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sonde.evaluation.layout import Exhibit
from sonde.reports import sentences
from sonde.reports.cells import CONTROLS, columns, legible
from sonde.reports.depth import page_data
from sonde.reports.model import Facts, Item, Report
from sonde.reports.svg import svg

WIDE, ANSWERS, HALF, LEAD, PHONE = 1160, 648, 556, 472, 344  # pixels that a figure is drawn at
ROWS = 50  # of a table
PLAIN = 150_000  # characters


def page(report: Report) -> str:
    """The whole report as one HTML file."""
    style, script = asset("page.css"), asset("page.js")
    policy = (
        f"default-src 'none'; script-src {digest(script)}; style-src {digest(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    page = _environment().get_template("page.html")
    text = page.render(
        report=report,
        title=sentences.text(report.title),
        style=Markup(style),
        script=Markup(script),
        policy=policy,
        rows=ROWS,
        widths={"wide": WIDE, "answers": ANSWERS, "half": HALF, "lead": LEAD},
    )
    return text.encode("utf-8", "replace").decode()


def asset(name: str) -> str:
    return (files("sonde.reports") / name).read_text(encoding="utf-8")


def digest(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("sonde", "reports"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=lambda x: legible(x) if type(x) is str else x,
    )
    environment.filters |= {
        "say": lambda line: Markup(sentences.text(line, html=True)),
        "kind": kind,
        "is_wide": is_wide,
        "columns": columns,
        "packed": packed,
        "drawings": drawings,
    }
    return environment


def kind(item: Item) -> str:
    """How a template shows an item."""
    if isinstance(item, Facts):
        return "facts"
    if isinstance(item, Exhibit):
        return "table" if item.kind == "table" else "figure"
    return "text"


def is_wide(item: Item) -> bool:
    """Whether an item takes the width of the page."""
    if isinstance(item, Exhibit) and item.kind not in ("heat", "strip"):
        return len(columns(item)) > 4
    return True


def drawings(figure: Exhibit, width: int) -> Markup:
    """The figure for a desk and for a phone; the style sheet shows one of them."""
    both = (("desk", width), ("phone", PHONE))
    return Markup("".join(f'<div class="{css}">{svg(figure, w)}</div>' for css, w in both))


def packed(facts: Facts) -> Markup:
    """JSON; of many facts deflated, which the script can unpack only after the page has loaded."""
    written = json.dumps(page_data(facts), ensure_ascii=False, separators=(",", ":"))
    written = CONTROLS.sub(lambda match: f"\\{legible(match[0])}", written)
    # those that JSON escapes
    written = re.sub(r"\\(u00[01]\w|[bfr])|\\.", lambda e: "\\" * bool(e[1]) + e[0], written)
    if len(written) <= PLAIN:
        return Markup(written.replace("<", r"\u003c"))
    return Markup(base64.b64encode(zlib.compress(written.encode("utf-8", "replace"))).decode())
