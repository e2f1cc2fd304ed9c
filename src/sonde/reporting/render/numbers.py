"""The numbers of figures: as tables, and heat strips as the shades of their tokens.

Whatever draws a figure, this is what can be read of it. Knows nothing of terminals or HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import singledispatch
from itertools import pairwise
from statistics import fmean, quantiles
from typing import NamedTuple

from sonde.core.reports import (
    Bars,
    Boxes,
    Cell,
    Column,
    ColumnKind,
    Curves,
    DotPlot,
    HeatMap,
    HeatRow,
    HeatStrip,
    Histogram,
    Picture,
    Strip,
    Table,
)
from sonde.core.words import legible
from sonde.reporting.render.cells import fixed, known, number

FAINT = 0.02  # of the scale of a heat strip: what is less has no colour
QUARTERS = ("lowest", "lower quarter", "median", "upper quarter", "highest")


@singledispatch
def to_table(figure: Picture) -> Table:
    """The numbers of a figure, for those who cannot or would rather not see it."""
    raise TypeError(f"no table for {type(figure).__name__}; register one with to_table")


def numbers(
    plot: Picture,
    titles: Sequence[str],
    kinds: Sequence[ColumnKind],
    rows: Iterable[tuple[Cell, ...]],
) -> Table:
    """A table of a figure's numbers."""
    columns = tuple(Column(title=t, kind=kind) for t, kind in zip(titles, kinds, strict=True))
    return Table(id=f"{plot.id}-numbers", title=plot.title, columns=columns, rows=tuple(rows))


@to_table.register
def estimates_table(plot: DotPlot | Bars) -> Table:
    """One row per label, one column per series."""
    titles = ["", *(series.name for series in plot.series)]
    kinds: list[ColumnKind] = ["text", *[plot.kind] * len(plot.series)]
    rows = zip(plot.labels, *(series.values for series in plot.series), strict=True)
    return numbers(plot, titles, kinds, rows)


@to_table.register
def curves_table(plot: Curves) -> Table:
    """One row per point of each curve."""
    sized, spread = (any(getattr(c, part) for c in plot.curves) for part in ("sizes", "low"))
    place: ColumnKind = "text" if plot.x_labels else plot.x_kind or plot.kind
    titles, kinds = ["curve", plot.x_axis, plot.y_axis], ["text", place, plot.kind]
    if spread:
        titles, kinds = [*titles, "from", "to"], [*kinds, plot.kind, plot.kind]
    if sized:
        titles, kinds = [*titles, "n"], [*kinds, "count"]
    rows: list[tuple[Cell, ...]] = []
    for curve in plot.curves:
        for i, (x, y) in enumerate(zip(curve.x, curve.y, strict=True)):
            ends = (known(curve.low[i]), known(curve.high[i])) if curve.low else (None, None)
            count = (curve.sizes[i] if curve.sizes else None,) if sized else ()
            at = plot.x_labels[round(x)] if plot.x_labels else known(x)
            rows.append((curve.name, at, known(y), *(ends if spread else ()), *count))
    return numbers(plot, titles, kinds, rows)


@to_table.register
def histogram_table(plot: Histogram) -> Table:
    """The marks, then one row per bin; empty bins before the first and after the last left out."""
    step = narrowest(plot)
    marks = [(f"{name}: {number(value, plot.kind, step)}", None) for name, value in plot.marks]
    filled = [i for i, count in enumerate(plot.counts) if count]
    kept = range(filled[0], filled[-1] + 1) if filled else range(0)
    bins = [(bin_name(plot, i), plot.counts[i]) for i in kept]
    return numbers(plot, (plot.axis, "count"), ("text", "count"), [*marks, *bins])


def bin_name(plot: Histogram, i: int) -> str:
    """A bin of a histogram in words."""
    step = narrowest(plot)
    return " to ".join(number(edge, plot.kind, step) for edge in plot.edges[i : i + 2])


def narrowest(plot: Histogram) -> float:
    """The width of the narrowest bin."""
    return min((b - a for a, b in pairwise(plot.edges)), default=0.0)


@to_table.register
def strip_table(plot: Strip) -> Table:
    """One row per label: how many values, the lowest, the mean and the highest, and whose."""
    titles = ["", "values", "lowest", "mean", "highest"]
    kinds: list[ColumnKind] = ["text", "count", plot.kind, plot.kind, plot.kind]
    if plot.names:
        titles, kinds = [*titles, "the lowest is", "the highest is"], [*kinds, "text", "text"]
    rows: list[tuple[Cell, ...]] = []
    for i, label in enumerate(plot.labels):
        order = sorted(measured(plot, i), key=lambda j: plot.values[i][j])
        values = [plot.values[i][j] for j in order]
        named = [plot.names[i][j] for j in (order[0], order[-1])] if plot.names and order else []
        ends: list[Cell] = [values[0], fmean(values), values[-1], *named] if values else []
        rows.append((label, len(values), *ends, *[None] * (len(titles) - 2 - len(ends))))
    return numbers(plot, titles, kinds, rows)


