"""Turn figures from plain data into plotly figures. Knows nothing of pages or themes.

A new kind of figure is one more function registered with `draw`, and one with `to_table` where its
numbers are few enough to read.
"""

from __future__ import annotations

import json
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from sonde.core.reports import (
    Bars,
    Boxes,
    Curves,
    DotPlot,
    HeatMap,
    HeatStrip,
    Histogram,
    Strip,
    Table,
)
from sonde.reporting.render.figures.curves import curves, curves_table
from sonde.reporting.render.figures.estimates import bars, dot_plot, estimates_table
from sonde.reporting.render.figures.heat import heat_map, heat_table
from sonde.reporting.render.figures.histogram import histogram, histogram_table
from sonde.reporting.render.figures.look import Drawing
from sonde.reporting.render.figures.spread import boxes, boxes_table, strip, strip_table
from sonde.reporting.render.strips import strips_table

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@singledispatch
def draw(figure: object) -> Drawing:
    """The traces and the layout of any kind of figure a report can hold."""
    raise TypeError(f"no plotly figure for {type(figure).__name__}; register one with draw")


@singledispatch
def to_table(figure: object) -> Table | None:
    """The numbers of a figure, for those who cannot or would rather not see it; None if many."""
    return None


draw.register(DotPlot, dot_plot)
draw.register(Bars, bars)
draw.register(Curves, curves)
draw.register(Histogram, histogram)
draw.register(Strip, strip)
draw.register(Boxes, boxes)
draw.register(HeatMap, heat_map)

to_table.register(DotPlot, estimates_table)
to_table.register(Bars, estimates_table)
to_table.register(Curves, curves_table)
to_table.register(Histogram, histogram_table)
to_table.register(Strip, strip_table)
to_table.register(Boxes, boxes_table)
to_table.register(HeatMap, heat_table)
to_table.register(HeatStrip, strips_table)


def to_plotly(figure: object) -> Figure:
    """The plotly figure of any kind of figure; plotly checks every name and value in it."""
    from plotly.graph_objects import Figure

    return Figure(draw(figure))


def to_spec(figure: Figure) -> dict[str, Any]:
    """The figure as plotly's JSON, ready to be embedded in a page."""
    made: dict[str, Any] = json.loads(figure.to_json())
    return made


def spec(figure: object) -> dict[str, Any]:
    """Any kind of figure as the data that `library` draws."""
    return to_spec(to_plotly(figure))


def library() -> str:
    """The JavaScript that draws the specs, some 5 MB."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())
