"""Many values a row, each a dot that tells its name: the accuracy of every template, say."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.core.reports import Cell, Column, Strip, Table
from sonde.reporting.render.cells import fixed, known
from sonde.reporting.render.figures.look import (
    Drawing,
    aside,
    frame,
    from_zero,
    ink,
    label_axis,
    narrow_axis,
    narrow_labels,
    safe,
    symbol,
    told,
    value_axis,
    wrapped,
)

ROW = 30  # pixels
MANY = 15  # labels from which the axis stands at the top, where reading begins
NEAR = 0.008  # of the axis: dots closer than this stand above one another
SPREAD = 0.36  # of a row: how far dots may stand from its middle

Place = tuple[int, int]
"""A value by its row and its position in the row."""


def strip(plot: Strip) -> Drawing:
    """A row of dots per label; groups differ by symbol and colour and share the row."""
    names = group_names(plot)
    low, high = from_zero(values(plot), plot.kind)
    heights = {place: y for i in range(len(plot.labels)) for place, y in row_heights(plot, i, high)}
    traces = [dots(plot, name, k, heights) for k, name in enumerate(names)]
    many = len(plot.labels) > MANY
    layout = frame(len(plot.labels) * ROW, [n for n in names if n], axis_on_top=many)
    axis = value_axis(plot.axis, (low, high), plot.kind) | {"side": "top" if many else "bottom"}
    layout |= {"xaxis": axis, "yaxis": label_axis(plot.labels), "annotations": gaps(plot)}
    layout["meta"]["narrow"] |= narrow_labels(plot.labels) | narrow_axis(plot.axis)
    return {"data": traces, "layout": layout}


def strip_table(plot: Strip) -> Table:
    """One row per label: how many values, the lowest, the mean and the highest, and whose."""
    kind = plot.kind
    columns = [Column(title=""), Column(title="values", kind="count"),
               Column(title="lowest", kind=kind), Column(title="mean", kind=kind),
               Column(title="highest", kind=kind)]  # fmt: skip
    if plot.names:
        columns += [Column(title="the lowest is"), Column(title="the highest is")]
    rows = tuple(summary(plot, i) for i in range(len(plot.labels)))
    made = tuple(columns)
    return Table(id=f"{plot.id}-numbers", title=plot.title, columns=made, rows=rows)


def summary(plot: Strip, i: int) -> tuple[Cell, ...]:
    """The row of a label in the table."""
    kept = sorted(measured(plot, i), key=lambda j: plot.values[i][j])
    found = [plot.values[i][j] for j in kept]
    if not found:
        return (plot.labels[i], 0, None, None, None, *([None, None] if plot.names else []))
    ends = (plot.names[i][kept[0]], plot.names[i][kept[-1]]) if plot.names else ()
    return (plot.labels[i], len(found), found[0], sum(found) / len(found), found[-1], *ends)


def dots(plot: Strip, group: str, k: int, heights: dict[Place, float]) -> Drawing:
    """The dots of one group over all rows."""
    places = [(i, j) for i, j in heights if group_of(plot, i, j) == group]
    return {
        "type": "scatter", "mode": "markers", "name": safe(group), "showlegend": bool(group),
        "x": [plot.values[i][j] for i, j in places], "y": [heights[place] for place in places],
        "marker": {"symbol": symbol(k), "size": 7, "color": ink(k), "opacity": 0.75},
        "customdata": [pointed(plot, i, j) for i, j in places],
        "hovertemplate": "%{customdata}<extra></extra>", "meta": {"ink": k},
    }  # fmt: skip


def pointed(plot: Strip, i: int, j: int) -> str:
    """What the pointer reads at a dot: its name, its row, its group, its value."""
    name = [f"<b>{wrapped(plot.names[i][j])}</b>"] if plot.names else []
    row = [wrapped(plot.labels[i])] + ([safe(plot.groups[i][j])] if plot.groups else [])
    return "<br>".join([*name, ", ".join(row), safe(told(plot.values[i][j], plot.kind))])


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
    step = min(0.2, 2 * SPREAD / max(1, count - 1))
    return [step * (k - (count - 1) / 2) for k in range(count)]


def group_names(plot: Strip) -> list[str]:
    """The groups in order of appearance; one without a name where there are none."""
    return list(dict.fromkeys(group for row in plot.groups for group in row)) or [""]


def group_of(plot: Strip, i: int, j: int) -> str:
    """The group of a value."""
    return plot.groups[i][j] if plot.groups else ""


def measured(plot: Strip, i: int) -> list[int]:
    """The positions of a row that hold a value."""
    return [j for j, value in enumerate(plot.values[i]) if known(value) is not None]


def values(plot: Strip) -> Sequence[float]:
    """Every value that was measured."""
    return [plot.values[i][j] for i in range(len(plot.labels)) for j in measured(plot, i)]


def gaps(plot: Strip) -> list[Drawing]:
    """A word in each row where values are missing."""
    notes = []
    for i in range(len(plot.labels)):
        missing = len(plot.values[i]) - len(measured(plot, i))
        if missing or not plot.values[i]:
            count = "" if missing == len(plot.values[i]) else f"{fixed(missing, 0)} "
            place = {"x": 1, "xref": "paper", "xanchor": "right", "y": i}
            notes.append(aside(f"{count}not measured", **place))
    return notes
