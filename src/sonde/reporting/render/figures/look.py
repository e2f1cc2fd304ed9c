"""What all figures share: inks, room for legends, axes, and how words are made safe for plotly.

Colours are for paper. A page with a theme of its own recolours a trace that says `meta.ink`, and
on a phone puts in place what `meta.narrow` holds, by dotted path. Knows no kind of figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from textwrap import wrap
from typing import Any

from sonde.core.reports import Boxes, Estimate, Labelled, Strip
from sonde.reporting.render.cells import Scale, digits_for, known

Drawing = dict[str, Any]
"""A plotly figure as plain data: its traces under `data`, its layout under `layout`."""

# apart from each other for every kind of colour blindness, and 3 to 1 against the page
INKS = ("#0b5394", "#b04a00", "#22a578", "#cf73c4", "#33383d")
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "x")
DASHES = ("solid", "dash", "dot", "dashdot")
TEXT, MUTED, CLEAR = "#1c2126", "#555d66", "rgba(0,0,0,0)"

ROW, SMALLEST = 24, 64  # pixels per label; of a body, so that a legend cannot squeeze it out
WIDE, NARROW = 40, 20  # characters of a label on a page and on a phone
PAGE, PHONE = 880, 340  # pixels that a legend may count on; a page with fewer makes room
LEGEND_ROW, AXIS = 24, 68  # pixels for a row of the legend; for an axis with its title

MIDDLE = {"x": 0.5, "xref": "paper", "y": 0.5, "yref": "paper"}
RIGHT = {"x": 1, "xref": "paper", "xanchor": "right"}


def safe(words: str) -> str:
    """Words as plotly shows them, whatever they hold."""
    return escape(words, quote=False)


def wrapped(words: str, width: int = NARROW * 2) -> str:
    """Words over several lines, so that a hover text fits on a phone."""
    return "<br>".join(safe(line) for line in wrap(words, width) or [""])


def shortened(labels: Sequence[str], width: int) -> list[str]:
    """Labels cut to a width in characters, then escaped (never the other way round)."""
    cut = (s if len(s) <= width else s[: width - 1].rstrip() + "…" for s in labels)
    return [safe(label) for label in cut]


def ink(k: int) -> str:
    """The k-th colour; they come round again."""
    return INKS[k % len(INKS)]


def symbol(k: int) -> str:
    """The k-th symbol, such that ink and symbol together repeat only after 25."""
    return SYMBOLS[(k + k // len(INKS)) % len(SYMBOLS)]


def trace(k: int, texts: Sequence[str] | None, **parts: Any) -> Drawing:
    """A trace in the k-th ink; `texts` are what the pointer reads at its points, None nothing."""
    pointer: Drawing = {"hoverinfo": "skip"}
    if texts is not None:
        pointer = {"customdata": list(texts), "hovertemplate": "%{customdata}<extra></extra>"}
    return {"type": "scatter", "meta": {"ink": k}} | pointer | parts


def whiskers(estimates: Iterable[Estimate], **look: Any) -> Drawing:
    """How far the intervals of some estimates reach; nowhere where one is unknown."""
    reach = [_reach(estimate) for estimate in estimates]
    below, above = [low for low, _ in reach], [high for _, high in reach]
    return {"type": "data", "symmetric": False, "array": above, "arrayminus": below, **look}


def _reach(estimate: Estimate) -> tuple[float, float]:
    value, low, high = known(estimate.value), known(estimate.low), known(estimate.high)
    if value is None or low is None or high is None:
        return 0.0, 0.0
    return max(0.0, value - low), max(0.0, high - value)


def aside(words: str, **place: object) -> Drawing:
    """A small remark in the figure; the place is given as plotly's annotation has it."""
    lines = safe(words).replace("\n", "<br>")
    return {"text": lines, "showarrow": False, "font": {"size": 11, "color": MUTED}, **place}


def mark_line(value: float, top: float = 1) -> Drawing:
    """A dashed line at a place of the x axis, up to a share of the height."""
    return {
        "type": "line", "x0": value, "x1": value, "y0": 0, "y1": top, "yref": "paper",
        "line": {"color": TEXT, "width": 1.5, "dash": "dash"},
    }  # fmt: skip


