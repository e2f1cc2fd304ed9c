"""Figures with a dot per value: rows of dots, such as the accuracy of every template, and boxes."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.core.reports import Boxes, Strip
from sonde.reporting.render.cells import fixed, told
from sonde.reporting.render.figures.canvas import Canvas, short
from sonde.reporting.render.figures.look import (
    Rows,
    beside,
    legend,
    lines_of,
    outline,
    row_remark,
    rows,
    shifts,
)
from sonde.reporting.render.numbers import five, measured, row_values

STRIP_ROW, BOX_ROW = 30, 46  # pixels
NEAR, LEVEL = 5, 6  # pixels: dots closer than this stand above one another, so far apart
STRIP_SPREAD, BOX_SPREAD = 0.36, 0.3  # of a row: how far dots may stand from its middle
MANY_BOXES = 12  # labels from which the axis stands at the top
CROWD = 2500  # dots from which on they are drawn together, without words of their own

Place = tuple[int, int]
"""The row of a value and its place in it."""


def strip(canvas: Canvas, plot: Strip) -> None:
    """A row of dots per label; groups differ by symbol and colour and share the row."""
    groups = list(dict.fromkeys(group for row in plot.groups for group in row)) or [""]
    legend(canvas, [(name, beside(canvas, k)) for k, name in enumerate(groups)])
    frame = rows(canvas, plot, STRIP_ROW, (v for i in filled(plot) for v in row_values(plot, i)))
    heights = {place: y for i in filled(plot) for place, y in piled(plot, i, frame)}
    for k, group in enumerate(groups):
        places = [place for place in sorted(heights) if group_of(plot, *place) == group]
        spots = [(frame.x(plot.values[i][j]), heights[i, j]) for i, j in places]
        if len(heights) > CROWD:
            crowd(canvas, k, spots)
            continue
        with canvas.points(k, fill=canvas.ink(k), fill_opacity=".75"):
            for (i, j), (x, y) in zip(places, spots, strict=True):
                canvas.point(outline(k, x, y, 3.5), tip(plot, i, j))
    remark_gaps(canvas, plot, frame)


def filled(plot: Strip | Boxes) -> list[int]:
    """The rows that hold a value."""
    return [i for i in range(len(plot.labels)) if measured(plot, i)]


def piled(plot: Strip, i: int, frame: Rows) -> Iterator[tuple[Place, float]]:
    """Where the dots of a row stand: those nearly equal above one another, about the middle."""
    piles: dict[int, list[int]] = {}
    for j in measured(plot, i):
        piles.setdefault(round(frame.x(plot.values[i][j]) / NEAR), []).append(j)
    spread = 2 * STRIP_SPREAD * frame.height
    for pile in piles.values():
        step = min(LEVEL, spread / max(1, len(pile) - 1))
        for j, shift in zip(pile, shifts(len(pile), step), strict=True):
            yield (i, j), frame.middles[i] + shift


def crowd(canvas: Canvas, k: int, spots: list[tuple[float, float]]) -> None:
    """Very many dots as one path; where two would fall on the same pixel one is enough."""
    places = dict.fromkeys((round(x), round(y)) for x, y in spots)
    d = "".join(f"M{x} {y}h0" for x, y in places)
    with canvas.group(data_series=k, stroke=canvas.ink(k), stroke_opacity=".6"):
        canvas.path(d, stroke_width=4, stroke_linecap="round" if k % 2 == 0 else "square")


def group_of(plot: Strip | Boxes, i: int, j: int) -> str:
    """The group of a value, where there are any."""
    return plot.groups[i][j] if isinstance(plot, Strip) and plot.groups else ""


def tip(plot: Strip | Boxes, i: int, j: int) -> str:
    """What the pointer reads at a dot: its name, its row, its group, its value."""
    name = plot.names[i][j] if plot.names else ""
    group = group_of(plot, i, j)
    row = f"{plot.labels[i]}, {group}" if group else plot.labels[i]
    return lines_of((name, row, told(plot.values[i][j], plot.kind)))


def remark_gaps(canvas: Canvas, plot: Strip | Boxes, frame: Rows) -> None:
    """A word in each row without a value, and in one of a strip where some are missing."""
    for i, row in enumerate(plot.values):
        values = row_values(plot, i)
        missing = fixed(len(row) - len(values), 0)
        if not values:
            row_remark(canvas, frame.x, frame.middles[i], "not measured")
        elif len(values) < len(row) and isinstance(plot, Strip):
            row_remark(canvas, frame.x, frame.middles[i], f"{missing} not measured", values)


def boxes(canvas: Canvas, plot: Boxes) -> None:
    """A box from quarter to quarter with its median, whiskers to the ends, a dot for each value."""
    kept = filled(plot)
    values = [value for i in kept for value in row_values(plot, i)]
    frame = rows(canvas, plot, BOX_ROW, values, many=MANY_BOXES)
    parts = [box(plot, i, frame) for i in kept]
    canvas.path("".join(body for body, _ in parts), stroke=canvas.ink(0), stroke_width="1.5",
                fill=canvas.ink(0), fill_opacity=".12")  # fmt: skip
    # the median as a thick line, which a box hides where half of it has no width
    canvas.path("".join(middle for _, middle in parts), stroke=canvas.ink(0), stroke_width=4)
    with canvas.points(1, fill=canvas.ink(1), fill_opacity=".8"):
        for i in kept:
            # dots one above the other in their order, so that equal ones are all seen
            places = measured(plot, i)
            spread = 2 * BOX_SPREAD * frame.height / max(1, len(places) - 1)
            for j, shift in zip(places, shifts(len(places), spread), strict=True):
                x, y = frame.x(plot.values[i][j]), frame.middles[i] + shift
                canvas.point(outline(0, x, y, 3), tip(plot, i, j))
    remark_gaps(canvas, plot, frame)


def box(plot: Boxes, i: int, frame: Rows) -> tuple[str, str]:
    """A row's box with its whiskers, and its median, as paths; their places are the table's."""
    low, first, median, third, high = (short(frame.x(v)) for v in five(row_values(plot, i)))
    y, half = frame.middles[i], 0.31 * frame.height
    top, bottom = short(y - half), short(y + half)
    cap = f"M{{}} {short(y - half / 2)}V{short(y + half / 2)}"
    body = f"M{first} {top}H{third}V{bottom}H{first}z"
    arms = f"M{low} {short(y)}H{first}M{third} {short(y)}H{high}"
    return body + arms + cap.format(low) + cap.format(high), f"M{median} {top}V{bottom}"
