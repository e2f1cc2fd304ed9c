"""Curves through points over a pair of axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sonde.core.reports import Curve, Curves
from sonde.reporting.render.cells import Scale, fixed, known, number
from sonde.reporting.render.figures.canvas import (
    INKS,
    Canvas,
    Linear,
    from_zero,
    joined,
    short,
    tick_words,
    ticks,
    whole,
    wrapped,
)
from sonde.reporting.render.figures.look import (
    DASHES,
    LINE,
    Entry,
    axis_title,
    draw_marks,
    every,
    fitting,
    label,
    legend,
    lines_of,
    outline,
    placed,
    room_above,
    x_axis,
    x_numbers,
    y_axis,
)

WIDTH, BODY, BODY_NARROW = 640, 420, 290  # pixels of curves: about a square
SMALL, USUAL, LARGE = 3.5, 4.0, 10  # radii of points in pixels
ASIDE, ASIDE_MOST = 5.0, 24.0  # pixels from one curve with whiskers to the next, and over all

Reach = tuple[float, float]


def curves(canvas: Canvas, plot: Curves) -> None:
    """Lines with points; a point's area follows its size, the diagonal is a dotted line."""
    canvas.width = min(canvas.width, WIDTH)
    legend(canvas, entries(canvas, plot))
    x_reach, y_reach = reaches(plot)
    body = BODY_NARROW if canvas.narrow else BODY
    x, y = axes(canvas, plot, x_reach, y_reach, body)
    if plot.diagonal:
        low, high = max(x.low, y.low), min(x.high, y.high)
        canvas.path(joined([(x(end), y(end)) for end in (low, high)]), stroke_width="1.5",
                    stroke=canvas.colour("muted"), stroke_dasharray="2 3")  # fmt: skip
    sizes = drawn_sizes(plot)
    for k in range(len(plot.curves)):
        line(canvas, plot, k, (x, y), sizes)
    if not any(points(plot, curve) for curve in plot.curves):
        canvas.remark("not measured", (x.start + x.end) / 2, (y.start + y.end) / 2, "middle")
    feet(canvas, plot, x)


def entries(canvas: Canvas, plot: Curves) -> list[Entry]:
    """The legend: every curve, and the diagonal if there is one."""

    def sign(k: int, curve: Curve) -> Callable[[float, float], None]:
        def draw(x: float, y: float) -> None:
            if curve.joined:
                canvas.path(f"M{short(x)} {short(y)}h24", **stroke(canvas, k))
            canvas.path(outline(k, x + 12, y, 4), fill=canvas.ink(k))

        return draw

    def dotted(x: float, y: float) -> None:
        canvas.path(f"M{short(x)} {short(y)}h24", stroke=canvas.colour("muted"),
                    stroke_width="1.5", stroke_dasharray="2 3")  # fmt: skip

    named = [(curve.name, sign(k, curve)) for k, curve in enumerate(plot.curves)]
    return [*named, ("both equal", dotted)] if plot.diagonal else named


