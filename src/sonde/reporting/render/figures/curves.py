"""Figures over a pair of axes: curves through points, and histograms with named places marked."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from sonde.core.reports import Curve, Curves, Estimate, Histogram
from sonde.reporting.render.cells import Scale, fixed, known, share, told
from sonde.reporting.render.figures.look import (
    CLEAR,
    DASHES,
    INKS,
    MIDDLE,
    MUTED,
    PAGE,
    PHONE,
    RIGHT,
    Drawing,
    aside,
    frame,
    from_zero,
    ink,
    mark_line,
    narrow_axis,
    safe,
    symbol,
    trace,
    value_axis,
    whiskers,
    wrapped,
)
from sonde.reporting.render.numbers import bin_name, narrowest

SIDE, WIDTH = 460, 620  # pixels: with the labels of its axis the body is about a square
SMALL, LARGE = 7, 20  # diameters of points in pixels
BODY, LEVEL = 240, 18  # pixels of a histogram's bars; of one line of labels above them
APART = {"ticks": "outside", "ticklen": 6, "tickcolor": CLEAR}  # numbers off the corner


def curves(plot: Curves) -> Drawing:
    """Lines with points; a point's area follows its size, the diagonal is a dotted line."""
    largest = max((n for curve in plot.curves for n in curve.sizes), default=0)
    traces = [line(plot, curve, k, largest) for k, curve in enumerate(plot.curves)]
    names = [curve.name for curve in plot.curves] + (["both equal"] if plot.diagonal else [])
    layout = frame(SIDE, names, width=WIDTH)
    x_reach, y_reach = reaches(plot)
    layout["xaxis"] = x_axis(plot, x_reach)
    layout["yaxis"] = value_axis(plot.y_axis, y_reach, plot.kind) | {"automargin": True}
    layout["annotations"] = key(plot, largest) + list(mark_labels(plot, x_reach))
    layout["shapes"] = [mark_line(value) for _, value in plot.marks]
    layout["meta"]["width"] = WIDTH
    narrow = layout["meta"]["narrow"]
    narrow |= narrow_axis(plot.x_axis) | {"height": narrow["height"] - SIDE + 320}
    narrow |= {"yaxis.title.text": wrapped(plot.y_axis)}
    return {"data": ([diagonal(plot)] if plot.diagonal else []) + traces, "layout": layout}


