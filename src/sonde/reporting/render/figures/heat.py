"""Figures in which colours stand for values: a field of cells, and texts with coloured tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sonde.core.reports import HeatMap, HeatStrip
from sonde.reporting.render.cells import NOT_MEASURED, fixed, known, number, plain_number
from sonde.reporting.render.figures.canvas import (
    Canvas,
    fits,
    measure,
    short,
    shortened,
    tick_words,
    ticks,
    wrapped,
)
from sonde.reporting.render.figures.look import LINE, every, label, lines_of
from sonde.reporting.render.numbers import FAINT, Shade, parted, signed_weight, visible

CELL, WIDEST, TALLEST = 34, 104, 1400  # pixels: of a row and a column at most, and of all rows
SCALE, STEPS = 10, 40  # pixels of the scale above, and how many colours it shows
LABELS, LABELS_NARROW = 220, 110  # pixels for the names of rows
LEAST, SMALL = 13, 11  # pixels from one name to the next, and of numbers in cells
SLANT = 45  # degrees of names of columns that do not fit otherwise
SLANTED = 110  # pixels for them at most
CROWD = 4000  # cells from which on those of a colour are drawn together, without words of their own
DARK = "#15181b"  # words on a middling ground, in both themes
LIT, DIM = 0.42, 0.62  # of a scale's strength: below words are the page's own, above its paper's


Cell = tuple[int, int, float | None]
"""A row, a column and what is there."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Where the cells stand: the corner of the first, and the size of each."""

    left: float
    top: float
    wide: float
    tall: float

    def cell(self, i: int, j: int) -> str:
        """A cell as a path, a little apart from its neighbours where there is room."""
        gap = 1 if min(self.wide, self.tall) > 8 else 0
        wide, tall = short(self.wide - gap), short(self.tall - gap)
        corner = f"M{short(self.left + j * self.wide)} {short(self.top + i * self.tall)}"
        return f"{corner}h{wide}v{tall}h-{wide}z"


