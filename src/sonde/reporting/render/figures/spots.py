"""Figures of many values: rows of dots, boxes, and how often values fall between edges."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from sonde.core.reports import Boxes, Histogram, Strip
from sonde.reporting.render.cells import fixed, number, share
from sonde.reporting.render.figures.canvas import Canvas, Linear, short, tick_words, ticks
from sonde.reporting.render.figures.look import (
    LINE,
    Rows,
    axis_title,
    beside,
    draw_marks,
    fitting,
    legend,
    lines_of,
    outline,
    placed,
    room_above,
    row_remark,
    rows,
    shifts,
    x_numbers,
    y_axis,
)
from sonde.reporting.render.numbers import bin_name, five, measured, narrowest, row_values

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
    return lines_of((name, row, number(plot.values[i][j], plot.kind)))


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


BODY, BODY_NARROW = 240, 200  # pixels of the bars


def histogram(canvas: Canvas, plot: Histogram) -> None:
    """Bars without gaps, and a dashed line with its label for every mark."""
    most = max(plot.counts, default=0) * 1.03 or 1.0
    places = ticks(0.0, most, 5, whole=True)
    numbers = tick_words(places, "number")
    # the axis of values need not start at zero, for nothing is measured from there
    x = Linear(*reach(plot), max(map(canvas.wide, numbers)) + 12, canvas.width - 20)
    canvas.words("count", 0, canvas.height + LINE / 2)
    step = narrowest(plot)
    marks = [(f"{name} {number(value, plot.kind, step)}", value) for name, value in plot.marks]
    named = placed(canvas, marks, x)
    top = canvas.height + LINE + 10 + room_above(named)
    bottom = top + (BODY_NARROW if canvas.narrow else BODY)
    y = Linear(0.0, most, bottom, top)
    y_axis(canvas, x, y, places, numbers)
    bins(canvas, plot, x, y)
    draw_marks(canvas, named, x, (top, bottom))
    if not any(plot.counts):
        canvas.remark("not measured", (x.start + x.end) / 2, (top + bottom) / 2, "middle")
    canvas.height = bottom
    x_numbers(canvas, x, bottom + 6 + LINE / 2, plot.kind, fitting(x, plot.kind, canvas))
    canvas.height += LINE + 8
    axis_title(canvas, plot.axis, x)
    canvas.height += 6


def bins(canvas: Canvas, plot: Histogram, x: Linear, y: Linear) -> None:
    """The bars, each over its bin; the pointer reads its bin, its count and its share of all."""
    total = sum(plot.counts)
    with canvas.points(0, fill=canvas.ink(0), fill_opacity=".8", stroke=canvas.colour("paper"),
                       stroke_width=".5"):  # fmt: skip
        for i, (count, (low, high)) in enumerate(
            zip(plot.counts, pairwise(plot.edges), strict=True)
        ):
            if count:
                part = f" ({share(count / total)} of {fixed(total, 0)})"
                d = f"M{short(x(low))} {short(y(0))}V{short(y(count))}H{short(x(high))}"
                words = f"{bin_name(plot, i)}\n{fixed(count, 0)}{part}"
                canvas.point(f"{d}V{short(y(0))}z", words)


def reach(plot: Histogram) -> tuple[float, float]:
    """From the first edge to the last, and as far as any mark."""
    places = [*plot.edges, *(value for _, value in plot.marks)]
    pad = (max(places) - min(places)) * 0.02 or 0.5
    return min(places) - pad, max(places) + pad
