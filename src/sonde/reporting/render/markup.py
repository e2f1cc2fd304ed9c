"""Pages from our templates, in which every text is escaped. Knows nothing of reports.

A content security policy lets only our own scripts run, known by their hashes; nothing is fetched.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

UNSAFE_IN_JSON = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


@cache
def _environment() -> Environment:
    loader = PackageLoader("sonde.reporting.render")
    made = Environment(
        loader=loader,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters["json_block"] = json_block
    return made


def rendered(template: str, values: Mapping[str, object]) -> str:
    """A template with these values."""
    return _environment().get_template(template).render(values)


def json_block(value: object, id: str = "") -> Markup:
    """Data for a script to read: JSON in which nothing can end the element it stands in."""
    data = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    named = Markup(' id="{}"').format(id) if id else ""
    block = Markup('<script type="application/json"{}>{}</script>')
    return block.format(named, Markup(data.translate(UNSAFE_IN_JSON)))


def asset(name: str) -> str:
    """The text of one of our own files."""
    return (files("sonde.reporting.render") / "assets" / name).read_text(encoding="utf-8")


def policy(scripts: Iterable[str]) -> str:
    """The names by which a content security policy lets these scripts run, and no others."""
    digests = (hashlib.sha256(source.encode()).digest() for source in scripts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
