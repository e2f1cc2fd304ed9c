"""Write HTML that cannot be broken out of. Knows nothing of reports.

Text becomes `Markup` only by being escaped, and elements take only `Markup`, so the type checker
refuses a page with unescaped text in it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from typing import NewType

Markup = NewType("Markup", str)

EMPTY = Markup("")
UNSAFE_IN_JSON = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def text(words: str) -> Markup:
    """Words as they are, whatever they hold.

    >>> text("</script>")
    '&lt;/script&gt;'
    """
    return Markup(escape(words))


def tag(name: str, *children: Markup, attributes: Mapping[str, str] | None = None) -> Markup:
    """An element with its children; attribute values are escaped here.

    >>> tag("p", text("a < b"), attributes={"class": "note"})
    '<p class="note">a &lt; b</p>'
    """
    written = "".join(f' {key}="{escape(value)}"' for key, value in (attributes or {}).items())
    return Markup(f"<{name}{written}>{''.join(children)}</{name}>")


def styled(name: str, css: str, *children: Markup) -> Markup:
    """An element of a class."""
    return tag(name, *children, attributes={"class": css})


def join(parts: Iterable[Markup]) -> Markup:
    """The parts one after another, a line each."""
    return Markup("\n".join(parts))


def json_block(value: object, id: str = "") -> Markup:
    """Data for a script to read: JSON in which nothing can end the element it stands in."""
    data = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    attributes = {"type": "application/json"} | ({"id": id} if id else {})
    return tag("script", Markup(data.translate(UNSAFE_IN_JSON)), attributes=attributes)


def asset(name: str) -> str:
    """The text of one of our own files."""
    return (files("sonde.reporting.render") / "assets" / name).read_text(encoding="utf-8")


def script(source: str) -> Markup:
    """Our own source as a script element."""
    return tag("script", Markup(source))


def hash_of(source: str) -> str:
    """The name by which a content security policy lets this script run, and no other."""
    digest = hashlib.sha256(source.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