def line(plot: Curves, curve: Curve, k: int, largest: int) -> Drawing:
    """One curve: a line through the points that were measured."""
    kept = points(curve)
    made = trace(
        k,
        [pointed(plot, curve, i) for i in kept],
        mode="lines+markers" if curve.joined else "markers",
        name=safe(curve.name),
        x=[curve.x[i] for i in kept],
        y=[curve.y[i] for i in kept],
        line={"color": ink(k), "width": 1.5, "dash": DASHES[k // len(INKS) % len(DASHES)]},
        marker={
            "symbol": symbol(k),
            "color": ink(k),
            "size": [diameter(curve.sizes[i], largest) for i in kept] if curve.sizes else 8,
            "opacity": 0.8,
        },
        cliponaxis=False,
    )
    if not curve.low:
        return made
    estimates = (
        Estimate(value=curve.y[i], low=curve.low[i], high=curve.high[i], n=1) for i in kept
    )
    return made | {"error_y": whiskers(estimates, thickness=1.2, width=3, color=ink(k))}


def points(curve: Curve) -> list[int]:
    """The points to draw: both coordinates known, and something in the bin."""
    return [
        i
        for i, (x, y) in enumerate(zip(curve.x, curve.y, strict=True))
        if known(x) is not None and known(y) is not None and (not curve.sizes or curve.sizes[i])
    ]


def diameter(n: int, largest: int) -> float:
    """The diameter of a point whose area follows n.

    >>> diameter(100, 100), diameter(25, 100), diameter(1, 10000)
    (20.0, 10.0, 7.0)
    """
    return float(max(SMALL, round(LARGE * (n / largest) ** 0.5, 1))) if largest else float(SMALL)


def pointed(plot: Curves, curve: Curve, i: int) -> str:
    """What the pointer reads at a point: curve, both coordinates, interval, size."""
    parts = [
        f"<b>{wrapped(curve.name)}</b>",
        f"{wrapped(plot.x_axis)}: {safe(place(plot, curve.x[i]))}",
        f"{wrapped(plot.y_axis)}: {safe(told(curve.y[i], plot.kind))}",
    ]
    if curve.low:
        ends = (told(end, plot.kind) for end in (curve.low[i], curve.high[i]))
        parts.append(safe("[{}, {}]".format(*ends)))
    parts += [f"n = {fixed(curve.sizes[i], 0)}"] if curve.sizes else []
    return "<br>".join(parts)


def place(plot: Curves, x: float) -> str:
    """A place on the x axis in words."""
    if plot.x_labels:
        return plot.x_labels[round(x)]
    counted = plot.x_kind == "number" and float(x).is_integer()
    return fixed(x, 0) if counted else told(x, x_kind(plot))


def diagonal(plot: Curves) -> Drawing:
    """Where x and y are equal, over the whole reach of the axes."""
    ends = [end for reach in reaches(plot) for end in reach]
    low, high = (0.0, 1.0) if plot.kind == "percent" else (min(ends), max(ends))
    return {
        "type": "scatter", "mode": "lines", "name": "both equal", "x": [low, high],
        "y": [low, high], "line": {"color": MUTED, "width": 1.5, "dash": "dot"},
        "hoverinfo": "skip", "meta": {"ink": "muted"}, "legendrank": 2000,
    }  # fmt: skip


def reaches(plot: Curves) -> tuple[tuple[float, float], tuple[float, float]]:
    """How far the axes reach; a diagonal of shares has the whole square, others share theirs."""
    xs = [value for _, value in plot.marks]
    ys: list[float] = []
    for curve in plot.curves:
        for i in points(curve):
            xs.append(curve.x[i])
            ys += [curve.y[i], *curve.low[i : i + 1], *curve.high[i : i + 1]]
    if not plot.diagonal:
        return from_zero(xs, x_kind(plot)), from_zero(ys, plot.kind)
    both = (-0.02, 1.02) if plot.kind == "percent" else from_zero(xs + ys, plot.kind)
    return both, both


def key(plot: Curves, largest: int) -> list[Drawing]:
    """What the size of a point means, and a word where no curve has a point."""
    if not any(points(curve) for curve in plot.curves):
        return [aside("not measured", **MIDDLE)]
    corner = {"y": 0, "yref": "paper", "yanchor": "bottom", "yshift": 12, **RIGHT}
    words = f"larger points stand for more, at most {fixed(largest, 0)}"
    return [aside(words, **corner)] if largest else []


def x_axis(plot: Curves, reach: tuple[float, float]) -> Drawing:
    """The axis below: of values, or with labels at equal distances."""
    axis = value_axis(plot.x_axis, reach, x_kind(plot))
    if not plot.x_labels:
        return axis
    places = list(range(len(plot.x_labels)))
    texts = [safe(label) for label in plot.x_labels]
    ends = [-0.4, len(places) - 0.6]
    return axis | {"tickvals": places, "ticktext": texts, "range": ends, "zeroline": False}


def x_kind(plot: Curves) -> Scale:
    """How places on the x axis are written."""
    return plot.x_kind or plot.kind


def mark_labels(plot: Curves, reach: tuple[float, float]) -> Iterator[Drawing]:
    """The names of the marks beside their lines, on the side that has more room."""
    for i, (name, value) in enumerate(plot.marks):
        side, shift = ("left", 4) if value < sum(reach) / 2 else ("right", -4)
        yield aside(name, x=value, xanchor=side, y=1, yref="paper", yanchor="top", xshift=shift,
                    yshift=-16 * i)  # fmt: skip


def histogram(plot: Histogram) -> Drawing:
    """Bars without gaps, and a dashed line with its label for every mark."""
    wide, narrow = levels(plot, PAGE), levels(plot, PHONE)
    room = [16 + LEVEL * (1 + max(used, default=-1)) for used in (wide, narrow)]
    top = max(plot.counts, default=0) * 1.03 or 1.0
    layout = frame(BODY, top=room[0]) | {"bargap": 0} | marked(plot, wide)
    # the axis of values need not start at zero, for nothing is measured from there
    values = value_axis(plot.axis, reach(plot), plot.kind) | {"zeroline": False}
    counts = value_axis("count", (0.0, top), "number")
    layout["xaxis"] = values | APART
    layout["yaxis"] = counts | APART | {"tickformat": ",d", "nticks": 5, "automargin": True}
    layout["meta"]["width"] = 900
    phone = {"height": layout["height"] + room[1] - room[0], "margin.t": room[1]}
    layout["meta"]["narrow"] |= phone | marked(plot, narrow) | narrow_axis(plot.axis)
    return {"data": [bins(plot)], "layout": layout}


def bins(plot: Histogram) -> Drawing:
    """The bars, each over its bin; the pointer reads its bin, its count and its share of all."""
    pairs, total = list(pairwise(plot.edges)), sum(plot.counts)
    texts = []
    for i, count in enumerate(plot.counts):
        part = f" ({safe(share(count / total))} of {fixed(total, 0)})" if total else ""
        texts.append(f"<b>{safe(bin_name(plot, i))}</b><br>{fixed(count, 0)}{part}")
    return trace(
        0, texts, type="bar", x=[(a + b) / 2 for a, b in pairs], y=list(plot.counts),
        width=[b - a for a, b in pairs],
        marker={"color": ink(0), "opacity": 0.75, "line": {"width": 0}},
    )  # fmt: skip


def reach(plot: Histogram) -> tuple[float, float]:
    """From the first edge to the last, and as far as any mark."""
    places = [*plot.edges, *(value for _, value in plot.marks)]
    pad = (max(places) - min(places)) * 0.02 or 0.5
    return min(places) - pad, max(places) + pad


def label(plot: Histogram, mark: tuple[str, float]) -> str:
    """A mark's name and place in words."""
    name = mark[0] if len(mark[0]) <= 40 else mark[0][:39] + "…"
    return f"{name} {told(mark[1], plot.kind, narrowest(plot))}"


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
        start = (mark[1] - low) / (high - low) * (width - 70) - shift * long
        end = start + long
        free = (k for k, row in enumerate(taken) if all(end <= a or b <= start for a, b in row))
        chosen.append(next(free))
        taken[chosen[-1]].append((start, end))
    return chosen


def marked(plot: Histogram, used: list[int]) -> Drawing:
    """A dashed line at every mark up to its name above the bars; a word if nothing was counted."""
    lines, names = [], []
    for mark, level in zip(plot.marks, used, strict=True):
        lines.append(mark_line(mark[1], 1 + level * LEVEL / BODY))
        name = aside(label(plot, mark), x=mark[1], xanchor=side(plot, mark[1]), y=1, yref="paper",
                     yanchor="bottom", yshift=level * LEVEL, bgcolor="#ffffff",
                     borderpad=0)  # fmt: skip
        names.append(name)
    if not any(plot.counts):
        names.append(aside("not measured", **MIDDLE))
    return {"shapes": lines, "annotations": names}
