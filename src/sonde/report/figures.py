"""Turn figures from plain data into plotly figures. Knows nothing of pages or themes.

A new kind of figure is one more function registered with `to_plotly`, and one with `to_table`
where its numbers are few enough to read. Colours are for paper; a trace that says `meta.ink = k`
asks a themed page for its k-th colour instead.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import singledispatch
from html import escape
from typing import TYPE_CHECKING, Any

from sonde.core.reports import Column, DotPlot, Estimate, Series, Table
from sonde.report.cells import Scale, known, written

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

INKS = ("#0b5394", "#b45309", "#2e7d32", "#7b3fa0", "#5b6470")
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "x")
ROW, HEAD = 24, 84  # pixels per label; pixels for the axis and the legend
WIDE, NARROW = 40, 20  # characters of a label on a page and on a phone
MANY = 15  # labels from which the axis stands at the top, where reading begins


@singledispatch
def to_plotly(figure: object) -> Figure:
    """The plotly figure of any kind of figure a report can hold."""
    raise TypeError(f"no plotly figure for {type(figure).__name__}; register one with to_plotly")


@singledispatch
def to_table(figure: object) -> Table | None:
    """The numbers of a figure, for those who cannot or would rather not see it; None if many."""
    return None


def to_spec(figure: Figure) -> dict[str, Any]:
    """The figure as plotly's JSON, ready to be embedded in a page."""
    spec: dict[str, Any] = json.loads(figure.to_json())
    return spec


