"""Figures as pictures: a page that a browser is to draw, and the pictures read from what it drew.

A browser, because plotly draws in no other place. Knows nothing of which browser, of processes or
of files. The page fetches nothing and runs only our own scripts, as the report does.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from html import escape, unescape
from textwrap import wrap
from typing import Any, Literal

from markupsafe import Markup

from sonde.core.errors import SondeError
from sonde.core.reports import Figure
from sonde.reporting.render.figures.draw import library, spec
from sonde.reporting.render.markup import asset, policy, rendered

Format = Literal["svg", "png"]

WIDTH = 900  # pixels, where a figure does not want to be narrower
PNG_SCALE = 2  # picture points per pixel
TITLE_LINE = 22  # pixels
NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
MADE = re.compile(r'<pre id="sonde-pictures-(\w+)">(.*?)</pre>', re.DOTALL)


def picture_page(figures: Sequence[Figure], format: Format) -> str:
    """A page that turns each figure into a picture and keeps it as text in its body."""
    scripts = (library(), asset("pictures.js"))
    job = {"format": format, "scale": PNG_SCALE if format == "png" else 1,
           "figures": [framed(figure) for figure in figures]}  # fmt: skip
    values = {"job": job, "policy": policy(scripts), "scripts": [Markup(s) for s in scripts]}
    return rendered("pictures.html", values)


def framed(figure: Figure) -> dict[str, Any]:
    """The figure on white with its title above, for where no page gives it a caption."""
    drawing = spec(figure)
    layout = drawing["layout"]
    width = min(WIDTH, layout.get("meta", {}).get("width", WIDTH))
    scaled = any("colorbar" in trace for trace in drawing["data"])
    lines = wrap(figure.title, (width - 200 if scaled else width) // 8) or [""]
    words = "<b>" + "<br>".join(escape(line, quote=False) for line in lines) + "</b>"
    room, above = 14 + TITLE_LINE * len(lines), layout["margin"]["t"]
    layout["height"] += room
    layout["margin"]["t"] += room
    layout["legend"]["y"] = 1 - room / layout["height"]
    layout["paper_bgcolor"] = layout["plot_bgcolor"] = "#ffffff"
    if scaled:
        layout["annotations"] = [*layout.get("annotations", []), title_remark(words, above)]
    else:
        layout["title"] = title(words)
    return {"data": drawing["data"], "layout": layout, "width": width}


def title(words: str) -> dict[str, Any]:
    """A title in the upper left corner of the picture."""
    return {
        "text": words, "font": {"size": 15}, "x": 0, "xref": "container", "xanchor": "left",
        "y": 1, "yref": "container", "yanchor": "top", "pad": {"l": 8, "t": 10},
    }  # fmt: skip


def title_remark(words: str, above: int) -> dict[str, Any]:
    """A title as a remark so far above the body: plotly pushes others from a scale out of sight."""
    return {
        "text": words, "font": {"size": 15}, "showarrow": False, "align": "left", "x": 0,
        "xref": "paper", "xanchor": "left", "y": 1, "yref": "paper", "yanchor": "bottom",
        "yshift": above,
    }  # fmt: skip


def pictures(figures: Sequence[Figure], format: Format, drawn: str) -> list[bytes]:
    """The pictures of the figures, from the page as the browser left it."""
    found = {name: unescape(text) for name, text in MADE.findall(drawn)}
    if "error" in found:
        raise SondeError(f"the browser could not draw a figure: {found['error']}")
    if "done" not in found:
        raise SondeError(
            "the browser did not finish drawing the figures; update it, or name another one in "
            "the environment variable SONDE_BROWSER"
        )
    made = [found[str(k)] for k in range(len(figures))]
    if format == "png":
        return [base64.b64decode(text.partition(",")[2] or text) for text in made]
    return [named(text, figure).encode() for text, figure in zip(made, figures, strict=True)]


def named(svg: str, figure: Figure) -> str:
    """The drawing with a title and a description, for those who cannot see it."""
    words = f"<title>{escape(figure.title)}</title>"
    words += f"<desc>{escape(figure.note)}</desc>" if figure.note else ""
    head, end, rest = svg.partition(">")
    whole = f'{head} role="img"{end}{words}{rest}\n'
    return NOT_XML.sub("\N{REPLACEMENT CHARACTER}", whole)