def legend_rows(names: Sequence[str], width: int) -> int:
    """How many rows a legend takes, whose entries are as wide as the widest of them."""
    return math.ceil(len(names) / max(1, width // entry_width(names)))


def entry_width(names: Sequence[str]) -> int:
    """The pixels of the widest entry of a legend, symbol and all."""
    return 50 + 7 * max((len(name) for name in names), default=0)


def frame(
    body: int,
    names: Sequence[str] = (),
    *,
    top: int = 16,
    bottom: int = AXIS,
    width: int = PAGE,
    axis_on_top: bool = False,
) -> Drawing:
    """A layout without axes: the body's height in pixels, and room for axis and legend."""
    body = max(body, SMALLEST)
    if axis_on_top:
        top, bottom = top + AXIS - 24, 24
    wide, narrow = (legend_rows(names, w) * LEGEND_ROW for w in (width, PHONE))
    return {
        "dragmode": False, "height": top + wide + body + bottom,
        "font": {"family": "Arial, Liberation Sans, Helvetica, sans-serif", "size": 13,
                 "color": TEXT},
        "paper_bgcolor": CLEAR, "plot_bgcolor": CLEAR,
        "margin": {"l": 8, "r": 16, "t": top + wide, "b": bottom},
        "showlegend": bool(names),
        "legend": {"orientation": "h", "x": 0, "xref": "container", "y": 1, "yref": "container",
                   "yanchor": "top", "itemclick": "toggle"},
        "hovermode": "closest", "hoverlabel": {"align": "left"},
        "meta": {"narrow": {"height": top + narrow + body + bottom, "margin.t": top + narrow},
                 "legend": {"entries": len(names), "width": entry_width(names), "row": LEGEND_ROW,
                            "room": {"wide": wide, "narrow": narrow}}},
    }  # fmt: skip


def value_axis(title: str, reach: tuple[float, float], scale: Scale) -> Drawing:
    """An axis of values over this reach; decimals of a percent only where that is small."""
    low, high = reach
    return {
        "title": {"text": safe(title), "standoff": 10, "font": {"size": 13}},
        "range": [low, high], "fixedrange": True,
        "tickformat": f".{digits_for((high - low) / 8)}%" if scale == "percent" else "",
        "nticks": 8, "automargin": False, "gridcolor": "#e3e0d8", "zeroline": True,
        "zerolinecolor": "#8b8f94", "ticks": "",
    }  # fmt: skip


def narrow_axis(title: str) -> Drawing:
    """What changes on a phone for the axis of values: fewer ticks, a title on several lines."""
    return {"xaxis.nticks": 5, "xaxis.title.text": wrapped(title)}


def from_zero(ends: Iterable[float], scale: Scale) -> tuple[float, float]:
    """The reach of an axis that starts at zero where nothing is negative; shares end at 100 %."""
    values = [0.0, *ends]
    low, high = min(values), max(values) or 1.0
    pad = (high - low) * 0.03
    top = min(high + pad, 1.01) if scale == "percent" else high + pad
    return (low - pad if low < 0 else -pad / 2), top


def labelled(
    plot: Labelled | Strip | Boxes,
    row: int,
    ends: Iterable[float],
    names: Sequence[str] = (),
    many: int = 15,
) -> Drawing:
    """The layout of a figure with a row of so many pixels per label, the first at the top.

    The axis of values starts at zero; from `many` labels on it stands at the top, where reading
    begins.
    """
    labels, side = plot.labels, "top" if len(plot.labels) > many else "bottom"
    layout = frame(len(labels) * row, names, axis_on_top=side == "top")
    layout["xaxis"] = value_axis(plot.axis, from_zero(ends, plot.kind), plot.kind) | {"side": side}
    layout["yaxis"] = {
        "tickvals": list(range(len(labels))), "ticktext": shortened(labels, WIDE),
        "range": [len(labels) - 0.4, -0.6], "fixedrange": True, "automargin": True,
        "gridcolor": "#efece5", "zeroline": False, "ticklen": 6, "tickcolor": CLEAR,
    }  # fmt: skip
    phone = {"yaxis.ticktext": shortened(labels, NARROW)} | narrow_axis(plot.axis)
    layout["meta"]["narrow"] |= phone
    return layout