def stroke(canvas: Canvas, k: int) -> dict[str, str | None]:
    """The look of the k-th line."""
    dash = DASHES[k // len(INKS) % len(DASHES)]
    return {
        "stroke": canvas.ink(k),
        "stroke_width": "1.5",
        "stroke_dasharray": dash,
        "fill": "none",
    }


def axes(
    canvas: Canvas, plot: Curves, x_reach: Reach, y_reach: Reach, body: float
) -> tuple[Linear, Linear]:
    """Both axes with their lines and numbers; what y is of stands above it."""
    y_places = ticks(*y_reach, 6, whole=plot.kind == "number" and counted(plot, "y"))
    numbers = tick_words(y_places, plot.kind)
    left = max(map(canvas.wide, numbers), default=0) + 10
    x = Linear(*x_reach, left, canvas.width - 20)
    for words in wrapped(plot.y_axis, canvas.width - 8, canvas.size):
        canvas.words(words, 0, canvas.height + LINE / 2)
        canvas.height += LINE
    named = placed(canvas, plot.marks, x)
    canvas.height += 10 + room_above(named)
    top, bottom = canvas.height, canvas.height + body
    y = Linear(*y_reach, bottom, top)
    y_axis(canvas, x, y, y_places, numbers)
    places = [] if plot.x_labels else x_places(canvas, plot, x)
    x_axis(canvas, x, (top, bottom), places, zero=not plot.x_labels)
    draw_marks(canvas, named, x, (top, bottom))
    canvas.height = bottom
    return x, y


def x_places(canvas: Canvas, plot: Curves, x: Linear) -> list[float]:
    """Round numbers along the x axis; whole ones where every point stands at one."""
    return fitting(x, x_kind(plot), canvas, x_kind(plot) == "number" and counted(plot, "x"))


def counted(plot: Curves, axis: str) -> bool:
    """Whether all points stand at whole numbers of an axis, some beyond 1, which shares can be."""
    found = [v for c in plot.curves for v in getattr(c, axis) if known(v) is not None]
    return whole(found) and max(found, default=0.0) > 1


def line(
    canvas: Canvas, plot: Curves, k: int, at: tuple[Linear, Linear], sizes: Sequence[int]
) -> None:
    """One curve: a line through the points that were measured, with their whiskers."""
    curve, (x, y) = plot.curves[k], at
    kept = points(plot, curve)
    beside = aside(plot, k)
    spots = [(x(curve.x[i]) + beside, y(curve.y[i])) for i in kept]
    with canvas.group(data_series=k, **stroke(canvas, k)):
        if curve.joined:
            canvas.path(joined(spots))
        if curve.low:
            ends = ((spot, y(curve.low[i]), y(curve.high[i])) for i, (spot, _) in
                    zip(kept, spots, strict=True) if known(curve.low[i]) is not None
                    and known(curve.high[i]) is not None)  # fmt: skip
            canvas.path("".join(f"M{short(s)} {short(a)}V{short(b)}M{short(s - 3)} {short(a)}h6"
                                f"M{short(s - 3)} {short(b)}h6" for s, a, b in ends),
                        stroke_dasharray="none")  # fmt: skip
    with canvas.points(k, fill=canvas.ink(k), fill_opacity=".85"):
        for i, (px, py) in zip(kept, spots, strict=True):
            r = radius(curve.sizes[i], sizes) if curve.sizes else USUAL
            canvas.point(outline(k, px, py, r), tip(plot, curve, i))


def aside(plot: Curves, k: int) -> float:
    """How many pixels the k-th curve stands aside, so that no whisker hides one at the same place.

    >>> def drawn(x): return Curve(name="", x=(x,), y=(0.5,), low=(0.4,), high=(0.6,))
    >>> def of(*xs): return Curves(id="", title="", x_axis="", y_axis="", curves=[*map(drawn, xs)])
    >>> aside(of(1, 1), 0), aside(of(1, 1), 1), aside(of(1, 2), 0), aside(of(1), 0)
    (-2.5, 2.5, 0.0, 0.0)
    """
    several = [set(curve.x) for curve in plot.curves if curve.low]
    if len(several) < 2 or sum(map(len, several)) == len(set.union(*several)):
        return 0.0
    step = min(ASIDE, ASIDE_MOST / (len(plot.curves) - 1))
    return step * (k - (len(plot.curves) - 1) / 2)


def points(plot: Curves, curve: Curve) -> list[int]:
    """The points to draw: both coordinates known, and enough in the bin."""
    enough = max(1, plot.least)
    sizes = curve.sizes or (enough,) * len(curve.x)
    places = enumerate(zip(curve.x, curve.y, sizes, strict=True))
    return [i for i, (x, y, n) in places if known(x) is not None and known(y) is not None
            and n >= enough]  # fmt: skip


def drawn_sizes(plot: Curves) -> list[int]:
    """The sizes of the points that are drawn, where they have any."""
    return [c.sizes[i] for c in plot.curves if c.sizes for i in points(plot, c)]


def alike(sizes: Sequence[int]) -> bool:
    """Whether no size differs so much that it should be seen."""
    return max(sizes) <= 1.2 * min(sizes)


def radius(n: int, sizes: Sequence[int]) -> float:
    """The radius of a point whose area follows n, where sizes differ.

    >>> radius(100, [25, 100]), radius(25, [25, 100]), radius(1, [1, 10000]), radius(9, [9, 10])
    (10.0, 5.0, 3.5, 4.0)
    """
    return USUAL if alike(sizes) else max(SMALL, LARGE * (n / max(sizes)) ** 0.5)


def tip(plot: Curves, curve: Curve, i: int) -> str:
    """What the pointer reads at a point: curve, both coordinates, interval, size."""
    ends = ""
    if curve.low:
        low, high = (number(end, plot.kind) for end in (curve.low[i], curve.high[i]))
        ends = f"[{low}, {high}]"
    n = f"n = {fixed(curve.sizes[i], 0)}" if curve.sizes else ""
    across = f"{plot.x_axis}: {place(plot, curve.x[i])}"
    return lines_of(
        (curve.name, across, f"{plot.y_axis}: {number(curve.y[i], plot.kind)}", ends, n)
    )


def place(plot: Curves, x: float) -> str:
    """A place on the x axis in words."""
    if plot.x_labels:
        return plot.x_labels[round(x)]
    counted = plot.x_kind == "number" and float(x).is_integer()
    return fixed(x, 0) if counted else number(x, x_kind(plot))


def reaches(plot: Curves) -> tuple[Reach, Reach]:
    """How far the axes reach; a diagonal of shares has the whole square, others share theirs."""
    xs = [value for _, value in plot.marks]
    ys: list[float] = []
    for curve in plot.curves:
        for i in points(plot, curve):
            xs.append(curve.x[i])
            ys += [curve.y[i], *curve.low[i : i + 1], *curve.high[i : i + 1]]
    if plot.x_labels:
        return (-0.5, len(plot.x_labels) - 0.5), from_zero(ys, plot.kind)
    if not plot.diagonal:
        return from_zero(xs, x_kind(plot)), from_zero(ys, plot.kind)
    if plot.kind == "percent":
        both = min(0.0, *xs, *ys, 0.0), max(1.0, *xs, *ys, 1.0)
    else:
        both = from_zero(xs + ys, plot.kind)
    return both, both


def x_kind(plot: Curves) -> Scale:
    """How places on the x axis are written."""
    return plot.x_kind or plot.kind


def sizes_told(plot: Curves) -> Iterator[str]:
    """What the size of a point means, and how many points are too small to be drawn."""
    sizes = drawn_sizes(plot)
    if sizes and alike(sizes):
        about = "" if min(sizes) == max(sizes) else "about "
        yield f"each point stands for {about}{fixed(max(sizes), 0)}"
    elif sizes:
        yield f"larger points stand for more, at most {fixed(max(sizes), 0)}"
    few = sum(0 < n < plot.least for curve in plot.curves for n in curve.sizes)
    if few:
        which = "one point of fewer than {0} is" if few == 1 else "{1} points of fewer than {0} are"
        yield which.format(plot.least, few) + " not drawn"


def feet(canvas: Canvas, plot: Curves, x: Linear) -> None:
    """Below the body: the numbers or labels of the x axis, its title, what sizes mean."""
    if plot.x_labels:
        slot = x.length / len(plot.x_labels)
        fit = max(1, int(x.length // 34))
        step = max(1, -(-len(plot.x_labels) // fit))
        room = slot * step - 6
        tall = max(len(wrapped(words, room, canvas.size, 3)) for words in plot.x_labels)
        for i, words in every(plot.x_labels, fit):
            label(canvas, words, x(i), canvas.height + 6 + tall * (LINE - 2) / 2, room, 3, "middle")
        canvas.height += 10 + tall * (LINE - 2)
    else:
        x_numbers(canvas, x, canvas.height + 6 + LINE / 2, x_kind(plot), x_places(canvas, plot, x))
        canvas.height += LINE + 8
    axis_title(canvas, plot.x_axis, x)
    for words in sizes_told(plot):
        canvas.remark(words, x.end, canvas.height + LINE / 2 + 2, "end")
        canvas.height += LINE + 2
    canvas.height += 6
