"""Figures as SVG text: intervals, bars, shares, lines, histograms, heat maps and token strips.

Each is drawn at a given width, so that a page can hold a wide and a narrow drawing of the same
data. Colors are classes: the style sheet of a page decides, and `standalone` embeds a light one.
"""

import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import polars as pl

from sonde.evaluation.layout import Exhibit
from sonde.reports.cells import (
    escape_control_characters,
    format_cell,
    format_number,
    rows_by_label,
    text_columns,
)

SIZE, SMALL, ROW, NARROW = 13, 11.5, 24, 440
SERIES = "abcdef"  # classes of series; a control is gray
CONTROL = "c"
# Helvetica, Arial and Liberation Sans share these widths (thousandths of the size)
WIDTHS = {
    letter: width
    for width, letters in {
        222: "ijl’‘'|",
        278: ' !,./:;I[]\\ft·“”"',
        333: "()-`r{}*",
        500: "Jckvsxyz",
        584: "+<=>~−±",
        667: "&ABEKPSVXYFTZ",
        722: "CDHNRUw",
        778: "GOQ",
        833: "Mm",
        889: "%",
        944: "W",
        1000: "…@—",
    }.items()
    for letter in letters
}
STYLE = (
    "text{font:13px Helvetica,Arial,'Liberation Sans',sans-serif;fill:#1c2126}.m{fill:#59616a}"
    ".s{font-size:11.5px}.w{font-weight:700}.g{stroke:#e3e3de}.x{stroke:#8b8f94}.a{fill:#1f5c99}"
    ".b{fill:#bd540b}.c{fill:#8b8f94}.d{fill:#7a4fa3}.e{fill:#0f7c7c}.f{fill:#a8261c}.k{fill:#2b7a3d}"
    ".sa{stroke:#1f5c99}.sb{stroke:#bd540b}.sc{stroke:#8b8f94}.sd{stroke:#7a4fa3}.se{stroke:#0f7c7c}"
    ".sf{stroke:#a8261c}.n{fill:none}.band{opacity:.15}.on,.ground{fill:#fff}.cell{fill:#f1f2ef}"
)


def svg(item: Exhibit, width: int = 720) -> str:
    """The figure, drawn for a width in pixels."""
    parts, height, wide = DRAW[item.kind](item, width)
    size = f'viewBox="0 0 {wide:.0f} {height:.0f}" width="{wide:.0f}" height="{height:.0f}"'
    title = escape(escape_control_characters(item.title))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{title}">'
        f"{''.join(parts)}</svg>"
    )


def standalone(drawing: str) -> str:
    """A drawing with the style that a page would give it."""
    return drawing.replace(">", f"><style>{STYLE}</style>", 1)


Drawing = tuple[list[str], float, float]  # parts, height, width


def measure(text: str, size: float = SIZE) -> float:
    """Pixels that a text takes. Unknown scripts count as wide: better cut than overlapping."""
    total = 0
    for letter in text:
        if unicodedata.category(letter) != "Mn":
            base = unicodedata.normalize("NFD", letter)[0]
            usual = 556 if base.isascii() else 1000 if ord(base) > 0x2E80 else 640
            total += WIDTHS.get(base, usual)
    return total * size / 1000


def label(
    x: float,
    y: float,
    text: str,
    css: str = "",
    anchor: str = "",
    room: float = 0,
    size: float = SIZE,
) -> str:
    """A text; one that is longer than its room is cut, and whole in the tooltip."""
    text = short = escape_control_characters(text)
    if room and measure(text, size) > room:
        while short and measure(short + "…", size) > room:
            short = short[:-1]
        short = short.rstrip() + "…"
    title = f"<title>{escape(text)}</title>" if short != text else ""
    css = f"{css} s".strip() if size < SIZE else css
    ends = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{css}"{ends}>{escape(short)}{title}</text>'


