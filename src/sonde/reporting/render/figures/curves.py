"""Curves through points over one pair of axes, such as calibration curves of several models."""

from __future__ import annotations

from sonde.core.reports import Cell, Column, Curve, Curves, Estimate, Table
from sonde.reporting.render.cells import Scale, fixed, known
from sonde.reporting.render.figures.look import (
    DASHES,
    INKS,
    MUTED,
    Drawing,
    aside,
    frame,
    from_zero,
    ink,
    narrow_axis,
    numbers,
    safe,
    symbol,
    told,
    value_axis,
    whisker,
    wrapped,
)

SIDE, WIDTH = 460, 620  # pixels: with the labels of its axis the body is about a square
SMALL, LARGE = 7, 20  # diameters of points in pixels


def curves(plot: Curves) -> Drawing:
    """Lines with points; a point's area follows its size, the diagonal is a dotted line."""
    largest = max((n for curve in plot.curves for n in curve.sizes), default=0)
    traces = [line(plot, curve, k, largest) for k, curve in enumerate(plot.curves)]
    names = [curve.name for curve in plot.curves] + (["both equal"] if plot.diagonal else [])
    layout = frame(SIDE, names, width=WIDTH)
    (left, right), (bottom, top) = reaches(plot)
    y_axis = value_axis(plot.y_axis, (bottom, top), plot.kind) | {"automargin": True}
    layout |= {"xaxis": x_axis(plot, (left, right)), "yaxis": y_axis,
               "annotations": key(plot, largest) + mark_labels(plot, (left, right)),
               "shapes": mark_lines(plot)}  # fmt: skip
    layout["meta"]["width"] = WIDTH
    narrow = layout["meta"]["narrow"]
    narrow |= narrow_axis(plot.x_axis) | {"height": narrow["height"] - SIDE + 320}
    narrow |= {"yaxis.title.text": wrapped(plot.y_axis)}
    return {"data": ([diagonal(plot)] if plot.diagonal else []) + traces, "layout": layout}


def curves_table(plot: Curves) -> Table:
    """One row per point of each curve."""
    sized, spread = (any(getattr(c, part) for c in plot.curves) for part in ("sizes", "low"))
    columns = [Column(title="curve"),
               Column(title=plot.x_axis, kind="text" if plot.x_labels else x_kind(plot)),
               Column(title=plot.y_axis, kind=plot.kind)]  # fmt: skip
    columns += [Column(title=end, kind=plot.kind) for end in ("from", "to")] if spread else []
    columns += [Column(title="n", kind="count")] if sized else []
    rows: list[tuple[Cell, ...]] = []
    for curve in plot.curves:
        for i, (x, y) in enumerate(zip(curve.x, curve.y, strict=True)):
            ends = (known(curve.low[i]), known(curve.high[i])) if curve.low else (None, None)
            count = (curve.sizes[i] if curve.sizes else None,) if sized else ()
            at = plot.x_labels[round(x)] if plot.x_labels else known(x)
            rows.append((curve.name, at, known(y), *(ends if spread else ()), *count))
    return numbers(plot, columns, rows)


def line(plot: Curves, curve: Curve, k: int, largest: int) -> Drawing:
    """One curve: a line through the points that were measured."""
    kept = points(curve)
    sizes = [diameter(curve.sizes[i], largest) for i in kept] if curve.sizes else 8
    return whiskers(curve, kept, k) | {
        "type": "scatter", "mode": "lines+markers" if curve.joined else "markers",
        "name": safe(curve.name),
        "x": [curve.x[i] for i in kept], "y": [curve.y[i] for i in kept],
        "line": {"color": ink(k), "width": 1.5, "dash": DASHES[k // len(INKS) % len(DASHES)]},
        "marker": {"symbol": symbol(k), "color": ink(k), "size": sizes, "opacity": 0.8},
        "customdata": [pointed(plot, curve, i) for i in kept], "cliponaxis": False,
        "hovertemplate": "%{customdata}<extra></extra>", "meta": {"ink": k},
    }  # fmt: skip


def whiskers(curve: Curve, kept: list[int], k: int) -> Drawing:
    """The intervals of a curve's points, where it has any."""
    if not curve.low:
        return {}
    reach = [
        whisker(Estimate(value=curve.y[i], low=curve.low[i], high=curve.high[i], n=1)) for i in kept
    ]
    below, above = ([ends[side] for ends in reach] for side in (0, 1))
    return {"error_y": {"type": "data", "symmetric": False, "array": above, "arrayminus": below,
                        "thickness": 1.2, "width": 3, "color": ink(k)}}  # fmt: skip


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
    """What the pointer reads at a point: curve, both coordinates, size."""
    parts = [f"<b>{wrapped(curve.name)}</b>"]
    y = told(curve.y[i], plot.kind)
    parts.append(f"{wrapped(plot.x_axis)}: {safe(place(plot, curve.x[i]))}")
    parts.append(f"{wrapped(plot.y_axis)}: {safe(y)}")
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
    xs: list[float] = []
    ys: list[float] = []
    for curve in plot.curves:
        xs += [curve.x[i] for i in points(curve)]
        ys += [curve.y[i] for i in points(curve)]
        ys += [e for i in points(curve) for e in (*curve.low[i : i + 1], *curve.high[i : i + 1])]
    xs += [value for _, value in plot.marks]
    if not plot.diagonal:
        return from_zero(xs, x_kind(plot)), from_zero(ys, plot.kind)
    both = (-0.02, 1.02) if plot.kind == "percent" else from_zero(xs + ys, plot.kind)
    return both, both


def key(plot: Curves, largest: int) -> list[Drawing]:
    """What the size of a point means, and a word where no curve has a point."""
    corner = {"x": 1, "xref": "paper", "xanchor": "right", "y": 0, "yref": "paper",
              "yanchor": "bottom", "yshift": 12}  # fmt: skip
    middle = {"x": 0.5, "xref": "paper", "y": 0.5, "yref": "paper"}
    notes = [aside(f"larger points stand for more, at most {fixed(largest, 0)}", **corner)]
    if not any(points(curve) for curve in plot.curves):
        return [aside("not measured", **middle)]
    return notes if largest else []


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


def mark_lines(plot: Curves) -> list[Drawing]:
    """A dashed line at every mark, over the whole height."""
    return [
        {"type": "line", "x0": value, "x1": value, "y0": 0, "y1": 1, "yref": "paper",
         "line": {"color": "#1c2126", "width": 1.5, "dash": "dash"}}
        for _, value in plot.marks
    ]  # fmt: skip


def mark_labels(plot: Curves, reach: tuple[float, float]) -> list[Drawing]:
    """The names of the marks beside their lines, on the side that has more room."""
    middle = sum(reach) / 2
    return [
        aside(name, x=value, xanchor="left" if value < middle else "right", y=1, yref="paper",
              yanchor="top", xshift=4 if value < middle else -4, yshift=-16 * i)
        for i, (name, value) in enumerate(plot.marks)
    ]  # fmt: skip
