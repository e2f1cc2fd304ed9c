"""Figures with a row of estimates per label: dots with whiskers, and bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sonde.core.reports import Bars, DotPlot, Estimate, Series
from sonde.reporting.render.cells import known, written
from sonde.reporting.render.figures.canvas import Canvas, Linear, short
from sonde.reporting.render.figures.look import (
    Rows,
    beside,
    legend,
    lines_of,
    not_measured,
    outline,
    row_remark,
    rows,
    shifts,
    whisker,
)

LANE, ROW = 9, 24  # pixels for a dot of each series, and of a row at least
BAR = 15  # pixels for a bar and the gap to the next
HATCH = 7  # pixels between the lines of a pattern
PATTERNS = ("", "/", ".", "\\", "x")


def dot_plot(canvas: Canvas, plot: DotPlot) -> None:
    """Dots with interval whiskers, one row per label, series side by side within the row."""
    legend(canvas, [(s.name, beside(canvas, k)) for k, s in enumerate(plot.series)])
    frame = rows(canvas, plot, max(ROW, LANE * len(plot.series) + 6), ends(plot))
    lanes = shifts(len(plot.series), LANE)
    for k, series in enumerate(plot.series):
        kept = list(measured(series))
        spans = (whisker(frame.x, reach(e), frame.middles[i] + lanes[k]) for i, e in kept)
        with canvas.group(data_series=k, stroke=canvas.ink(k), stroke_width="1.5"):
            canvas.path("".join(spans))
        with canvas.points(k, fill=canvas.ink(k)):
            for i, estimate in kept:
                d = outline(k, frame.x(estimate.value or 0.0), frame.middles[i] + lanes[k], 4)
                canvas.point(d, tip(plot, series, i))
    remark_gaps(canvas, plot, frame)


def remark_gaps(canvas: Canvas, plot: DotPlot, frame: Rows) -> None:
    """A word in each row in which something was not measured, or no dot would be read as zero."""
    for i, y in enumerate(frame.middles):
        values = {series.name: series.values[i] for series in plot.series}
        missing = [name for name, estimate in values.items() if known(estimate.value) is None]
        if missing:
            which = "" if len(missing) == len(plot.series) else ", ".join(missing)
            taken = [end for e in values.values() if known(e.value) is not None for end in reach(e)]
            row_remark(canvas, frame.x, y, not_measured(which, frame.x.length / 2), taken)


def bars(canvas: Canvas, plot: Bars) -> None:
    """Bars from zero with interval whiskers, side by side within the row of their label."""
    legend(canvas, [(s.name, swatch(canvas, k)) for k, s in enumerate(plot.series)])
    frame = rows(canvas, plot, max(ROW, BAR * len(plot.series) + 12), ends(plot))
    lanes, x = shifts(len(plot.series), BAR), frame.x
    for k, series in enumerate(plot.series):
        kept = [(frame.middles[i] + lanes[k], i, estimate) for i, estimate in measured(series)]
        with canvas.points(k, fill=canvas.ink(k), fill_opacity=".8"):
            for y, i, estimate in kept:
                canvas.point(bar(x, y, estimate.value or 0.0), tip(plot, series, i))
        hatches = (hatch(PATTERNS[k % len(PATTERNS)], *span(x, e.value or 0.0), y - BAR / 2 + 1,
                         BAR - 2) for y, _, e in kept)  # fmt: skip
        with canvas.group(data_series=k):
            canvas.path("".join(hatches), stroke=canvas.colour("paper"), stroke_width="1.5",
                        stroke_linecap="round", stroke_opacity=".8")  # fmt: skip
            spans = "".join(whisker(x, reach(e), y) for y, _, e in kept)
            canvas.path(spans, stroke=canvas.colour("text"), stroke_width="1.5")
        for i in set(range(len(plot.labels))) - {i for _, i, _ in kept}:
            words = not_measured(series.name, x.end - x(0) - 8)
            canvas.remark(words, x(0) + 4, frame.middles[i] + lanes[k])


def span(x: Linear, value: float) -> tuple[float, float]:
    """The pixels from zero to a value, from left to right."""
    return min(x(0), x(value)), max(x(0), x(value))


def bar(x: Linear, y: float, value: float) -> str:
    """A bar from zero to a value about y."""
    start, end = span(x, value)
    tall = short(BAR - 2)
    top = f"M{short(start)} {short(y - BAR / 2 + 1)}"
    return f"{top}h{short(end - start)}v{tall}h{short(start - end)}z"


def hatch(pattern: str, left: float, right: float, top: float, tall: float) -> str:
    """The lines of a pattern within a box, cut where the box ends."""
    if pattern == ".":
        places = range(round(left) + 5, round(right) - 2, HATCH)
        return "".join(f"M{x} {short(top + tall / 2)}h0" for x in places)
    strokes = []
    for start in range(round(left - tall), round(right), HATCH):
        a, b = max(left, start), min(right, start + tall)
        if "/" in pattern or pattern == "x":
            ends = f"M{short(a)} {short(top + tall - (a - start))}"
            strokes.append(f"{ends}L{short(b)} {short(top + tall - (b - start))}")
        if "\\" in pattern or pattern == "x":
            strokes.append(f"M{short(a)} {short(top + a - start)}L{short(b)} "
                           f"{short(top + b - start)}")  # fmt: skip
    return "".join(strokes)


def swatch(canvas: Canvas, k: int) -> Callable[[float, float], None]:
    """What draws the k-th kind of bar in a legend."""

    def draw(x: float, y: float) -> None:
        canvas.path(f"M{short(x)} {short(y - 6)}h24v12h-24z", fill=canvas.ink(k),
                    fill_opacity=".8")  # fmt: skip
        canvas.path(hatch(PATTERNS[k % len(PATTERNS)], x, x + 24, y - 6, 12), stroke_width="1.5",
                    stroke=canvas.colour("paper"), stroke_linecap="round",
                    stroke_opacity=".8")  # fmt: skip

    return draw


def ends(plot: DotPlot | Bars) -> Iterator[float]:
    """How far the values and their intervals reach."""
    for series in plot.series:
        for _, estimate in measured(series):
            yield from (estimate.value or 0.0, *reach(estimate))


def reach(estimate: Estimate) -> tuple[float, float]:
    """Where the interval of a measured estimate ends; at the value where that is unknown."""
    value, low, high = estimate.value or 0.0, known(estimate.low), known(estimate.high)
    return (value, value) if low is None or high is None else (low, high)


def measured(series: Series) -> Iterator[tuple[int, Estimate]]:
    """The rows of a series that hold a value, with their estimates."""
    return ((i, e) for i, e in enumerate(series.values) if known(e.value) is not None)


def tip(plot: DotPlot | Bars, series: Series, i: int) -> str:
    """What the pointer reads at an estimate."""
    words = written(series.values[i], plot.kind)
    value = f"{words.value} {words.interval}".rstrip()
    named = f"{series.name}: {value}" if series.name else value
    return lines_of((plot.labels[i], named, words.n))