def line(x1: float, y1: float, x2: float, y2: float, css: str, width: float = 1) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} class="{css}" stroke-width="{width}"/>'


def rect(x: float, y: float, width: float, height: float, css: str, more: str = "") -> str:
    size = f'x="{x:.1f}" y="{y:.1f}" width="{max(0.0, width):.1f}" height="{max(0.0, height):.1f}"'
    return f'<rect {size} class="{css}"{more}/>'


def mark(x: float, y: float, css: str, title: str = "") -> str:
    """Series differ by shape and color: circle, square, diamond."""
    shapes = {
        "a": "m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0",
        CONTROL: "m0 -5.5l5 5.5l-5 5.5l-5 -5.5z",
    }
    d = shapes.get(css, "m-4 -4h8v8h-8z")
    inside = f"<title>{escape(escape_control_characters(title))}</title>" if title else ""
    return f'<path d="M{x:.1f} {y:.1f}{d}" class="{css}">{inside}</path>'


def series(item: Exhibit) -> dict[str, str]:
    """The class of each series. The last is gray if the unit of colors is "control"."""
    frame = item.frame
    names = frame["color"].unique(maintain_order=True) if "color" in frame.columns else [""]
    colors = SERIES.replace(CONTROL, "")
    classes = {name or "": colors[k % len(colors)] for k, name in enumerate(names)}
    if item.units.get("color") == "control" and len(classes) > 1:
        classes[list(classes)[-1]] = CONTROL
    return classes


class Axis(NamedTuple):
    ticks: list[float]
    start: float
    stop: float
    unit: str

    @classmethod
    def over(
        cls, values: Sequence[float | None], start: float, stop: float, unit: str, most: int = 5
    ) -> "Axis":
        """From 0, or below where values are, to a round number that no value exceeds."""
        known = [v for v in values if v is not None and math.isfinite(v)]
        low, high = min(0.0, *known, 0.0), max(0.0, *known, 0.0)
        low = low if -low > 0.02 * high else 0.0  # the edge of a bin around 0
        high = high if high > low else 1.0
        power = 10 ** math.floor(math.log10((high - low) / most))
        step = next(
            s * power for s in (1, 2, 5, 10, 20) if s * power * most >= (high - low) * 0.999
        )
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        return cls([k * step for k in range(first, last + 1)], start, stop, unit)

    def __call__(self, value: float) -> float:
        low, high = self.ticks[0], self.ticks[-1]
        return self.start + (self.stop - self.start) * (min(max(value, low), high) - low) / (
            high - low
        )

    def text(self, tick: float) -> str:
        if self.unit in ("percent", "points"):
            return f"{tick * 100:g}{'%' if self.unit == 'percent' else ''}".replace("-", "−")
        return f"{tick:,.6g}".replace("-", "−")


def legend(
    names: Mapping[str, str], x: float, width: float, bars: bool = False
) -> tuple[list[str], float]:
    """The names of series in rows, and where they end; nothing for a single one."""
    if not any(names) or len(names) < 2:
        return [], 0.0
    parts, left, y = [], x, 12.0
    for name, css in names.items():
        if left > x and left + 18 + measure(name) > width:
            left, y = x, y + 18
        parts.append(rect(left, y - 9, 10, 10, css) if bars else mark(left + 5, y - 4.5, css))
        parts.append(label(left + 15, y, name, "m", room=width - left - 15))
        left += 33 + measure(name)
    return parts, y + 10


