"""Figures with a row for each label: dots, bars, strips and boxes of values, and heat maps.

Estimates have whiskers for their intervals; the values of strips and boxes, such as the accuracies
of all templates of a relation, are a dot each that tells its name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from sonde.core.reports import Bars, Boxes, DotPlot, HeatMap, Series, Strip
from sonde.reporting.render.cells import NOT_MEASURED, fixed, known, told, written
from sonde.reporting.render.figures.look import (
    CLEAR,
    RIGHT,
    ROW,
    TEXT,
    Drawing,
    aside,
    frame,
    from_zero,
    ink,
    labelled,
    safe,
    shortened,
    symbol,
    trace,
    whiskers,
    wrapped,
)
from sonde.reporting.render.numbers import five, measured, row_values

LANE = 15  # pixels for a bar and the gap to the next
PATTERNS = ("", "/", ".", "\\", "x")

STRIP_ROW, BOX_ROW = 30, 46  # pixels
NEAR = 0.008  # of the axis: dots closer than this stand above one another
STRIP_SPREAD, BOX_SPREAD = 0.36, 0.3  # of a row: how far dots may stand from its middle
MANY_BOXES = 12  # labels from which the axis stands at the top

# one hue from light to dark; two hues for values about zero, also told apart by blue and orange
SEQUENTIAL = ((0.0, "#e4e9ee"), (0.5, "#7ba6d0"), (1.0, "#0a3a6b"))
DIVERGING = ((0.0, "#8a3a00"), (0.5, "#e9e6df"), (1.0, "#0a3a6b"))
FEW, FEW_NARROW = 16, 6  # columns up to which the cells carry their numbers
FIT, FIT_NARROW = 50, 16  # labels that fit beside one another
CELL, TALLEST, SCALE = 34, 1400, 52  # pixels of a cell, of all of them, for the scale above
LABEL, LABEL_NARROW = 28, 14  # characters
ASLANT, STEEP = -35, -60  # degrees


def dot_plot(plot: DotPlot) -> Drawing:
    """Dots with interval whiskers, one row per label, series side by side within the row."""
    row = ROW + 6 * max(0, len(plot.series) - 2)
    lanes = shifts(len(plot.series), min(0.3, 0.7 / max(1, len(plot.series))))
    traces = [
        estimates(plot, series, k, lanes[k])
        | {"mode": "markers", "marker": {"symbol": symbol(k), "size": 8, "color": ink(k)}}
        for k, series in enumerate(plot.series)
    ]
    notes = []
    for i in range(len(plot.labels)):
        missing = [s.name for s in plot.series if known(s.values[i].value) is None]
        if missing:  # or no dot would be read as zero
            which = "" if len(missing) == len(plot.series) else ", ".join(missing) + " "
            notes.append(aside(f"{which}not measured", y=i, **RIGHT))
    return {"data": traces, "layout": estimates_layout(plot, row) | {"annotations": notes}}


def bars(plot: Bars) -> Drawing:
    """Bars from zero with interval whiskers, side by side within the row of their label."""
    row = max(ROW, LANE * len(plot.series) + 12)
    lanes = shifts(len(plot.series), LANE / row)
    traces, notes = [], []
    for k, series in enumerate(plot.series):
        pattern = {"shape": PATTERNS[k % len(PATTERNS)], "fgcolor": "#fffefb",
                   "fillmode": "overlay", "size": 7, "solidity": 0.25}  # fmt: skip
        bar = estimates(plot, series, k, lanes[k], TEXT) | {
            "type": "bar", "orientation": "h", "width": (LANE - 2) / row,
            "marker": {"color": ink(k), "pattern": pattern, "opacity": 0.75},
            "meta": {"ink": k, "whisker": "ink"},
        }  # fmt: skip
        traces.append(bar)
        place = {"x": 0, "xanchor": "left", "xshift": 4}
        for i in set(range(len(plot.labels))) - set(rows_of(series)):
            notes.append(aside(f"{series.name}: not measured", y=i + lanes[k], **place))
    return {"data": traces, "layout": estimates_layout(plot, row) | {"annotations": notes}}


def rows_of(series: Series) -> list[int]:
    """The rows of a series that hold a value."""
    return [i for i, e in enumerate(series.values) if known(e.value) is not None]


def estimates(
    plot: DotPlot | Bars, series: Series, k: int, lane: float, colour: str = ""
) -> Drawing:
    """One series: a place and a whisker for every measured estimate, in a lane of its row."""
    rows = rows_of(series)
    kept = [series.values[i] for i in rows]
    texts = []
    for i in rows:
        words = written(series.values[i], plot.kind)
        first = f"<b>{wrapped(plot.labels[i])}</b><br>{safe(series.name)}"
        texts.append(f"{first}: {escape(words.value)} {words.interval}<br>{words.n}")
    return trace(
        k,
        texts,
        name=safe(series.name),
        x=[estimate.value for estimate in kept],
        y=[i + lane for i in rows],
        error_x=whiskers(kept, thickness=1.5, width=0, color=colour or ink(k)),
    )


def estimates_layout(plot: DotPlot | Bars, row: int) -> Drawing:
    """Axes, legend and height; the height follows the number of labels and series."""
    every = (e for series in plot.series for e in series.values)
    ends = (known(end) for e in every for end in (e.value, e.low, e.high))
    names = [series.name for series in plot.series]
    layout = labelled(plot, row, (end for end in ends if end is not None), names)
    return layout | {"barmode": "overlay"}


def shifts(count: int, step: float) -> list[float]:
    """So many places, a step apart, evenly about zero.

    >>> shifts(1, 0.3), shifts(2, 0.3), shifts(3, 0.2)
    ([0.0], [-0.15, 0.15], [-0.2, 0.0, 0.2])
    """
    return [step * (k - (count - 1) / 2) for k in range(count)]


def strip(plot: Strip) -> Drawing:
    """A row of dots per label; groups differ by symbol and colour and share the row."""
    values = [value for i in range(len(plot.labels)) for value in row_values(plot, i)]
    high = from_zero(values, plot.kind)[1]
    groups = list(dict.fromkeys(group for row in plot.groups for group in row)) or [""]
    heights = {place: y for i in range(len(plot.labels)) for place, y in row_heights(plot, i, high)}
    traces = []
    for k, group in enumerate(groups):
        places = [(i, j) for i, j in heights if group_of(plot, i, j) == group]
        dots = trace(
            k,
            [pointed(plot, i, j) for i, j in places],
            mode="markers",
            name=safe(group),
            showlegend=bool(group),
            x=[plot.values[i][j] for i, j in places],
            y=[heights[place] for place in places],
            marker={"symbol": symbol(k), "size": 7, "color": ink(k), "opacity": 0.75},
        )
        traces.append(dots)
    layout = labelled(plot, STRIP_ROW, values, [group for group in groups if group])
    return {"data": traces, "layout": layout | {"annotations": list(gaps(plot))}}


def row_heights(plot: Strip, i: int, high: float) -> Iterator[tuple[tuple[int, int], float]]:
    """Where the dots of a row stand: those nearly equal above one another, about the middle."""
    piles: dict[int, list[int]] = {}
    for j in measured(plot, i):
        piles.setdefault(round(plot.values[i][j] / (high * NEAR or 1.0)), []).append(j)
    for pile in piles.values():
        step = min(0.2, 2 * STRIP_SPREAD / max(1, len(pile) - 1))
        for j, shift in zip(pile, shifts(len(pile), step), strict=True):
            yield (i, j), i + shift


def group_of(plot: Strip | Boxes, i: int, j: int) -> str:
    """The group of a value, where there are any."""
    return plot.groups[i][j] if isinstance(plot, Strip) and plot.groups else ""


def pointed(plot: Strip | Boxes, i: int, j: int) -> str:
    """What the pointer reads at a dot: its name, its row, its group, its value."""
    name = [f"<b>{wrapped(plot.names[i][j])}</b>"] if plot.names else []
    group = group_of(plot, i, j)
    row = [wrapped(plot.labels[i])] + ([safe(group)] if group else [])
    return "<br>".join([*name, ", ".join(row), safe(told(plot.values[i][j], plot.kind))])


def gaps(plot: Strip | Boxes) -> Iterator[Drawing]:
    """A word in each row without a value, and in one of a strip where some are missing."""
    for i, row in enumerate(plot.values):
        count = len(measured(plot, i))
        missing = fixed(len(row) - count, 0)
        if not count:
            yield aside("not measured", y=i, **RIGHT)
        elif count < len(row) and isinstance(plot, Strip):
            yield aside(f"{missing} not measured", y=i, **RIGHT)


def boxes(plot: Boxes) -> Drawing:
    """A box from quarter to quarter with its median, whiskers to the ends, a dot for each value."""
    filled = [i for i in range(len(plot.labels)) if measured(plot, i)]
    values = [value for i in filled for value in row_values(plot, i)]
    layout = labelled(plot, BOX_ROW, values, many=MANY_BOXES)
    traces = [part for i in filled for part in box(plot, i)]
    return {"data": traces, "layout": layout | {"annotations": list(gaps(plot))}}


def box(plot: Boxes, i: int) -> Iterator[Drawing]:
    """A row: its box with places given, so that picture and table say the same, and its dots."""
    low, first, median, third, high = ([place] for place in five(row_values(plot, i)))
    name = safe(plot.labels[i])
    yield trace(
        0, None, type="box", orientation="h", name=name, y=[i], width=0.62, lowerfence=low,
        q1=first, median=median, q3=third, upperfence=high, line={"color": ink(0), "width": 1.5},
        fillcolor="rgba(120,140,160,0.22)", whiskerwidth=0.5, showlegend=False,
    )  # fmt: skip
    # the median as a thick line, which a box hides where half of it has no width
    middle = {"symbol": "line-ns-open", "size": 26, "color": ink(0), "line": {"width": 4}}
    yield trace(
        0, None, mode="markers", showlegend=False, y=[i], x=median, cliponaxis=False, marker=middle
    )  # fmt: skip
    # dots one above the other in their order, so that equal ones are all seen
    places = measured(plot, i)
    heights = shifts(len(places), 2 * BOX_SPREAD / max(1, len(places) - 1))
    yield trace(
        1, [pointed(plot, i, j) for j in places], mode="markers", name=name, showlegend=False,
        x=row_values(plot, i), y=[i + shift for shift in heights], cliponaxis=False,
        marker={"size": 6, "color": ink(1), "opacity": 0.8},
    )  # fmt: skip


def heat_map(plot: HeatMap) -> Drawing:
    """A field of colours with the numbers written in if few, its scale above, rows from the top."""
    texts = ["%{text}" if len(plot.columns) <= few else "" for few in (FEW, FEW_NARROW)]
    cells = field(plot) | {"texttemplate": texts[0]}
    cells["meta"] = {"scale": "diverging" if plot.low < 0 < plot.high else "sequential",
                     "narrow": {"texttemplate": texts[1]}}  # fmt: skip
    rows = max(2, len(plot.rows))
    layout = frame(min(TALLEST, rows * CELL), top=SCALE, bottom=foot(plot, LABEL, ASLANT))
    plain = {"fixedrange": True, "showgrid": False, "zeroline": False, "ticks": ""}
    layout["xaxis"] = ticks(plot.columns, FIT, LABEL) | plain | {
        "range": [-0.5, len(plot.columns) - 0.5], "tickangle": ASLANT,
    }  # fmt: skip
    layout["yaxis"] = ticks(plot.rows, TALLEST // 16, LABEL) | plain | {
        "range": [len(plot.rows) - 0.5, -0.5], "automargin": True, "ticklen": 6,
        "tickcolor": CLEAR,
    }  # fmt: skip
    layout["annotations"] = blanks(plot, narrow=False)
    layout["meta"]["width"] = max(420, min(1200, 240 + 76 * len(plot.columns)))
    layout["meta"]["narrow"] |= heat_map_on_a_phone(plot, rows)
    return {"data": [cells], "layout": layout}


def field(plot: HeatMap) -> Drawing:
    """The coloured cells with their words; None leaves a gap. About zero they reach equally far."""
    low, high = plot.low, plot.high
    if low < 0 < high:
        low, high = -max(-low, high), max(-low, high)
    columns = range(len(plot.columns))
    return {
        "type": "heatmap", "z": [list(map(known, row)) for row in plot.values],
        "x": list(columns), "y": list(range(len(plot.rows))),
        "text": [[inside(plot, value) for value in row] for row in plot.values],
        "hovertext": [[read_at(plot, i, j) for j in columns] for i in range(len(plot.rows))],
        "hovertemplate": "%{hovertext}<extra></extra>", "hoverongaps": True,
        "zmin": low, "zmax": high, "xgap": 1, "ygap": 1, "textfont": {"size": 12},
        "colorscale": [list(stop) for stop in (DIVERGING if low < 0 < high else SEQUENTIAL)],
        "colorbar": {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0, "xanchor": "left",
                     "len": 0.7, "thickness": 10, "outlinewidth": 0, "nticks": 6, "ypad": 8,
                     "tickformat": ".0%" if plot.kind == "percent" else "", "ticks": ""},
    }  # fmt: skip


def inside(plot: HeatMap, value: float | None) -> str:
    """The number in a cell, short."""
    value = known(value)
    if value is None:
        return ""
    return fixed(value * 100, 0) + "%" if plot.kind == "percent" else fixed(value, 2)


def read_at(plot: HeatMap, i: int, j: int) -> str:
    """What the pointer reads at a cell: row, column and value."""
    value = known(plot.values[i][j])
    words = NOT_MEASURED if value is None else told(value, plot.kind)
    row, column = wrapped(plot.rows[i]), wrapped(plot.columns[j])
    return f"<b>row:</b> {row}<br><b>column:</b> {column}<br>{safe(words)}"


def foot(plot: HeatMap, width: int, angle: int) -> int:
    """Pixels for the names of the columns, which are cut to a width and stand at an angle."""
    longest = max((min(len(name), width) for name in plot.columns), default=0)
    return 24 + round(6.5 * longest * math.sin(math.radians(-angle)))


def ticks(names: Sequence[str], fit: int, width: int) -> Drawing:
    """Every label, or every so many that they do not run into each other."""
    every = max(1, math.ceil(len(names) / fit))
    texts = shortened(names[::every], width)
    return {"tickvals": list(range(0, len(names), every)), "ticktext": texts}


def heat_map_on_a_phone(plot: HeatMap, rows: int) -> Drawing:
    """What changes on a phone: narrow cells are lower too, so that they stay about square."""
    columns = ticks(plot.columns, FIT_NARROW, LABEL_NARROW)
    row = max(18, min(CELL, 260 // max(1, len(plot.columns))))
    feet = foot(plot, LABEL_NARROW, STEEP)
    return {
        "height": SCALE + min(TALLEST, rows * row) + feet, "margin.b": feet,
        "xaxis.tickvals": columns["tickvals"], "xaxis.ticktext": columns["ticktext"],
        "yaxis.ticktext": ticks(plot.rows, TALLEST // 16, LABEL_NARROW)["ticktext"],
        "xaxis.tickangle": STEEP, "annotations": blanks(plot, narrow=True),
    }  # fmt: skip


def blanks(plot: HeatMap, *, narrow: bool) -> list[Drawing]:
    """A word, or where cells are small a dash, in every cell that was not measured."""
    missing = [
        (i, j) for i, row in enumerate(plot.values) for j, v in enumerate(row) if known(v) is None
    ]
    if len(plot.columns) > (FIT_NARROW if narrow else FIT) or len(plot.rows) * 12 > TALLEST:
        corner = {"y": 1, "yref": "paper", "yanchor": "bottom", "yshift": 30, **RIGHT}
        return [aside("blank: not measured", **corner)] if missing else []
    room = len(plot.columns) <= (FEW_NARROW if narrow else FEW) // 2
    return [aside("not\nmeasured" if room else "–", x=j, y=i) for i, j in missing]
