"""A value for each row and column, as a field of colours with the numbers written in if few."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sonde.core.reports import Column, HeatMap, Table
from sonde.reporting.render.cells import NOT_MEASURED, fixed, known
from sonde.reporting.render.figures.look import (
    Drawing,
    aside,
    frame,
    numbers,
    safe,
    shortened,
    told,
    wrapped,
)

# one hue from light to dark; two hues for values about zero, also told apart by blue and orange
SEQUENTIAL = ((0.0, "#e4e9ee"), (0.5, "#7ba6d0"), (1.0, "#0a3a6b"))
DIVERGING = ((0.0, "#8a3a00"), (0.5, "#e9e6df"), (1.0, "#0a3a6b"))
FEW, FEW_NARROW = 16, 6  # columns up to which the cells carry their numbers
FIT, FIT_NARROW = 50, 16  # labels that fit beside one another
CELL, TALLEST = 34, 1400  # pixels
LABEL, LABEL_NARROW = 28, 14  # characters
TOP = 52  # pixels for the scale
ASLANT, STEEP = -35, -60  # degrees


def heat_map(plot: HeatMap) -> Drawing:
    """The field, its scale above, rows from the top."""
    texts = ["%{text}" if len(plot.columns) <= few else "" for few in (FEW, FEW_NARROW)]
    trace = field(plot) | {"texttemplate": texts[0]}
    trace["meta"] = {"scale": "diverging" if plot.low < 0 < plot.high else "sequential",
                     "narrow": {"texttemplate": texts[1]}}  # fmt: skip
    body, feet = min(TALLEST, max(2, len(plot.rows)) * CELL), foot(plot, LABEL, ASLANT)
    layout = frame(body, (), top=TOP, bottom=feet)
    layout |= {"xaxis": columns_axis(plot), "yaxis": rows_axis(plot)}
    layout |= {"annotations": gaps(plot, narrow=False)}
    layout["meta"]["width"] = max(420, min(1200, 240 + 76 * len(plot.columns)))
    layout["meta"]["narrow"] |= narrowed(plot)
    return {"data": [trace], "layout": layout}


def heat_table(plot: HeatMap) -> Table:
    """The same rows and columns as numbers."""
    columns = (Column(title=""), *(Column(title=name, kind=plot.kind) for name in plot.columns))
    pairs = zip(plot.rows, plot.values, strict=True)
    return numbers(plot, columns, ((name, *map(known, row)) for name, row in pairs))


def field(plot: HeatMap) -> Drawing:
    """The coloured cells with their words; None leaves a gap."""
    low, high = bounds(plot)
    return {
        "type": "heatmap", "z": [list(map(known, row)) for row in plot.values],
        "x": list(range(len(plot.columns))), "y": list(range(len(plot.rows))),
        "text": [[inside(plot, v) for v in row] for row in plot.values],
        "hovertext": [[pointed(plot, i, j) for j in range(len(plot.columns))]
                      for i in range(len(plot.rows))],
        "hovertemplate": "%{hovertext}<extra></extra>", "hoverongaps": True,
        "zmin": low, "zmax": high, "xgap": 1, "ygap": 1, "textfont": {"size": 12},
        "colorscale": [list(stop) for stop in (DIVERGING if low < 0 < high else SEQUENTIAL)],
        "colorbar": {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0, "xanchor": "left",
                     "len": 0.7, "thickness": 10, "outlinewidth": 0, "nticks": 6, "ypad": 8,
                     "tickformat": ".0%" if plot.kind == "percent" else "", "ticks": ""},
    }  # fmt: skip


def bounds(plot: HeatMap) -> tuple[float, float]:
    """What the colours span; about zero they reach equally far on both sides."""
    if plot.low < 0 < plot.high:
        far = max(-plot.low, plot.high)
        return -far, far
    return plot.low, plot.high


def inside(plot: HeatMap, value: float | None) -> str:
    """The number in a cell, short."""
    value = known(value)
    if value is None:
        return ""
    return fixed(value * 100, 0) + "%" if plot.kind == "percent" else fixed(value, 2)


def pointed(plot: HeatMap, i: int, j: int) -> str:
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
    return {"tickvals": list(range(0, len(names), every)),
            "ticktext": shortened(names[::every], width)}  # fmt: skip


def columns_axis(plot: HeatMap) -> Drawing:
    """Names of the columns below the field, aslant so that they fit."""
    return ticks(plot.columns, FIT, LABEL) | {
        "range": [-0.5, len(plot.columns) - 0.5], "fixedrange": True, "showgrid": False,
        "zeroline": False, "ticks": "", "tickangle": ASLANT,
    }  # fmt: skip


def rows_axis(plot: HeatMap) -> Drawing:
    """Names of the rows, the first at the top."""
    return ticks(plot.rows, TALLEST // 16, LABEL) | {
        "range": [len(plot.rows) - 0.5, -0.5], "fixedrange": True, "showgrid": False,
        "zeroline": False, "ticks": "", "automargin": True,
        "ticklen": 6, "tickcolor": "rgba(0,0,0,0)",
    }  # fmt: skip


def narrowed(plot: HeatMap) -> Drawing:
    """What changes on a phone."""
    columns = ticks(plot.columns, FIT_NARROW, LABEL_NARROW)
    rows = ticks(plot.rows, TALLEST // 16, LABEL_NARROW)
    # narrow cells are lower too, so that they stay about square
    row = max(18, min(CELL, 260 // max(1, len(plot.columns))))
    body, feet = min(TALLEST, max(2, len(plot.rows)) * row), foot(plot, LABEL_NARROW, STEEP)
    return {
        "height": TOP + body + feet, "margin.b": feet,
        "xaxis.tickvals": columns["tickvals"], "xaxis.ticktext": columns["ticktext"],
        "yaxis.ticktext": rows["ticktext"], "xaxis.tickangle": STEEP,
        "annotations": gaps(plot, narrow=True),
    }  # fmt: skip


def gaps(plot: HeatMap, *, narrow: bool) -> list[Drawing]:
    """A word, or where cells are small a dash, in every cell that was not measured."""
    room = len(plot.columns) <= (FEW_NARROW // 2 if narrow else FEW // 2)
    if len(plot.columns) > (FIT_NARROW if narrow else FIT) or len(plot.rows) * 12 > TALLEST:
        corner = {"x": 1, "xref": "paper", "xanchor": "right", "y": 1, "yref": "paper"}
        words = "blank: not measured" if any(None in map(known, row) for row in plot.values) else ""
        return [aside(words, yanchor="bottom", yshift=30, **corner)] if words else []
    return [
        aside("not\nmeasured" if room else "–", x=j, y=i)
        for i, row in enumerate(plot.values)
        for j, value in enumerate(row)
        if known(value) is None
    ]
