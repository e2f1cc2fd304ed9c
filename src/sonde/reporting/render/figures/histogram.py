"""How often values fall between edges, with named places marked."""

from __future__ import annotations

from itertools import pairwise

from sonde.core.reports import Cell, Column, Histogram, Table
from sonde.reporting.render.cells import fixed, share
from sonde.reporting.render.figures.look import (
    PAGE,
    PHONE,
    Drawing,
    aside,
    frame,
    ink,
    narrow_axis,
    numbers,
    safe,
    told,
    value_axis,
)

BODY, LEVEL = 240, 18  # pixels of the bars; of one line of labels above them
APART = {"ticks": "outside", "ticklen": 6, "tickcolor": "rgba(0,0,0,0)"}  # numbers off the corner


def histogram(plot: Histogram) -> Drawing:
    """Bars without gaps, and a dashed line with its label for every mark."""
    wide, narrow = levels(plot, PAGE), levels(plot, PHONE)
    room = [16 + LEVEL * (1 + max(used, default=-1)) for used in (wide, narrow)]
    layout = frame(BODY, (), top=room[0])
    layout |= {"xaxis": axis(plot), "yaxis": counts_axis(plot), "bargap": 0,
               "shapes": lines(plot, wide), "annotations": labels(plot, wide)}  # fmt: skip
    layout["meta"]["width"] = 900
    layout["meta"]["narrow"] |= {
        "height": layout["height"] + room[1] - room[0], "margin.t": room[1],
        "shapes": lines(plot, narrow), "annotations": labels(plot, narrow),
    } | narrow_axis(plot.axis)  # fmt: skip
    return {"data": [bins(plot)], "layout": layout}


def histogram_table(plot: Histogram) -> Table:
    """The marks, then one row per bin; empty bins before the first and after the last left out."""
    columns = (Column(title=plot.axis), Column(title="count", kind="count"))
    marks: list[tuple[Cell, ...]] = [
        (f"{name}: {told(value, plot.kind, step(plot))}", None) for name, value in plot.marks
    ]
    filled = [i for i, count in enumerate(plot.counts) if count]
    kept = range(filled[0], filled[-1] + 1) if filled else range(0)
    rows: list[tuple[Cell, ...]] = [(between(plot, i), plot.counts[i]) for i in kept]
    return numbers(plot, columns, marks + rows)


def bins(plot: Histogram) -> Drawing:
    """The bars, each over its bin."""
    pairs = list(pairwise(plot.edges))
    return {
        "type": "bar", "x": [(a + b) / 2 for a, b in pairs], "y": list(plot.counts),
        "width": [b - a for a, b in pairs],
        "marker": {"color": ink(0), "opacity": 0.75, "line": {"width": 0}},
        "customdata": [pointed(plot, i) for i in range(len(pairs))],
        "hovertemplate": "%{customdata}<extra></extra>", "meta": {"ink": 0},
    }  # fmt: skip


def pointed(plot: Histogram, i: int) -> str:
    """What the pointer reads at a bar: its bin, its count and its share of all."""
    total = sum(plot.counts)
    part = f" ({safe(share(plot.counts[i] / total))} of {fixed(total, 0)})" if total else ""
    return f"<b>{safe(between(plot, i))}</b><br>{fixed(plot.counts[i], 0)}{part}"


def between(plot: Histogram, i: int) -> str:
    """A bin in words."""
    low, high = (told(edge, plot.kind, step(plot)) for edge in plot.edges[i : i + 2])
    return f"{low} to {high}"


def step(plot: Histogram) -> float:
    """The width of the narrowest bin."""
    return min((b - a for a, b in pairwise(plot.edges)), default=0.0)


def reach(plot: Histogram) -> tuple[float, float]:
    """From the first edge to the last, and as far as any mark."""
    places = [*plot.edges, *(value for _, value in plot.marks)]
    pad = (max(places) - min(places)) * 0.02 or 0.5
    return min(places) - pad, max(places) + pad


def axis(plot: Histogram) -> Drawing:
    """The axis of values; it need not start at zero, for nothing is measured from there."""
    return value_axis(plot.axis, reach(plot), plot.kind) | {"zeroline": False} | APART


def counts_axis(plot: Histogram) -> Drawing:
    """The axis of counts, from zero."""
    top = max(plot.counts, default=0) * 1.03 or 1.0
    return value_axis("count", (0.0, top), "number") | {
        "tickformat": ",d", "nticks": 5, "automargin": True,
    } | APART  # fmt: skip


def label(plot: Histogram, mark: tuple[str, float]) -> str:
    """A mark's name and place in words."""
    name = mark[0] if len(mark[0]) <= 40 else mark[0][:39] + "…"
    return f"{name} {told(mark[1], plot.kind, step(plot))}"


def side(plot: Histogram, value: float) -> str:
    """Which end of its label stands at a mark, so that no label leaves the figure."""
    low, high = reach(plot)
    place = (value - low) / (high - low)
    return "left" if place < 0.2 else "right" if place > 0.8 else "center"


def levels(plot: Histogram, width: int) -> list[int]:
    """The line on which each mark's label stands, the lowest where it meets no other."""
    low, high = reach(plot)
    taken: list[list[tuple[float, float]]] = [[] for _ in plot.marks]
    chosen = []
    for mark in plot.marks:
        long = 7.0 * len(label(plot, mark)) + 12
        shift = {"left": 0.0, "center": 0.5, "right": 1.0}[side(plot, mark[1])]
        left = (mark[1] - low) / (high - low) * (width - 70) - shift * long
        span = (left, left + long)
        free = (k for k, row in enumerate(taken) if all(apart(span, other) for other in row))
        chosen.append(next(free))
        taken[chosen[-1]].append(span)
    return chosen


def apart(a: tuple[float, float], b: tuple[float, float]) -> bool:
    """Whether two spans do not overlap."""
    return a[1] <= b[0] or b[1] <= a[0]


def lines(plot: Histogram, used: list[int]) -> list[Drawing]:
    """A dashed line at every mark, up to its label."""
    return [
        {"type": "line", "x0": value, "x1": value, "y0": 0, "y1": 1 + level * LEVEL / BODY,
         "yref": "paper", "line": {"color": "#1c2126", "width": 1.5, "dash": "dash"}}
        for (_, value), level in zip(plot.marks, used, strict=True)
    ]  # fmt: skip


def labels(plot: Histogram, used: list[int]) -> list[Drawing]:
    """The names of the marks above the bars, and a word where nothing was counted."""
    made = [
        aside(label(plot, mark), x=mark[1], xanchor=side(plot, mark[1]), y=1, yref="paper",
              yanchor="bottom", yshift=level * LEVEL, bgcolor="#ffffff", borderpad=0)
        for mark, level in zip(plot.marks, used, strict=True)
    ]  # fmt: skip
    if not any(plot.counts):
        made.append(aside("not measured", x=0.5, xref="paper", y=0.5, yref="paper"))
    return made
