"""How often values fall between edges: bars without gaps, with named places marked."""

from __future__ import annotations

from itertools import pairwise

from sonde.core.reports import Histogram
from sonde.reporting.render.cells import fixed, share, told
from sonde.reporting.render.figures.canvas import Canvas, short
from sonde.reporting.render.figures.look import (
    LINE,
    axis_title,
    draw_marks,
    fitting,
    placed,
    room_above,
    x_numbers,
    y_axis,
)
from sonde.reporting.render.figures.scales import Linear, tick_words, ticks
from sonde.reporting.render.numbers import bin_name, narrowest

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
    marks = [(f"{name} {told(value, plot.kind, step)}", value) for name, value in plot.marks]
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
