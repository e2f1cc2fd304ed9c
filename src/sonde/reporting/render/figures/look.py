"""What figures share: symbols, legends, axes, rows with labels, remarks, and named places on an
axis: a dashed line at each, its name above where it meets no other. Knows no kind of figure.

Every function draws below what is there already and moves the canvas's height on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sonde.core.reports import Boxes, Labelled, Strip
from sonde.reporting.render.cells import Scale
from sonde.reporting.render.figures.canvas import (
    BOLD,
    INKS,
    Canvas,
    Linear,
    from_zero,
    measure,
    safe,
    short,
    shortened,
    tick_words,
    ticks,
    wrapped,
)

SYMBOLS = ("circle", "diamond", "square", "triangle", "cross")
DASHES = (None, "7 4", "2 3", "7 3 2 3")
LINE = 16  # pixels of a line of words
ENTRY = 22  # pixels of a line of a legend
SMALLEST = 48  # pixels of a body, however few rows there are
APART = 12  # pixels between two numbers of an axis
LABELS = 0.36  # of the width, for the labels of rows at most
LEVEL, LETTERS = 18, 11  # pixels of a line of names above a body, and of their letters
MANY = 40  # rows from which on the axis stands at both ends

Entry = tuple[str, Callable[[float, float], None]]
"""A name in a legend and what draws its sign, 24 pixels wide, from here on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Where a figure with a row per label has its values and the middles of its rows."""

    x: Linear
    middles: tuple[float, ...]
    height: float


def symbol(k: int) -> str:
    """The k-th symbol, such that ink and symbol together repeat only after 25."""
    return SYMBOLS[(k + k // len(INKS)) % len(SYMBOLS)]


def outline(k: int, x: float, y: float, r: float) -> str:
    """The k-th symbol about a place, as a path of about the area of a circle of radius r."""
    kind, at = symbol(k), f"M{short(x)} {short(y)}"
    if kind == "circle":
        d = short(2 * r)
        return f"M{short(x - r)} {short(y)}a{short(r)} {short(r)} 0 1 0 {d} 0a{short(r)} {short(r)} 0 1 0-{d} 0"  # noqa: E501
    if kind == "diamond":
        a = short(1.25 * r)
        return f"{at}m0-{a}l{a} {a}-{a} {a}-{a}-{a}z"
    if kind == "square":
        a, b = short(0.9 * r), short(1.8 * r)
        return f"{at}m-{a}-{a}h{b}v{b}h-{b}z"
    if kind == "triangle":
        a, b, c = short(1.2 * r), short(1.25 * r), short(2.1 * r)
        return f"{at}m0-{b}l{a} {c}h-{short(2.4 * r)}z"
    a, b = short(0.45 * r), short(0.75 * r)
    return f"{at}m-{b}-{short(1.2 * r)}l{b} {b} {b}-{b} {a} {a}-{b} {b} {b} {b}-{a} {a}-{b}-{b}-{b} {b}-{a}-{a} {b}-{b}-{b}-{b}z"  # noqa: E501


def heading(canvas: Canvas, title: str) -> None:
    """A title in bold above everything else, on as many lines as it takes."""
    size = 15.0
    for line in wrapped(title, (canvas.width - 16) / BOLD, size):
        canvas.words(line, 0, canvas.height + 12, size=size, font_weight="bold")
        canvas.height += 21
    canvas.height += 10


def legend(canvas: Canvas, entries: Sequence[Entry]) -> None:
    """Names with their signs, from left to right over as many lines as it takes; an entry without
    a name is left out."""
    named = {k: entry for k, entry in enumerate(entries) if entry[0]}
    if not named:
        return
    room = canvas.width - 30
    x, y = 0.0, canvas.height + ENTRY / 2
    for k, (name, sign) in named.items():
        width = min(measure(name, canvas.size), room)
        if x and x + 30 + width > canvas.width:
            x, y = 0.0, y + ENTRY
        with canvas.group(class_="entry", data_entry=k):
            sign(x, y)
            canvas.words(name, x + 30, y, room=room)
        x += 30 + width + 20
    canvas.height = y + ENTRY / 2 + 10


def fitting(scale: Linear, kind: Scale, canvas: Canvas, whole: bool = False) -> list[float]:
    """As many round numbers as stand side by side on an axis without touching."""
    most = 6 if canvas.narrow else 9
    for count in range(most, 1, -1):
        places = ticks(scale.low, scale.high, count, whole)
        widths = [canvas.wide(words) for words in tick_words(places, kind)]
        pairs = zip(pairwise(map(scale, places)), pairwise(widths), strict=True)
        if all(b - a >= (v + w) / 2 + APART for (a, b), (v, w) in pairs):
            return places
    return places[:1]


def x_axis(
    canvas: Canvas,
    x: Linear,
    body: tuple[float, float],
    places: Sequence[float],
    *,
    zero: bool = True,
) -> None:
    """Lines over the body at round numbers, a stronger one at zero."""
    top, bottom = body
    lines = (f"M{short(x(place))} {short(top)}V{short(bottom)}" for place in places if place)
    canvas.path("".join(lines), stroke=canvas.colour("rule"))
    if zero and x.low <= 0 <= x.high:
        canvas.path(f"M{short(x(0))} {short(top)}V{short(bottom)}",
                    stroke=canvas.colour("strong-rule"))  # fmt: skip


def x_numbers(canvas: Canvas, x: Linear, y: float, kind: Scale, places: Sequence[float]) -> None:
    """The numbers of an axis, their middle at y."""
    for place, words in zip(places, tick_words(places, kind), strict=True):
        at = x(place)
        half = canvas.wide(words) / 2
        canvas.words(words, min(max(at, half), canvas.width - half), y, anchor="middle",
                     colour="muted")  # fmt: skip


def y_axis(
    canvas: Canvas, x: Linear, y: Linear, places: Sequence[float], numbers: Sequence[str]
) -> None:
    """Lines across the body, with their numbers at the left; a stronger one at zero."""
    lines = (f"M{short(x.start)} {short(y(place))}H{short(x.end)}" for place in places if place)
    canvas.path("".join(lines), stroke=canvas.colour("rule"))
    if y.low <= 0 <= y.high:
        canvas.path(f"M{short(x.start)} {short(y(0))}H{short(x.end)}",
                    stroke=canvas.colour("strong-rule"))  # fmt: skip
    for place, words in zip(places, numbers, strict=True):
        canvas.words(words, x.start - 6, y(place), anchor="end", colour="muted")


def axis_title(canvas: Canvas, words: str, x: Linear) -> None:
    """What an axis is of, under its middle, on as many lines as it takes."""
    middle = (x.start + x.end) / 2
    room = canvas.width - 8
    for line in wrapped(words, room, canvas.size):
        half = canvas.wide(line) / 2 + 2
        at = min(max(middle, half), canvas.width - half)
        canvas.words(line, at, canvas.height + LINE / 2, anchor="middle")
        canvas.height += LINE


def label(
    canvas: Canvas, words: str, x: float, y: float, room: float, most: int = 2, anchor: str = "end"
) -> None:
    """Words on a line or two about y; whole as a title where something was left out."""
    lines = wrapped(words, room, canvas.size, most)
    if len(lines) == 1:
        canvas.words(words, x, y, room=room, anchor=anchor)
        return
    with canvas.group():
        if lines[-1].endswith("…"):
            canvas.add("title", safe(words))
        for i, line in enumerate(lines):
            canvas.words(line, x, y + (i - (len(lines) - 1) / 2) * (LINE - 2), anchor=anchor)


def rows(
    canvas: Canvas,
    plot: Labelled | Strip | Boxes,
    row: float,
    ends: Iterable[float],
    many: int = 15,
) -> Rows:
    """Labels at the left, a row of so many pixels each, and the axis of values, from zero on.

    From `many` labels on the axis stands at the top, where reading begins.
    """
    size = canvas.size
    room = min(max((measure(w, size) for w in plot.labels), default=0), LABELS * canvas.width)
    doubled = any(measure(words, size) > room for words in plot.labels)
    row = max(row, 34.0) if doubled else row
    low, high = from_zero(ends, plot.kind)
    x = Linear(low, high, room + 12, canvas.width - 24)
    places = fitting(x, plot.kind, canvas)
    at_top = len(plot.labels) > many
    if at_top:
        axis_title(canvas, plot.axis, x)
        x_numbers(canvas, x, canvas.height + LINE / 2, plot.kind, places)
        canvas.height += LINE + 4
    top = canvas.height
    bottom = top + max(SMALLEST, row * len(plot.labels) + 8)
    middles = tuple(top + 4 + row * (i + 0.5) for i in range(len(plot.labels)))
    guides = "".join(f"M{short(x.start)} {short(y)}H{short(x.end)}" for y in middles)
    canvas.path(guides, stroke=canvas.colour("rule"), stroke_dasharray="1 3")
    x_axis(canvas, x, (top, bottom), places)
    for words, y in zip(plot.labels, middles, strict=True):
        label(canvas, words, room, y, room + 0.5)
    canvas.height = bottom
    if not at_top or len(plot.labels) > MANY:
        x_numbers(canvas, x, bottom + 4 + LINE / 2, plot.kind, places)
        canvas.height += LINE + 6
    if not at_top:
        axis_title(canvas, plot.axis, x)
    canvas.height += 6
    return Rows(x=x, middles=middles, height=row)


def whisker(x: Linear, ends: tuple[float, float], y: float) -> str:
    """An interval as a path: a line from end to end."""
    return f"M{short(x(ends[0]))} {short(y)}H{short(x(ends[1]))}"


def row_remark(
    canvas: Canvas, x: Linear, y: float, words: str, taken: Iterable[float] = ()
) -> None:
    """A word at the end of a row: at the right, or at the left if something stands there."""
    places = [x(value) for value in taken]
    wide = measure(words, 11) + 8
    clash = any(place > x.end - wide for place in places)
    free = not any(place < x.start + wide for place in places)
    if clash and free:
        canvas.remark(words, x.start + 6, y)
    else:
        canvas.remark(words, x.end, y, "end")


def not_measured(which: str, room: float) -> str:
    """That something was not measured, in words for a remark; its name is shortened to the room."""
    if not which:
        return "not measured"
    tail = ": not measured"
    return shortened(which, room - measure(tail, 11), 11) + tail


def shifts(count: int, step: float) -> list[float]:
    """So many places, a step apart, evenly about zero.

    >>> shifts(1, 0.3), shifts(2, 0.3), shifts(3, 0.2)
    ([0.0], [-0.15, 0.15], [-0.2, 0.0, 0.2])
    """
    return [step * (k - (count - 1) / 2) for k in range(count)]


def beside(canvas: Canvas, k: int) -> Callable[[float, float], None]:
    """What draws the k-th symbol in a legend."""

    def draw(x: float, y: float) -> None:
        canvas.path(outline(k, x + 12, y, 5), fill=canvas.ink(k))

    return draw


def lines_of(tip: Iterable[str]) -> str:
    """What the pointer reads: the parts that there are, a line each."""
    return "\n".join(part for part in tip if part)


def every(labels: Sequence[str], fit: int) -> Iterator[tuple[int, str]]:
    """Labels with their places: all, or every so many that no more than `fit` are left."""
    step = max(1, -(-len(labels) // max(1, fit)))
    return ((i, labels[i]) for i in range(0, len(labels), step))


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
        words = shortened(name, canvas.width - 16, LETTERS)
        half = measure(words, LETTERS) / 2 + 6
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