def intervals(item: Exhibit, width: float) -> Drawing:
    """Dots with intervals, a row per label, and columns of text on the right.

    A narrow drawing has the label and the first text above each lane.
    """
    narrow = width < NARROW
    rows, css = list(rows_by_label(item.frame).items()), series(item)
    shared = all(len(points) == 1 for _, points in rows)
    texts = text_columns(item)[1 : 2 if narrow else None]
    room = [max(map(measure, (column.head, *column.cells))) + 16 for column in texts]
    longest = max(measure(str(name)) for name, _ in rows) * 1.08 + 14
    left = 8.0 if narrow else min(longest, 0.4 * width)
    while len(texts) > 1 and width - left - sum(room) < 140:  # rather fewer texts than no dots
        texts.pop(), room.pop()
    right = width - (14 if narrow else sum(room) + 8)
    parts, top = legend({} if shared else css, 0, width)
    lanes = max(len(points) for _, points in rows)
    head, top = 20 if narrow else 0, top + 18
    tall = 10 * lanes + (12 if narrow else 14)
    values = [p.get(end) for _, ps in rows for p in ps.values() for end in ("x", "low", "high")]
    most = max(2, min(5, int((right - left) / 50)))
    axis = Axis.over(values, left + 6, right - 6, item.units.get("x", "number"), most)
    bottom = top + (head + tall) * len(rows) + 4
    for tick in axis.ticks:
        x = axis(tick)
        parts.append(line(x, top, x, bottom, "g" if tick else "x"))
        parts.append(label(x, bottom + 15, axis.text(tick), "m", "middle", size=SMALL))
    ends = [width] if narrow else [right + 8 + sum(room[: k + 1]) for k in range(len(texts))]
    for x, column in zip(ends, texts, strict=True):
        parts.append(label(x, top - 6, column.head, "m", "end", size=SMALL))
    for i, (name, points) in enumerate(rows):
        y, bold = top + (head + tall) * i, "w" if name == "All" else ""
        base, space = (y + 15, width - room[0]) if narrow else (y + tall / 2 + 4.5, left - 12)
        if narrow:  # no axis runs through the texts
            parts.append(rect(0, y, width, head, "ground"))
        parts.append(label(0, base, format_cell(name), bold, room=space))
        for x, column in zip(ends, texts, strict=True):
            css_of = bold if column is texts[0] else f"m {bold}"
            parts.append(label(x, base, column.cells[i], css_of, "end"))
        for lane, (color, point) in enumerate(points.items()):
            if (value := point["x"]) is not None:
                lane_y = y + head + tall / 2 + 10 * (lane - (len(points) - 1) / 2)
                low, high = (
                    axis(value if e is None else e) for e in (point.get("low"), point.get("high"))
                )
                parts.append(line(low, lane_y, high, lane_y, f"s{css[color]}", 2))
                parts.append(mark(axis(value), lane_y, css[color]))
    return parts, bottom + 22, width


def bars(item: Exhibit, width: float) -> Drawing:
    """Horizontal bars, `part` of them green, or shares: the parts of one bar per label.

    Long labels of a narrow drawing are above the bars.
    """
    rows, css, stacked = (
        list(rows_by_label(item.frame).items()),
        series(item),
        item.kind == "shares",
    )
    texts = [""] * len(rows) if stacked else text_columns(item)[1].cells
    longest = max(measure(str(name)) for name, _ in rows) * 1.08 + 14
    above = width < NARROW and longest > 0.4 * width
    left = 0.0 if above else min(longest, 0.4 * width)
    scale = width - left
    if not stacked:
        most = max(row["x"] or 0 for _, points in rows for row in points.values())
        scale = (scale - max(map(measure, texts)) - 16) / max(1e-9, most)
    lanes = 1 if stacked else max(len(points) for _, points in rows)
    thick, tall = (8, 9 * lanes + (4 if width < NARROW else 10)) if lanes > 1 else (19, ROW)
    head = 16 if above else 0
    names = css if stacked or lanes > 1 else {}
    if "part" in item.frame.columns:
        names = {**(css if any(css) else {"answers": "a"}), "correct": "k"}
    parts, top = legend(names, 0, width, bars=True)
    for i, ((name, points), text) in enumerate(zip(rows, texts, strict=True)):
        y, x = top + 2 + (tall + head) * i, left
        middle = y + head + tall / 2
        place = (0.0, y + 13, "", width) if above else (left - 10, middle + 4.5, "end", left - 12)
        parts.append(label(place[0], place[1], format_cell(name), "", place[2], place[3]))
        for k, (color, row) in enumerate(points.items()):
            lane = middle - thick * lanes / 2 + (0 if stacked else thick * k)
            wide = (row["x"] or 0) * scale
            parts.append(rect(x, lane, wide, thick - 1, css[color]))
            if row.get("part"):
                parts.append(rect(left, lane, row["part"] * scale, thick - 1, "k"))
            if stacked:
                share = format_number(row["x"], "percent")
                if measure(share, SMALL) + 6 < wide:
                    parts.append(label(x + wide / 2, lane + 13, share, "on", "middle", size=SMALL))
                x += wide
        if not stacked:
            x += max(row["x"] or 0 for row in points.values()) * scale
            parts.append(label(x + 7, middle + 4.5, text, "m"))
    return parts, top + (tall + head) * len(rows) + 6, width