def heat_map(canvas: Canvas, plot: HeatMap) -> None:
    """A field of colours with the numbers in it if they fit, its scale above, rows from the top."""
    room = max((measure(name, canvas.size) for name in plot.rows), default=0.0)
    room = min(room, LABELS_NARROW if canvas.narrow else LABELS)
    left, columns, count = room + 10, max(1, len(plot.columns)), max(1, len(plot.rows))
    wide = min(WIDEST, (canvas.width - left - 8) / columns)
    tall = max(5.0, min(CELL, max(wide, 18.0), TALLEST / count))
    canvas.width = min(canvas.width, max(340.0, left + wide * columns + SLANTED * 0.4))
    key(canvas, plot, left)
    top = canvas.height
    field(canvas, plot, Grid(left, top, wide, tall))
    for i, name in every(plot.rows, int(tall * count // LEAST)):
        canvas.words(name, room, top + tall * (i + 0.5), room=room + 0.5, anchor="end")
    canvas.height = top + tall * count
    column_names(canvas, plot.columns, left, wide)


def key(canvas: Canvas, plot: HeatMap, left: float) -> None:
    """The scale of colours with its numbers, and what a blank cell is."""
    low, high = ends(plot)
    places = ticks(low, high, 5)
    start, length = left, min(260.0, canvas.width - left - 24)
    step = length / STEPS
    for k in range(STEPS):
        colour, _ = colours(canvas, plot, low + (high - low) * (k + 0.5) / STEPS)
        canvas.path(f"M{short(start + k * step)} {short(canvas.height + 2)}h{short(step + 0.4)}"
                    f"v{SCALE}h-{short(step + 0.4)}z", fill=colour)  # fmt: skip
    canvas.height += SCALE + 4 + LINE / 2
    for place, words in zip(places, tick_words(places, plot.kind), strict=True):
        at = start + length * (place - low) / (high - low)
        canvas.words(words, at, canvas.height, anchor="middle", colour="muted")
    canvas.height += LINE / 2 + 6
    if any(known(value) is None for row in plot.values for value in row):
        canvas.remark("blank, or –: not measured", left, canvas.height + LINE / 2)
        canvas.height += LINE + 4


def ends(plot: HeatMap) -> tuple[float, float]:
    """The ends of the scale; about zero they lie equally far from it."""
    far = max(-plot.low, plot.high)
    return (-far, far) if plot.low < 0 < plot.high else (plot.low, plot.high)


def colours(canvas: Canvas, plot: HeatMap, value: float) -> tuple[str, str]:
    """The colour of a value and that of words on it."""
    low, high = ends(plot)
    place = min(1.0, max(0.0, (value - low) / (high - low)))
    about_zero = low < 0 < high
    name = "zero" if about_zero else "scale"
    first, share = (1, place * 2) if place < 0.5 else (2, place * 2 - 1)
    colour = canvas.mixed(f"{name}-{first}", f"{name}-{first + 1}", round(share, 2))
    strength = abs(place * 2 - 1) if about_zero else place
    words = canvas.colour("text") if strength < LIT else DARK
    return colour, canvas.colour("paper") if strength > DIM else words


def field(canvas: Canvas, plot: HeatMap, grid: Grid) -> None:
    """The coloured cells, with their numbers in them where all of those fit."""
    cells = [(i, j, known(v)) for i, row in enumerate(plot.values) for j, v in enumerate(row)]
    if len(cells) > CROWD:
        together(canvas, plot, grid, cells)
        return
    with canvas.points(0):
        for i, j, value in cells:
            fill = "none" if value is None else colours(canvas, plot, value)[0]
            canvas.point(grid.cell(i, j), tip(plot, i, j), fill=fill,
                         pointer_events="all" if value is None else None)  # fmt: skip
    widest = max((measure(inside(plot, value), SMALL) for *_, value in cells), default=0.0)
    if widest + 3 > grid.wide or grid.tall < LEAST:
        return
    for i, j, value in cells:
        x, y = grid.left + (j + 0.5) * grid.wide, grid.top + (i + 0.5) * grid.tall
        colour = canvas.colour("muted") if value is None else colours(canvas, plot, value)[1]
        canvas.add("text", inside(plot, value), x=x, y=y + 4, text_anchor="middle",
                   font_size=SMALL, fill=colour, pointer_events="none")  # fmt: skip


def together(canvas: Canvas, plot: HeatMap, grid: Grid, cells: Sequence[Cell]) -> None:
    """Very many cells: those of a colour as one path."""
    painted: dict[str, list[str]] = {}
    for i, j, value in cells:
        if value is not None:
            painted.setdefault(colours(canvas, plot, value)[0], []).append(grid.cell(i, j))
    for colour, paths in painted.items():
        canvas.path("".join(paths), fill=colour)


def inside(plot: HeatMap, value: float | None) -> str:
    """The number in a cell, short; a dash where there is none."""
    value = known(value)
    if value is None:
        return "–"
    return fixed(value * 100, 0) + "%" if plot.kind == "percent" else fixed(value, 2)


def tip(plot: HeatMap, i: int, j: int) -> str:
    """What the pointer reads at a cell: row, column and value."""
    value = known(plot.values[i][j])
    words = NOT_MEASURED if value is None else number(value, plot.kind)
    return lines_of((words, f"row: {plot.rows[i]}", f"column: {plot.columns[j]}"))


def column_names(canvas: Canvas, names: Sequence[str], left: float, wide: float) -> None:
    """Names below the columns: on up to three lines if they fit so, else aslant."""
    room = wide - 8
    if all(fits(name, room, canvas.size, 3) for name in names):
        tall = max((len(wrapped(name, room, canvas.size, 3)) for name in names), default=0)
        y = canvas.height + 6 + tall * LINE / 2
        for j, name in enumerate(names):
            label(canvas, name, left + wide * (j + 0.5), y, room, 3, "middle")
        canvas.height += tall * LINE + 10
        return
    sine = math.sin(math.radians(SLANT))
    kept = list(every(names, int(wide * len(names) // (LEAST + 5))))
    rooms = [min(SLANTED, (left + wide * (j + 0.5)) / sine - 8) for j, _ in kept]
    for (j, name), own in zip(kept, rooms, strict=True):
        x, y = left + wide * (j + 0.5) + 4, canvas.height + 10
        canvas.words(name, x, y, room=own, anchor="end",
                     transform=f"rotate(-{SLANT} {short(x)} {short(y)})")  # fmt: skip
    shown = (measure(shortened(name, own, canvas.size), canvas.size)
             for (_, name), own in zip(kept, rooms, strict=True))  # fmt: skip
    canvas.height += 22 + sine * max(shown, default=0.0)


def heat_strip(canvas: Canvas, plot: HeatStrip) -> None:
    """Texts whose tokens stand on grounds coloured by their weights, line by line."""
    far = f"{plain_number(plot.limit)} {plot.unit}".strip()
    for words in wrapped(f"orange: {plot.away} (−{far}); blue: {plot.towards} (+{far})",
                         canvas.width - 8, 11):  # fmt: skip
        canvas.remark(words, 0, canvas.height + LINE / 2)
        canvas.height += LINE
    for row in plot.rows:
        canvas.height += 8
        canvas.words(row.label, 0, canvas.height + LINE / 2, room=canvas.width - 8,
                     font_weight="bold")  # fmt: skip
        canvas.height += LINE + 2
        if row.note:
            canvas.words(row.note, 0, canvas.height + LINE / 2, room=canvas.width - 8, size=11,
                         colour="muted")  # fmt: skip
            canvas.height += LINE
        fold, _, rest = parted(row, plot.limit)
        tokens(canvas, plot.unit, [fold, *rest] if fold else rest)


def tokens(canvas: Canvas, unit: str, shades: Sequence[Shade]) -> None:
    """Tokens from left to right, over as many lines as they take."""
    x, y = 0.0, canvas.height + 12
    for shade in shades:
        words = shortened(visible(shade.text), canvas.width - 8, canvas.size)
        wide = measure(words, canvas.size) + 4
        if x and x + wide > canvas.width - 4:
            x, y = 0.0, y + 24
        name, strength = "towards" if shade.strength > 0 else "away", abs(shade.strength)
        fill = "none" if strength < FAINT else canvas.mixed("paper", name, strength)
        ground = f"M{short(x)} {short(y - 10)}h{short(wide)}v20h-{short(wide)}z"
        canvas.point(ground, f"{signed_weight(shade.weight)} {unit}".strip(), fill=fill)
        canvas.words(words, x + 2, y, pointer_events="none", style="white-space:pre")
        x += wide + 1
    canvas.height = y + 12
