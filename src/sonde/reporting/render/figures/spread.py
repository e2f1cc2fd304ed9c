"""Many values a row, each a dot that tells its name: strips, and boxes over their middle half.

The accuracies of all templates of a relation, say, or of all prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import quantiles

from sonde.core.reports import Boxes, Cell, Column, Strip, Table
from sonde.reporting.render.cells import fixed, known
from sonde.reporting.render.figures.look import (
    Drawing,
    aside,
    from_zero,
    ink,
    labelled,
    numbers,
    safe,
    symbol,
    told,
    wrapped,
)

STRIP_ROW, BOX_ROW = 30, 46  # pixels
NEAR = 0.008  # of the axis: dots closer than this stand above one another
STRIP_SPREAD, BOX_SPREAD = 0.36, 0.3  # of a row: how far dots may stand from its middle
MANY_BOXES = 12  # labels from which the axis stands at the top
PARTS = ("lowest", "lower quarter", "median", "upper quarter", "highest")

Place = tuple[int, int]
"""A value by its row and its position in the row."""


def strip(plot: Strip) -> Drawing:
    """A row of dots per label; groups differ by symbol and colour and share the row."""
    names = group_names(plot)
    values = every_value(plot)
    high = from_zero(values, plot.kind)[1]
    heights = {place: y for i in range(len(plot.labels)) for place, y in row_heights(plot, i, high)}
    traces = [strip_dots(plot, name, k, heights) for k, name in enumerate(names)]
    layout = labelled(plot, STRIP_ROW, values, [name for name in names if name])
    return {"data": traces, "layout": layout | {"annotations": gaps(plot)}}


def boxes(plot: Boxes) -> Drawing:
    """A box from quarter to quarter with its median, whiskers to the ends, a dot for each value."""
    traces = [
        part(plot, i)
        for i in range(len(plot.labels))
        if measured(plot, i)
        for part in (box, middle, box_dots)
    ]
    layout = labelled(plot, BOX_ROW, every_value(plot), many=MANY_BOXES)
    return {"data": traces, "layout": layout | {"annotations": gaps(plot)}}


def strip_table(plot: Strip) -> Table:
    """One row per label: how many values, the lowest, the mean and the highest, and whose."""
    columns = [Column(title=""), Column(title="values", kind="count")]
    columns += [Column(title=title, kind=plot.kind) for title in ("lowest", "mean", "highest")]
    if plot.names:
        columns += [Column(title="the lowest is"), Column(title="the highest is")]
    return numbers(plot, columns, (summary(plot, i) for i in range(len(plot.labels))))


def boxes_table(plot: Boxes) -> Table:
    """One row per label: how many values, and the five places that its box shows."""
    columns = [Column(title=""), Column(title="values", kind="count")]
    columns += [Column(title=part, kind=plot.kind) for part in PARTS]
    nothing: list[Cell] = [None] * len(PARTS)
    rows: list[tuple[Cell, ...]] = [
        (label, len(measured(plot, i)), *(five(row_values(plot, i)) or nothing))
        for i, label in enumerate(plot.labels)
    ]
    return numbers(plot, columns, rows)


def summary(plot: Strip, i: int) -> tuple[Cell, ...]:
    """The row of a label in the table."""
    kept = sorted(measured(plot, i), key=lambda j: plot.values[i][j])
    found = [plot.values[i][j] for j in kept]
    if not found:
        return (plot.labels[i], 0, None, None, None, *([None, None] if plot.names else []))
    ends = (plot.names[i][kept[0]], plot.names[i][kept[-1]]) if plot.names else ()
    return (plot.labels[i], len(found), found[0], sum(found) / len(found), found[-1], *ends)


def strip_dots(plot: Strip, group: str, k: int, heights: dict[Place, float]) -> Drawing:
    """The dots of one group over all rows."""
    places = [(i, j) for i, j in heights if group_of(plot, i, j) == group]
    return {
        "type": "scatter", "mode": "markers", "name": safe(group), "showlegend": bool(group),
        "x": [plot.values[i][j] for i, j in places], "y": [heights[place] for place in places],
        "marker": {"symbol": symbol(k), "size": 7, "color": ink(k), "opacity": 0.75},
        "customdata": [pointed(plot, i, j) for i, j in places],
        "hovertemplate": "%{customdata}<extra></extra>", "meta": {"ink": k},
    }  # fmt: skip


def row_heights(plot: Strip, i: int, high: float) -> list[tuple[Place, float]]:
    """Where the dots of a row stand: those nearly equal above one another, about the middle."""
    piles: dict[int, list[int]] = {}
    for j in measured(plot, i):
        piles.setdefault(round(plot.values[i][j] / (high * NEAR or 1.0)), []).append(j)
    return [
        ((i, j), i + shift)
        for pile in piles.values()
        for j, shift in zip(pile, pile_shifts(len(pile)), strict=True)
    ]


def pile_shifts(count: int) -> list[float]:
    """So many heights, evenly about zero, closer together where they are many.

    >>> pile_shifts(1), pile_shifts(3)
    ([0.0], [-0.2, 0.0, 0.2])
    """
    step = min(0.2, 2 * STRIP_SPREAD / max(1, count - 1))
    return [step * (k - (count - 1) / 2) for k in range(count)]


def group_names(plot: Strip) -> list[str]:
    """The groups in order of appearance; one without a name where there are none."""
    return list(dict.fromkeys(group for row in plot.groups for group in row)) or [""]


def group_of(plot: Strip, i: int, j: int) -> str:
    """The group of a value."""
    return plot.groups[i][j] if plot.groups else ""


def five(values: Sequence[float]) -> list[float]:
    """The lowest, the quarters and the highest; nothing of nothing.

    >>> five([4.0, 1.0, 2.0, 3.0, 5.0]), five([2.0]), five([])
    ([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 2.0, 2.0, 2.0, 2.0], [])
    """
    if len(values) < 2:
        return [*values] * 5
    return [min(values), *quantiles(values, n=4, method="inclusive"), max(values)]


def box(plot: Boxes, i: int) -> Drawing:
    """The box of a row, its places given, so that picture and table say the same."""
    found = five(row_values(plot, i))
    low, first, median, third, high = ([place] for place in found)
    return {
        "type": "box", "orientation": "h", "name": safe(plot.labels[i]), "y": [i], "width": 0.62,
        "lowerfence": low, "q1": first, "median": median, "q3": third, "upperfence": high,
        "line": {"color": ink(0), "width": 1.5}, "fillcolor": "rgba(120,140,160,0.22)",
        "whiskerwidth": 0.5, "hoverinfo": "skip", "showlegend": False, "meta": {"ink": 0},
    }  # fmt: skip


def middle(plot: Boxes, i: int) -> Drawing:
    """The median as a thick line, which a box hides where half of it has no width."""
    return {
        "type": "scatter", "mode": "markers", "showlegend": False, "hoverinfo": "skip", "y": [i],
        "x": [five(row_values(plot, i))[2]], "cliponaxis": False,
        "marker": {"symbol": "line-ns-open", "size": 26, "color": ink(0), "line": {"width": 4}},
        "meta": {"ink": 0},
    }  # fmt: skip


def box_dots(plot: Boxes, i: int) -> Drawing:
    """The values of a row, one above the other in their order, so that equal ones are all seen."""
    places = measured(plot, i)
    step = 2 * BOX_SPREAD / max(1, len(places) - 1)
    shifts = [step * (k - (len(places) - 1) / 2) for k in range(len(places))]
    return {
        "type": "scatter", "mode": "markers", "name": safe(plot.labels[i]), "showlegend": False,
        "x": row_values(plot, i), "y": [i + shift for shift in shifts],
        "marker": {"size": 6, "color": ink(1), "opacity": 0.8}, "cliponaxis": False,
        "customdata": [pointed(plot, i, j) for j in places],
        "hovertemplate": "%{customdata}<extra></extra>", "meta": {"ink": 1},
    }  # fmt: skip


def pointed(plot: Strip | Boxes, i: int, j: int) -> str:
    """What the pointer reads at a dot: its name, its row, its group, its value."""
    name = [f"<b>{wrapped(plot.names[i][j])}</b>"] if plot.names else []
    group = group_of(plot, i, j) if isinstance(plot, Strip) else ""
    row = [wrapped(plot.labels[i])] + ([safe(group)] if group else [])
    return "<br>".join([*name, ", ".join(row), safe(told(plot.values[i][j], plot.kind))])


def measured(plot: Strip | Boxes, i: int) -> list[int]:
    """The positions of a row that hold a value."""
    return [j for j, value in enumerate(plot.values[i]) if known(value) is not None]


def row_values(plot: Strip | Boxes, i: int) -> list[float]:
    """The values of a row that were measured."""
    return [plot.values[i][j] for j in measured(plot, i)]


def every_value(plot: Strip | Boxes) -> list[float]:
    """Every value that was measured."""
    return [value for i in range(len(plot.labels)) for value in row_values(plot, i)]


def gaps(plot: Strip | Boxes) -> list[Drawing]:
    """A word in each row without a value, and in one of a strip where some are missing."""
    notes = []
    for i in range(len(plot.labels)):
        missing, some = len(plot.values[i]) - len(measured(plot, i)), bool(measured(plot, i))
        if not some or (missing and isinstance(plot, Strip)):
            count = f"{fixed(missing, 0)} " if some else ""
            place = {"x": 1, "xref": "paper", "xanchor": "right", "y": i}
            notes.append(aside(f"{count}not measured", **place))
    return notes