def lines(item: Exhibit, width: float) -> Drawing:
    """Lines with bands, points with names, or a histogram, over two axes."""
    frame, css = item.frame, series(item)
    parts, top = legend(css, 44, width)
    top, left, right = top + 22, 48.0, width - 12
    bottom = top + min(230, width * 0.5)
    # text on the x axis: places in order
    named = frame["x"].unique(maintain_order=True) if frame["x"].dtype == pl.String else ()
    places: dict[Any, Any] = {x: k for k, x in enumerate(named)}
    xs = [places.get(x, x) for x in frame["x"]]
    step = xs[1] - xs[0] if item.kind == "histogram" and len(xs) > 1 else 0
    unit, most = item.units.get("x", "number"), max(2, int(width / 90))
    axis = Axis.over([*xs, max(xs) + step], left + 6, right - 6, unit, most)
    if places:
        axis = axis._replace(ticks=[-0.5, len(places) - 0.5])
    values = [v for name in ("y", "low", "high") if name in frame.columns for v in frame[name]]
    up = Axis.over(values, bottom, top, item.units.get("y", "number"))
    for tick in up.ticks:
        parts.append(line(left, up(tick), right, up(tick), "g"))
        parts.append(label(left - 6, up(tick) + 4, up.text(tick), "m", "end", size=SMALL))
    parts.append(label(0, top - 10, item.y_label, "m", size=SMALL))
    parts.append(label(right, bottom + 34, item.x_label, "m", "end", size=SMALL))
    ticks: dict[str, Any] = places or {axis.text(tick): tick for tick in axis.ticks}
    widest = max(measure(str(text), SMALL) for text in ticks) + 8
    every = max(1, math.ceil(len(ticks) * widest / (right - left)))
    for text, x in list(ticks.items())[::every]:
        parts.append(label(axis(x), bottom + 18, str(text), "m", "middle", size=SMALL))
    if item.kind == "lines" and unit == up.unit == "percent":
        end = min(axis.ticks[-1], up.ticks[-1])
        parts.append(line(axis(0), up(0), axis(end), up(end), "x"))
    for name, color in css.items():
        points = [
            (axis(places.get(row["x"], row["x"])), up(row["y"]), row)
            for row in frame.iter_rows(named=True)
            if row["y"] is not None and (row.get("color") or "") == name
        ]
        if step and len(css) == 1:
            wide = axis(xs[0] + step) - axis(xs[0]) - 1
            parts += [rect(x, y, wide, up(0) - y, color) for x, y, _ in points]
            continue
        if not any(row.get("label") for *_, row in points):
            ends: Any = [(x, row.get("low"), row.get("high")) for x, _, row in points]
            band = [end for end in ends if None not in end]
            outline = [(x, up(high)) for x, _, high in band]
            outline += [(x, up(low)) for x, low, _ in band[::-1]]
            corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in outline)
            path = "L".join(f"{x:.1f} {y:.1f}" for x, y, _ in points)
            parts.append(f'<polygon class="{color} band" points="{corners}"/>')
            parts.append(f'<path d="M{path}" class="n s{color}" stroke-width="2"/>')
        parts += [mark(x, y, color, row.get("label") or "") for x, y, row in points]
    return parts, bottom + 40, width