def plotly_js() -> str:
    """The JavaScript that draws the specs, some 5 MB."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


@to_plotly.register(DotPlot)
def dot_plot(plot: DotPlot) -> Figure:
    """Dots with interval whiskers, one row per label, series side by side within the row."""
    from plotly.graph_objects import Figure

    lanes = offsets(len(plot.series))
    rows = enumerate(plot.series)
    traces = [dots(plot.labels, series, plot.kind, k, lanes[k]) for k, series in rows]
    return Figure(data=traces, layout=layout(plot, plot.kind))


@to_table.register(DotPlot)
def dot_table(plot: DotPlot) -> Table:
    """One row per label, one column per series."""
    columns = (Column(title=""), *(Column(title=s.name, kind=plot.kind) for s in plot.series))
    values = zip(*(s.values for s in plot.series), strict=True)
    rows = tuple((label, *v) for label, v in zip(plot.labels, values, strict=True))
    return Table(id=f"{plot.id}-numbers", title=plot.title, columns=columns, rows=rows)


def dots(
    labels: Sequence[str], series: Series, scale: Scale, k: int, lane: float
) -> dict[str, Any]:
    """One series: a scatter trace with a dot and a whisker for every measured estimate."""
    rows = [(i, e) for i, e in enumerate(series.values) if known(e.value) is not None]
    ink = INKS[k % len(INKS)]
    reach = [whisker(e) for _, e in rows]
    bars = {"type": "data", "symmetric": False, "thickness": 1.5, "width": 0, "color": ink}
    return {
        "type": "scatter", "mode": "markers", "name": escape(series.name, quote=False),
        "x": [e.value for _, e in rows], "y": [i + lane for i, _ in rows],
        "error_x": bars | {"array": [r[1] for r in reach], "arrayminus": [r[0] for r in reach]},
        "marker": {"symbol": SYMBOLS[k % len(SYMBOLS)], "size": 8, "color": ink},
        "customdata": [hover(labels[i], series.name, e, scale) for i, e in rows],
        "hovertemplate": "%{customdata}<extra></extra>", "meta": {"ink": k % len(INKS)},
    }  # fmt: skip


def whisker(estimate: Estimate) -> tuple[float, float]:
    """How far the interval reaches below and above the value; nowhere when it is unknown."""
    value, low, high = known(estimate.value), known(estimate.low), known(estimate.high)
    if value is None or low is None or high is None:
        return 0.0, 0.0
    return max(0.0, value - low), max(0.0, high - value)


def hover(label: str, name: str, estimate: Estimate, scale: Scale) -> str:
    """What the pointer reads: label, series, value, interval and n; escaped, as plotly needs."""
    words = written(estimate, scale)
    safe = (escape(part, quote=False) for part in (label, name))
    first = "<b>{}</b><br>{}".format(*safe)
    return f"{first}: {escape(words.value)} {words.interval}<br>{words.n}"


def offsets(count: int) -> list[float]:
    """Where each series sits within its row, evenly about the middle.

    >>> offsets(1), offsets(2)
    ([0.0], [-0.15, 0.15])
    """
    step = min(0.3, 0.7 / max(1, count))
    return [step * (k - (count - 1) / 2) for k in range(count)]


def layout(plot: DotPlot, scale: Scale) -> dict[str, Any]:
    """Axes, legend and height; the height follows the number of labels and series."""
    many, rows = len(plot.labels) > MANY, len(plot.labels)
    row = ROW + 6 * max(0, len(plot.series) - 2)
    return {
        "template": "none", "height": HEAD + rows * row + 24, "dragmode": False,
        "font": {"family": "sans-serif", "size": 13, "color": "#1c2126"},
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 8, "r": 16, "t": HEAD if many else 40, "b": 24 if many else 56},
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "xref": "container", "y": 1, "yref": "container",
                   "yanchor": "top", "itemclick": "toggle"},
        "hovermode": "closest", "hoverlabel": {"align": "left"},
        "xaxis": x_axis(plot, scale) | {"side": "top" if many else "bottom"},
        "yaxis": y_axis(plot.labels, WIDE), "annotations": gaps(plot),
        "meta": {"narrow": {"ticktext": shortened(plot.labels, NARROW)}},
    }  # fmt: skip


def x_axis(plot: DotPlot, scale: Scale) -> dict[str, Any]:
    """The axis of values: from zero where nothing is negative, shares at most to 100 %."""
    ends = [
        end
        for series in plot.series
        for e in series.values
        for end in (known(e.value), known(e.low), known(e.high))
        if end is not None
    ]
    low, high = min([0.0, *ends]), max([*ends, 0.0]) or 1.0
    pad = (high - low) * 0.03
    top = min(high + pad, 1.01) if scale == "percent" else high + pad
    return {
        "title": {"text": escape(plot.axis, quote=False), "standoff": 10, "font": {"size": 13}},
        "range": [low - pad if low < 0 else -pad / 2, top], "fixedrange": True,
        "tickformat": ".0%" if scale == "percent" else "", "nticks": 8, "automargin": False,
        "gridcolor": "#e3e0d8", "zeroline": True, "zerolinecolor": "#8b8f94", "ticks": "",
    }  # fmt: skip


def y_axis(labels: Sequence[str], width: int) -> dict[str, Any]:
    """One row per label, the first at the top."""
    return {
        "tickvals": list(range(len(labels))), "ticktext": shortened(labels, width),
        "range": [len(labels) - 0.4, -0.6], "fixedrange": True, "automargin": True,
        "gridcolor": "#efece5", "zeroline": False, "ticklen": 6, "tickcolor": "rgba(0,0,0,0)",
    }  # fmt: skip


def shortened(labels: Sequence[str], width: int) -> list[str]:
    """Labels cut to a width in characters, then escaped (never the other way round)."""
    cut = (s if len(s) <= width else s[: width - 1].rstrip() + "…" for s in labels)
    return [escape(label, quote=False) for label in cut]


def gaps(plot: DotPlot) -> list[dict[str, Any]]:
    """A word in each row where something was not measured, so that no dot is not read as zero."""
    notes = []
    for i in range(len(plot.labels)):
        missing = [s.name for s in plot.series if known(s.values[i].value) is None]
        if missing:
            which = "" if len(missing) == len(plot.series) else ", ".join(missing) + " "
            notes.append(
                {"text": escape(f"{which}not measured", quote=False), "x": 1, "xref": "paper",
                 "xanchor": "right", "y": i, "showarrow": False, "font": {"size": 11}}
            )  # fmt: skip
    return notes
