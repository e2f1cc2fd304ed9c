"""What heat strips look like wherever they are shown. Knows nothing of terminals or HTML."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sonde.core.legible import legible
from sonde.core.reports import Cell, Column, HeatRow, HeatStrip, Table
from sonde.reporting.render.cells import fixed

FAINT = 0.02
"""Of the scale: what is less has no colour."""


class Shade(NamedTuple):
    """A token as it is shown; `strength` is its weight as a share of the scale, −1 to 1."""

    text: str
    weight: float
    strength: float


def shades(row: HeatRow, limit: float) -> list[Shade]:
    """A row's tokens; those without a character of their own go with the one before them.

    >>> row = HeatRow(label="", tokens=("a", "é", "", " b"), weights=(1, 2, 3, -20))
    >>> [(shade.text, shade.weight, shade.strength) for shade in shades(row, 10)]
    [('a', 1, 0.1), ('é', 5, 0.5), (' b', -20, -1.0)]
    """
    found: list[tuple[str, float]] = []
    for token, weight in zip(row.tokens, row.weights, strict=True):
        if not token and found:
            found[-1] = (found[-1][0], found[-1][1] + weight)
        else:
            found.append((token, weight))
    return [Shade(text, weight, strength(weight, limit)) for text, weight in found]


def parted(row: HeatRow, limit: float) -> tuple[Shade | None, list[Shade], list[Shade]]:
    """What the row's first tokens are shown as, if they are folded; these tokens; the others."""
    first = HeatRow(label="", tokens=row.tokens[: row.folded], weights=row.weights[: row.folded])
    rest = HeatRow(label="", tokens=row.tokens[row.folded :], weights=row.weights[row.folded :])
    total = sum(first.weights)
    one = Shade(f"[{row.folded_name}]", total, strength(total, limit)) if row.folded else None
    return one, shades(first, limit), shades(rest, limit)


def strength(weight: float, limit: float) -> float:
    """A weight as a share of the scale."""
    return max(-1.0, min(1.0, weight / limit))


def visible(text: str) -> str:
    """A token's text on one line; what cannot be seen has a sign."""
    return legible(text.replace("\r\n", "↵").replace("\n", "↵").replace("\t", "⇥"))


def signed(weight: float) -> str:
    """A weight with its sign.

    >>> signed(0.125), signed(-2.0), signed(0.001)
    ('+0.13', '−2.00', '0.00')
    """
    words = fixed(weight, 2)
    return f"+{words}" if weight > 0 and words.strip("0.") else words


def strips_table(plot: HeatStrip) -> Table:
    """A row per token, in reading order."""
    weight = f"weight ({plot.unit})" if plot.unit else "weight"
    columns = (Column(title="text"), Column(title="token"), Column(title=weight, kind="number"))
    rows = tuple(_cells(plot))
    return Table(id=f"{plot.id}-numbers", title=plot.title, columns=columns, rows=rows)


def _cells(plot: HeatStrip) -> Iterator[tuple[Cell, ...]]:
    for row in plot.rows:
        for shade in shades(row, plot.limit):
            yield row.label, visible(shade.text), shade.weight