@to_table.register
def boxes_table(plot: Boxes) -> Table:
    """One row per label: how many values, and the five places that its box shows."""
    kinds: list[ColumnKind] = ["text", "count", *[plot.kind] * len(QUARTERS)]
    rows: list[tuple[Cell, ...]] = []
    for i, label in enumerate(plot.labels):
        values = row_values(plot, i)
        places: Sequence[Cell] = five(values) or [None] * len(QUARTERS)
        rows.append((label, len(values), *places))
    return numbers(plot, ("", "values", *QUARTERS), kinds, rows)


def measured(plot: Strip | Boxes, i: int) -> list[int]:
    """The positions of a row that hold a value."""
    return [j for j, value in enumerate(plot.values[i]) if known(value) is not None]


def row_values(plot: Strip | Boxes, i: int) -> list[float]:
    """The values of a row that were measured."""
    return [plot.values[i][j] for j in measured(plot, i)]


def five(values: Sequence[float]) -> list[float]:
    """The lowest, the quarters and the highest; nothing of nothing.

    >>> five([4.0, 1.0, 2.0, 3.0, 5.0]), five([2.0]), five([])
    ([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 2.0, 2.0, 2.0, 2.0], [])
    """
    if len(values) < 2:
        return [*values] * 5
    return [min(values), *quantiles(values, n=4, method="inclusive"), max(values)]


@to_table.register
def heat_table(plot: HeatMap) -> Table:
    """The same rows and columns as numbers."""
    kinds: list[ColumnKind] = ["text", *[plot.kind] * len(plot.columns)]
    pairs = zip(plot.rows, plot.values, strict=True)
    return numbers(plot, ("", *plot.columns), kinds, ((n, *map(known, row)) for n, row in pairs))


@to_table.register
def heat_strip_table(plot: HeatStrip) -> Table:
    """A row per token, in reading order."""
    weight = f"weight ({plot.unit})" if plot.unit else "weight"
    rows = (
        (row.label, visible(shade.text), shade.weight)
        for row in plot.rows
        for shade in shades(row.tokens, row.weights, plot.limit)
    )
    return numbers(plot, ("text", "token", weight), ("text", "text", "number"), rows)


class Shade(NamedTuple):
    """A token as it is shown; `strength` is its weight as a share of the scale, −1 to 1."""

    text: str
    weight: float
    strength: float

    @classmethod
    def of(cls, text: str, weight: float, limit: float) -> Shade:
        """A token on a scale that ends at `limit`."""
        return cls(text, weight, max(-1.0, min(1.0, weight / limit)))


def shades(tokens: Sequence[str], weights: Sequence[float], limit: float) -> list[Shade]:
    """A row's tokens; those without a character of their own go with the one before them.

    >>> [tuple(shade) for shade in shades(("a", "é", "", " b"), (1, 2, 3, -20), 10)]
    [('a', 1, 0.1), ('é', 5, 0.5), (' b', -20, -1.0)]
    """
    merged: list[tuple[str, float]] = []
    for token, weight in zip(tokens, weights, strict=True):
        if not token and merged:
            merged[-1] = (merged[-1][0], merged[-1][1] + weight)
        else:
            merged.append((token, weight))
    return [Shade.of(text, weight, limit) for text, weight in merged]


def parted(row: HeatRow, limit: float) -> tuple[Shade | None, list[Shade], list[Shade]]:
    """What the row's first tokens are shown as, if they are folded; these tokens; the others."""
    first, rest = row.weights[: row.folded], row.weights[row.folded :]
    fold = Shade.of(f"[{row.folded_name}]", sum(first), limit) if row.folded else None
    folded = shades(row.tokens[: row.folded], first, limit)
    return fold, folded, shades(row.tokens[row.folded :], rest, limit)


def visible(text: str) -> str:
    """A token's text on one line; what cannot be seen has a sign."""
    return legible(text.replace("\r\n", "↵").replace("\n", "↵").replace("\t", "⇥"))


def signed_weight(weight: float) -> str:
    """A weight with its sign.

    >>> signed_weight(0.125), signed_weight(-2.0), signed_weight(0.001)
    ('+0.13', '−2.00', '0.00')
    """
    words = fixed(weight, 2)
    return f"+{words}" if weight > 0 and words.strip("0.") else words
