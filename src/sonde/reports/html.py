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
from sonde.reports.cells import CONTROLS, escape_control_characters, text_columns
from sonde.reports.depth import pack_fact_columns
from sonde.reports.model import Facts, Item, Report
from sonde.reports.svg import svg

WIDE, ANSWERS, HALF, LEAD, PHONE = 1160, 648, 556, 472, 344  # pixels that a figure is drawn at
ROWS = 50  # of a table
PLAIN = 150_000  # characters


def render_page(report: Report) -> str:
    """The whole report as one HTML file."""
    style, script = read_asset("page.css"), read_asset("page.js")
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


def read_asset(name: str) -> str:
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
        finalize=lambda x: escape_control_characters(x) if type(x) is str else x,
    )
    environment.filters |= {
        "say": lambda line: Markup(sentences.text(line, html=True)),
        "kind": template_kind,
        "is_wide": is_wide,
        "columns": text_columns,
        "packed": pack_facts,
        "drawings": drawings,
    }
    return environment


def template_kind(item: Item) -> str:
    """How a template shows an item."""
    if isinstance(item, Facts):
        return "facts"
    if isinstance(item, Exhibit):
        return "table" if item.kind == "table" else "figure"
    return "text"


def is_wide(item: Item) -> bool:
    """Whether an item takes the width of the page."""
    if isinstance(item, Exhibit) and item.kind not in ("heat", "strip"):
        return len(text_columns(item)) > 4
    return True


def drawings(figure: Exhibit, width: int) -> Markup:
    """The figure for a desk and for a phone; the style sheet shows one of them."""
    both = (("desk", width), ("phone", PHONE))
    return Markup("".join(f'<div class="{css}">{svg(figure, w)}</div>' for css, w in both))


def pack_facts(facts: Facts) -> Markup:
    """JSON; of many facts deflated, which the script can unpack only after the page has loaded."""
    written = json.dumps(pack_fact_columns(facts), ensure_ascii=False, separators=(",", ":"))
    written = CONTROLS.sub(lambda match: f"\\{escape_control_characters(match[0])}", written)
    # those that JSON escapes
    written = re.sub(r"\\(u00[01]\w|[bfr])|\\.", lambda e: "\\" * bool(e[1]) + e[0], written)
    if len(written) <= PLAIN:
        return Markup(written.replace("<", r"\u003c"))
    return Markup(base64.b64encode(zlib.compress(written.encode("utf-8", "replace"))).decode())
