"""Named places on an axis: a dashed line at each, its name above where it meets no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sonde.reporting.render.figures.canvas import Canvas, short
from sonde.reporting.render.figures.scales import Linear
from sonde.reporting.render.figures.text import measure, shortened

LEVEL, SIZE = 18, 11  # pixels of a line of names, and of their letters


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A name, the value it stands for, the pixel of its middle and its line, the lowest first."""

    words: str
    value: float
    middle: float
    level: int


def placed(canvas: Canvas, marks: Sequence[tuple[str, float]], x: Linear) -> list[Named]:
    """Where the names of marks stand: over their places, within the figure, on the lowest line."""
    taken: list[list[tuple[float, float]]] = [[] for _ in marks]
    found = []
    for name, value in marks:
        words = shortened(name, canvas.width - 16, SIZE)
        half = measure(words, SIZE) / 2 + 6
        middle = min(max(x(value), half), canvas.width - half)
        start, end = middle - half, middle + half
        free = (k for k, row in enumerate(taken) if all(end <= a or b <= start for a, b in row))
        level = next(free)
        taken[level].append((start, end))
        found.append(Named(words=words, value=value, middle=middle, level=level))
    return found


def room_above(named: Sequence[Named]) -> int:
    """How many pixels the names take above the body."""
    return LEVEL * (1 + max((mark.level for mark in named), default=-1))


def draw_marks(
    canvas: Canvas, named: Sequence[Named], x: Linear, body: tuple[float, float]
) -> None:
    """The lines, each from the bottom of the body to its name, and the names."""
    top, bottom = body
    ends = ((short(x(mark.value)), short(top - LEVEL * mark.level)) for mark in named)
    canvas.path("".join(f"M{at} {short(bottom)}V{end}" for at, end in ends), stroke_width="1.5",
                stroke=canvas.colour("text"), stroke_dasharray="5 4")  # fmt: skip
    for mark in named:
        canvas.remark(mark.words, mark.middle, top - LEVEL * (mark.level + 0.5), "middle")