def shade(
    x: float, y: float, width: float, height: float, value: float | None, limit: float
) -> str:
    """A cell as strong as its value; a negative one has the color of the second series."""
    if value is None:
        return rect(x, y, width, height, "cell")
    strength = 0.1 + 0.85 * min(1.0, abs(value) / limit)
    return rect(x, y, width, height, "ab"[value < 0], f' opacity="{strength:.2f}"')


def heat(item: Exhibit, width: float) -> Drawing:
    """A field of cells."""
    rows = rows_by_label(item.frame, "y", "x")
    names = list(dict.fromkeys(item.frame["x"]))
    left = min(max(measure(str(name)) for name in rows) * 1.05 + 12, 0.34 * width)
    wide = min((width - left - 40) / len(names), 44)
    top = min(max(measure(str(name), SMALL) for name in names), 120) * 0.72 + 26
    tall = min(22.0, max(16.0, wide))
    limit, unit = largest_magnitude(item), item.units.get("color", "number")
    parts = [
        label(left, 12, item.x_label, "m", size=SMALL),
        label(0, top - 6, item.y_label, "m", room=left, size=SMALL),
    ]
    for j, name in enumerate(names):
        turn = f"translate({left + wide * (j + 0.5):.1f} {top - 6:.1f}) rotate(-45)"
        parts.append(
            f'<g transform="{turn}">{label(0, 0, format_cell(name), room=120, size=SMALL)}</g>'
        )
    for i, (row, values) in enumerate(rows.items()):
        y = top + tall * i
        parts.append(label(left - 8, y + tall / 2 + 4.5, format_cell(row), "", "end", left - 10))
        for j, name in enumerate(names):
            x, point = left + wide * j, values.get(name, {})
            value = point.get("color")
            parts.append(shade(x, y, wide - 1, tall - 1, value, limit))
            text = (
                "" if value is None else point.get("text") or format_number(value, unit).rstrip("%")
            )
            if wide > measure(text, SMALL):
                css = "on" if abs(value or 0) > limit / 2 else ""
                middle = x + wide / 2, y + tall / 2 + 4
                parts.append(label(*middle, text, css, "middle", size=SMALL))
    return parts, top + tall * len(rows) + 6, width


def largest_magnitude(item: Exhibit) -> float:
    return item.limit or item.frame["color"].abs().max() or 1.0  # type: ignore[return-value]


def strip(item: Exhibit, width: float) -> Drawing:
    """Tokens in reading order on a ground as strong as their weight; lines break at the width."""
    limit, parts, y = largest_magnitude(item), list[str](), 0.0
    for (title,), tokens in item.frame.partition_by("y", as_dict=True, maintain_order=True).items():
        parts.append(label(0, y + 14, format_cell(title), "w", room=width))
        x, y = 0.0, y + 22
        for token, weight in tokens.select("label", "color").iter_rows():
            shown = format_cell(token).replace(" ", "·") or "∅"
            wide = measure(shown) * 1.05 + 8
            if x and x + wide > width:
                x, y = 0.0, y + 24
            parts.append(shade(x, y, wide - 1, 20, weight, limit))
            css = "on" if abs(weight or 0) > 0.6 * limit else ""
            parts.append(label(x + 4, y + 14.5, shown, css, room=width))
            x += wide
        y += 32
    return parts, y, width


DRAW: dict[str, Callable[[Exhibit, float], Drawing]] = {
    "intervals": intervals,
    "bars": bars,
    "shares": bars,
    "lines": lines,
    "histogram": lines,
    "heat": heat,
    "strip": strip,
}
