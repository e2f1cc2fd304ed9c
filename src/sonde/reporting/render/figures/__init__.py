"""Figures drawn as SVG, by nothing but this folder: plain data in, text out.

`svg` is a figure as a picture of its own, for files and notebooks; `on_page` the same for a page of
ours, drawn for a desk and for a phone, in the colours of the page's theme. A new kind of figure is
one more function in `KINDS`, and one registered with `sonde.reporting.render.numbers.to_table`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sonde.core.reports import (
    Bars,
    Boxes,
    Curves,
    DotPlot,
    Figure,
    HeatMap,
    HeatStrip,
    Histogram,
    Strip,
)
from sonde.reporting.render.figures.canvas import Canvas, safe
from sonde.reporting.render.figures.curves import curves
from sonde.reporting.render.figures.heat import heat_map, heat_strip
from sonde.reporting.render.figures.look import heading
from sonde.reporting.render.figures.rows import bars, dot_plot
from sonde.reporting.render.figures.spots import boxes, histogram, strip

KINDS: Mapping[type, Callable[[Canvas, Any], None]] = {
    Bars: bars,
    Boxes: boxes,
    Curves: curves,
    DotPlot: dot_plot,
    HeatMap: heat_map,
    HeatStrip: heat_strip,
    Histogram: histogram,
    Strip: strip,
}
WIDE, NARROW = 840, 360  # pixels of a figure at a desk and on a phone
MARGIN = 12  # pixels about a picture of its own


class OnPage(NamedTuple):
    """A figure for a desk, the same for a phone, and what the pointer reads at its points."""

    wide: str
    narrow: str
    tips: list[str]


def svg(figure: Figure, width: int = WIDE) -> str:
    """A figure as a picture of its own, so many pixels wide: on white, with its title above."""
    canvas = Canvas(width - 2 * MARGIN)
    heading(canvas, figure.title)
    drawn(canvas, figure)
    words = f"<title>{safe(figure.title)}</title>"
    words += f"<desc>{safe(figure.note)}</desc>" if figure.note else ""
    return canvas.framed(words, MARGIN)


def on_page(figure: Figure) -> OnPage:
    """A figure for a page whose style sheet has the colours; `tips` are those of both drawings."""
    wide, narrow = (drawn(Canvas(width, colours=None), figure) for width in (WIDE, NARROW))
    return OnPage(wide.svg(class_="wide"), narrow.svg(class_="narrow"), wide.tips)


def drawn(canvas: Canvas, figure: Figure) -> Canvas:
    """The canvas with the figure on it."""
    if type(figure) not in KINDS:
        raise TypeError(f"no drawing of {type(figure).__name__}; add one to figures.KINDS")
    KINDS[type(figure)](canvas, figure)
    return canvas
