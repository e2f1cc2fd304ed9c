"""Estimates with their intervals, one row per label: as dots and as bars."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.core.reports import Bars, Cell, Column, DotPlot, Series, Table
from sonde.reporting.render.cells import known
from sonde.reporting.render.figures.look import (
    ROW,
    Drawing,
    aside,
    hover,
    ink,
    labelled,
    numbers,
    safe,
    symbol,
    whisker,
)

LANE = 15  # pixels for a bar and the gap to the next
PATTERNS = ("", "/", ".", "\\", "x")


def dot_plot(plot: DotPlot) -> Drawing:
    """Dots with interval whiskers, one row per label, series side by side within the row."""
    row = ROW + 6 * max(0, len(plot.series) - 2)
    lanes = offsets(len(plot.series))
    traces = [dots(plot, series, k, lanes[k]) for k, series in enumerate(plot.series)]
    return {"data": traces, "layout": layout(plot, row) | {"annotations": gaps(plot)}}


def bars(plot: Bars) -> Drawing:
    """Bars from zero with interval whiskers, side by side within the row of their label."""
    row = max(ROW, LANE * len(plot.series) + 12)
    traces = [bar(plot, series, k, row) for k, series in enumerate(plot.series)]
    return {"data": traces, "layout": layout(plot, row) | {"annotations": list(stubs(plot, row))}}


def estimates_table(plot: DotPlot | Bars) -> Table:
    """One row per label, one column per series."""
    columns = (Column(title=""), *(Column(title=s.name, kind=plot.kind) for s in plot.series))
    rows: list[tuple[Cell, ...]] = [
        (label, *(series.values[i] for series in plot.series))
        for i, label in enumerate(plot.labels)
    ]
    return numbers(plot, columns, rows)


def dots(plot: DotPlot, series: Series, k: int, lane: float) -> Drawing:
    """One series: a scatter trace with a dot and a whisker for every measured estimate."""
    rows = measured(series)
    return {
        "type": "scatter", "mode": "markers", "name": safe(series.name),
        "x": [series.values[i].value for i in rows], "y": [i + lane for i in rows],
        "error_x": whiskers(series) | {"color": ink(k)},
        "marker": {"symbol": symbol(k), "size": 8, "color": ink(k)},
        "meta": {"ink": k},
    } | pointed(plot, series)  # fmt: skip


def bar(plot: Bars, series: Series, k: int, row: int) -> Drawing:
    """One series: a bar with a whisker for every measured estimate; told apart by pattern too."""
    rows = measured(series)
    pattern = {"shape": PATTERNS[k % len(PATTERNS)], "fgcolor": "#fffefb", "fillmode": "overlay",
               "size": 7, "solidity": 0.25}  # fmt: skip
    return {
        "type": "bar", "orientation": "h", "name": safe(series.name),
        "x": [series.values[i].value for i in rows],
        "y": [i + lane(plot, k, row) for i in rows], "width": (LANE - 2) / row,
        "error_x": whiskers(series) | {"color": "#1c2126"},
        "marker": {"color": ink(k), "pattern": pattern, "opacity": 0.75},
        "meta": {"ink": k, "whisker": "ink"},
    } | pointed(plot, series)  # fmt: skip


def pointed(plot: DotPlot | Bars, series: Series) -> Drawing:
    """What the pointer reads at each measured estimate of a series."""
    texts = [
        hover(plot.labels[i], series.name, series.values[i], plot.kind) for i in measured(series)
    ]
    return {"customdata": texts, "hovertemplate": "%{customdata}<extra></extra>"}


def measured(series: Series) -> list[int]:
    """The rows of a series that hold a value."""
    return [i for i, e in enumerate(series.values) if known(e.value) is not None]


def whiskers(series: Series) -> Drawing:
    """The intervals of the measured estimates."""
    reach = [whisker(series.values[i]) for i in measured(series)]
    return {
        "type": "data", "symmetric": False, "thickness": 1.5, "width": 0,
        "array": [up for _, up in reach], "arrayminus": [down for down, _ in reach],
    }  # fmt: skip


def offsets(count: int) -> list[float]:
    """Where each series sits within its row, evenly about the middle.

    >>> offsets(1), offsets(2)
    ([0.0], [-0.15, 0.15])
    """
    step = min(0.3, 0.7 / max(1, count))
    return [step * (k - (count - 1) / 2) for k in range(count)]


def lane(plot: Bars, k: int, row: int) -> float:
    """Where the k-th bar sits within a row of so many pixels."""
    return (k - (len(plot.series) - 1) / 2) * LANE / row


def layout(plot: DotPlot | Bars, row: int) -> Drawing:
    """Axes, legend and height; the height follows the number of labels and series."""
    names = [series.name for series in plot.series]
    return labelled(plot, row, ends(plot), names) | {"barmode": "overlay"}


def ends(plot: DotPlot | Bars) -> Iterator[float]:
    """Every value and every end of an interval."""
    for series in plot.series:
        for e in series.values:
            yield from (end for end in map(known, (e.value, e.low, e.high)) if end is not None)


def gaps(plot: DotPlot) -> list[Drawing]:
    """A word in each row where something was not measured, so that no dot is not read as zero."""
    notes = []
    for i in range(len(plot.labels)):
        missing = [s.name for s in plot.series if known(s.values[i].value) is None]
        if missing:
            which = "" if len(missing) == len(plot.series) else ", ".join(missing) + " "
            place = {"x": 1, "xref": "paper", "xanchor": "right", "y": i}
            notes.append(aside(f"{which}not measured", **place))
    return notes


def stubs(plot: Bars, row: int) -> Iterator[Drawing]:
    """A word in place of each bar that was not measured."""
    for k, series in enumerate(plot.series):
        for i in set(range(len(plot.labels))) - set(measured(series)):
            place = {"x": 0, "xanchor": "left", "xshift": 4, "y": i + lane(plot, k, row)}
            yield aside(f"{series.name}: not measured", **place)
