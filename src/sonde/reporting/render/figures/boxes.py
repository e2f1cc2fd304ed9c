"""A box per row over the middle half of its values, each of them a dot: accuracies of prompts."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import quantiles

from sonde.core.reports import Boxes, Cell, Column, Table
from sonde.reporting.render.cells import known
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
    told,
    value_axis,
    wrapped,
)

ROW = 46  # pixels
MANY = 12  # labels from which the axis stands at the top, where reading begins
SPREAD = 0.3  # of a row: how far dots stand from its middle
PARTS = ("lowest", "lower quarter", "median", "upper quarter", "highest")
NOTHING: tuple[Cell, ...] = (None,) * len(PARTS)


def boxes(plot: Boxes) -> Drawing:
    """A box from quarter to quarter with its median, whiskers to the ends, a dot for each value."""
    rows = range(len(plot.labels))
    parts = (box, middle, dots)
    traces = [trace for i in rows if measured(plot, i) for trace in (p(plot, i) for p in parts)]
    many = len(plot.labels) > MANY
    found = [value for i in rows for value, _ in measured(plot, i)]
    layout = frame(len(plot.labels) * ROW, (), axis_on_top=many)
    axis = value_axis(plot.axis, from_zero(found, plot.kind), plot.kind)
    layout |= {"xaxis": axis | {"side": "top" if many else "bottom"},
               "yaxis": label_axis(plot.labels), "annotations": gaps(plot)}  # fmt: skip
    layout["meta"]["narrow"] |= narrow_labels(plot.labels) | narrow_axis(plot.axis)
    return {"data": traces, "layout": layout}


def boxes_table(plot: Boxes) -> Table:
    """One row per label: how many values, and the five places that its box shows."""
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (label, len(measured(plot, i)), *(five([v for v, _ in measured(plot, i)]) or NOTHING))
        for i, label in enumerate(plot.labels)
    )
    columns = (Column(title=""), Column(title="values", kind="count"),
               *(Column(title=part, kind=plot.kind) for part in PARTS))  # fmt: skip
    return Table(id=f"{plot.id}-numbers", title=plot.title, columns=columns, rows=rows)


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
    found = five([value for value, _ in measured(plot, i)])
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
        "x": [five([value for value, _ in measured(plot, i)])[2]], "cliponaxis": False,
        "marker": {"symbol": "line-ns-open", "size": 26, "color": ink(0), "line": {"width": 4}},
        "meta": {"ink": 0},
    }  # fmt: skip


def dots(plot: Boxes, i: int) -> Drawing:
    """The values of a row, one above the other in their order, so that equal ones are all seen."""
    found = measured(plot, i)
    step = 2 * SPREAD / max(1, len(found) - 1)
    shifts = [step * (k - (len(found) - 1) / 2) for k in range(len(found))]
    return {
        "type": "scatter", "mode": "markers", "name": safe(plot.labels[i]), "showlegend": False,
        "x": [value for value, _ in found], "y": [i + shift for shift in shifts],
        "marker": {"size": 6, "color": ink(1), "opacity": 0.8}, "cliponaxis": False,
        "customdata": [pointed(plot, i, j) for _, j in found],
        "hovertemplate": "%{customdata}<extra></extra>", "meta": {"ink": 1},
    }  # fmt: skip


def pointed(plot: Boxes, i: int, j: int) -> str:
    """What the pointer reads at a dot: its name, its row, its value."""
    name = [f"<b>{wrapped(plot.names[i][j])}</b>"] if plot.names else []
    return "<br>".join([*name, wrapped(plot.labels[i]), safe(told(plot.values[i][j], plot.kind))])


def measured(plot: Boxes, i: int) -> list[tuple[float, int]]:
    """The values of a row that were measured, each with its place in the row."""
    return [(v, j) for j, v in enumerate(plot.values[i]) if known(v) is not None]


def gaps(plot: Boxes) -> list[Drawing]:
    """A word in each row that has no value."""
    place = {"x": 1, "xref": "paper", "xanchor": "right"}
    empty = [i for i in range(len(plot.labels)) if not measured(plot, i)]
    return [aside("not measured", y=i, **place) for i in empty]
