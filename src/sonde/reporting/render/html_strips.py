"""Heat strips on a page: tokens with a coloured ground, each telling its weight. No scripts."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.core.reports import HeatRow, HeatStrip
from sonde.reporting.render.cells import plain_number
from sonde.reporting.render.markup import EMPTY, Markup, styled, tag, text
from sonde.reporting.render.strips import FAINT, Shade, parted, signed, visible


def strips(plot: HeatStrip) -> Markup:
    """The scale, and a strip per row."""
    rows = (strip(row, plot) for row in plot.rows)
    return styled("div", "strips", scale(plot), *rows)


def scale(plot: HeatStrip) -> Markup:
    """What the colours mean."""
    bar = tag("span", attributes={"class": "scale", "aria-hidden": "true"})
    far = f"{plain_number(plot.limit)} {plot.unit}".strip()
    away, towards = (text(f"{words} ({sign}{far})") for words, sign in
                     ((plot.away, "−"), (plot.towards, "+")))  # fmt: skip
    return styled("p", "legend", tag("span", away), bar, tag("span", towards))


def strip(row: HeatRow, plot: HeatStrip) -> Markup:
    """A row under its label; what is folded opens at a click."""
    one, folded, rest = parted(row, plot.limit)
    note = styled("span", "note", text(f" {row.note}")) if row.note else EMPTY
    label = styled("p", "label", tag("strong", text(row.label)), note)
    fold = EMPTY
    if one is not None:
        summary = tag("summary", *tokens([one], plot.unit))
        fold = tag("details", summary, *tokens(folded, plot.unit), attributes={"class": "fold"})
    heat = styled("div", "heat", fold, *tokens(rest, plot.unit))
    return styled("div", "strip-row", label, heat)


def tokens(shades: Sequence[Shade], unit: str) -> list[Markup]:
    """Each token on its ground; pointing at it tells the weight."""
    return [token(shade, unit) for shade in shades]


def token(shade: Shade, unit: str) -> Markup:
    """A token; the colour mixes in as its weight is strong."""
    css = "token" if abs(shade.strength) < FAINT else (
        "token towards" if shade.strength > 0 else "token away"
    )  # fmt: skip
    attributes = {
        "class": css,
        "style": f"--heat:{abs(shade.strength) * 100:.0f}%",
        "title": f"{signed(shade.weight)} {unit}".strip(),
    }
    return tag("span", text(visible(shade.text)), attributes=attributes)
