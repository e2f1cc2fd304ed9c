"""Figures drawn by plotly, and the only place that knows its name: plain data in, plain data out.

`spec` is what `library` draws on a page, `room` how much of the page it takes, `framed` the same as
a picture of its own. A new kind of figure is one more function in `KINDS`, and one registered with
`sonde.reporting.render.numbers.to_table`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from textwrap import wrap
from typing import Any, cast

from sonde.core.reports import Bars, Boxes, Curves, DotPlot, Figure, HeatMap, Histogram, Strip
from sonde.reporting.render.figures.curves import curves, histogram
from sonde.reporting.render.figures.look import Drawing
from sonde.reporting.render.figures.rows import bars, boxes, dot_plot, heat_map, strip
from sonde.reporting.render.json import plain

KINDS: Mapping[type, Callable[[Any], Drawing]] = {
    Bars: bars,
    Boxes: boxes,
    Curves: curves,
    DotPlot: dot_plot,
    HeatMap: heat_map,
    Histogram: histogram,
    Strip: strip,
}
WIDTH = 900  # pixels of a picture, where a figure does not want to be narrower
TITLE_LINE = 22  # pixels


def spec(figure: Figure) -> dict[str, Any]:
    """Any kind of figure as the data that `library` draws: its traces and its layout."""
    if type(figure) not in KINDS:
        raise TypeError(f"no drawing of {type(figure).__name__}; add one to figures.KINDS")
    return cast(dict[str, Any], plain(KINDS[type(figure)](figure)))


def library() -> str:
    """The JavaScript that draws the specs, some 5 MB."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def room(spec: Mapping[str, Any]) -> str:
    """A figure's place on the page: its height, and its width where it wants no more."""
    layout = spec["layout"]
    widest = layout["meta"].get("width")
    return f"height:{layout['height']}px" + (f";max-width:{widest}px" if widest else "")


def framed(figure: Figure) -> dict[str, Any]:
    """The figure on white with its title above, for where no page gives it a caption."""
    drawing = spec(figure)
    layout = drawing["layout"]
    width = min(WIDTH, layout["meta"].get("width", WIDTH))
    scaled = any("colorbar" in trace for trace in drawing["data"])
    lines = wrap(figure.title, (width - 200 if scaled else width) // 8) or [""]
    words = "<b>" + "<br>".join(escape(line, quote=False) for line in lines) + "</b>"
    above, more = layout["margin"]["t"], 14 + TITLE_LINE * len(lines)
    layout["height"] += more
    layout["margin"]["t"] += more
    layout["legend"]["y"] = 1 - more / layout["height"]
    layout["paper_bgcolor"] = layout["plot_bgcolor"] = "#ffffff"
    if scaled:
        layout["annotations"] = [*layout.get("annotations", []), title_remark(words, above)]
    else:
        layout["title"] = title(words)
    return {"data": drawing["data"], "layout": layout, "width": width}


def title(words: str) -> Drawing:
    """A title in the upper left corner of the picture."""
    return {
        "text": words, "font": {"size": 15}, "x": 0, "xref": "container", "xanchor": "left",
        "y": 1, "yref": "container", "yanchor": "top", "pad": {"l": 8, "t": 10},
    }  # fmt: skip


def title_remark(words: str, above: int) -> Drawing:
    """A title as a remark so far above the body: plotly pushes others from a scale out of sight."""
    return {
        "text": words, "font": {"size": 15}, "showarrow": False, "align": "left", "x": 0,
        "xref": "paper", "xanchor": "left", "y": 1, "yref": "paper", "yanchor": "bottom",
        "yshift": above,
    }  # fmt: skip
