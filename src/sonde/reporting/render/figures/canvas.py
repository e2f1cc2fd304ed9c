"""What figures are drawn on: SVG as text, piece by piece. Knows no kind of figure.

On a page colours are variables of its style sheet, so that a theme turns them without redrawing,
and what the pointer reads at a point is kept apart, once for all sizes of a figure. In a file of
its own colours are literal and every point carries its words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape

from sonde.reporting.render.figures.text import FONT, measure, shortened

NARROW = 500  # pixels: what is less wide is drawn for a phone
NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# apart with red-green and with blue-yellow colour blindness, and 3 to 1 against the page
INKS = ("#0b5394", "#b04a00", "#22a578", "#cf73c4", "#33383d")
LIGHT = {
    "paper": "#ffffff", "text": "#1c2126", "muted": "#555d66", "rule": "#e4e0d6",
    "strong-rule": "#8b8f94", **{f"ink-{k}": ink for k, ink in enumerate(INKS, 1)},
    # one hue from light to dark; two hues for values about zero, also told apart by blue and orange
    "scale-1": "#e4e9ee", "scale-2": "#7ba6d0", "scale-3": "#0a3a6b",
    "zero-1": "#8a3a00", "zero-2": "#e9e6df", "zero-3": "#0a3a6b",
    "towards": "#5b9fe8", "away": "#ee8f3a",
}  # fmt: skip
"""The colours of the light theme, which files have; the style sheet of pages has the same names."""

Attribute = str | float | None


def safe(words: str) -> str:
    """Words that are only words in XML, whatever they hold."""
    return escape(NOT_XML.sub("\N{REPLACEMENT CHARACTER}", words))


def short(value: float) -> str:
    """A number of pixels with one decimal at most.

    >>> short(12.04), short(-0.04), short(3.25)
    ('12', '0', '3.2')
    """
    words = f"{value:.1f}"
    return "0" if words == "-0.0" else words.removesuffix(".0")


def joined(points: Sequence[tuple[float, float]]) -> str:
    """A line through points, as a path has it."""
    return "M" + "L".join(f"{short(x)} {short(y)}" for x, y in points) if points else ""


class Canvas:
    """A drawing in the making: so many pixels wide, as tall as what is put on it."""

    def __init__(self, width: float, colours: Mapping[str, str] | None = LIGHT) -> None:
        self.width = width
        self.narrow = width < NARROW  # for a phone
        self.size = 12 if self.narrow else 13  # of the words, in pixels
        self.colours = colours  # those of the page's theme where there are none
        self.height = 0.0
        self.tips: list[str] = []
        self.parts: list[str] = []

    def colour(self, name: str) -> str:
        """A colour by its name; those of the theme follow it."""
        return f"var(--{name})" if self.colours is None else self.colours[name]

    def ink(self, k: int) -> str:
        """The k-th colour of series; they come round again."""
        return self.colour(f"ink-{k % len(INKS) + 1}")

    def mixed(self, first: str, second: str, share: float) -> str:
        """Some share of the second colour in the first."""
        if self.colours is None:
            percent = short(share * 100)
            return f"color-mix(in srgb,var(--{second}) {percent}%,var(--{first}))"
        named = (self.colours[name] for name in (first, second))
        ends = ([int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in named)
        parts = (round(a + share * (b - a)) for a, b in zip(*ends, strict=True))
        return "#" + "".join(f"{part:02x}" for part in parts)

    def add(self, tag: str, inner: str = "", **attributes: Attribute) -> None:
        """An element; words within must be safe. Underscores in names stand for hyphens."""
        opening = self._opening(tag, attributes)
        self.parts.append(f"{opening}>{inner}</{tag}>" if inner else opening + "/>")

    def point(self, d: str, tip: str, **attributes: Attribute) -> None:
        """A path in a group of `points`, at which the pointer reads a tip."""
        self.tips.append(tip)
        self.add("path", f"<title>{safe(tip)}</title>" if self.colours else "", d=d, **attributes)

    def path(self, d: str, **attributes: Attribute) -> None:
        """A path, if there is anything in it."""
        if d:
            self.add("path", "", d=d, **attributes)

    @contextmanager
    def group(self, **attributes: Attribute) -> Iterator[None]:
        """What is drawn within shares these attributes."""
        self.parts.append(self._opening("g", attributes) + ">")
        yield
        self.parts.append("</g>")

    @contextmanager
    def points(self, k: int, **attributes: Attribute) -> Iterator[None]:
        """Points of the k-th series, each of which has a tip."""
        with self.group(class_="points", data_series=k, **attributes):
            yield

    def words(
        self,
        words: str,
        x: float,
        y: float,
        *,
        room: float = 0.0,
        size: float = 0.0,
        anchor: str = "",
        colour: str = "",
        **attributes: Attribute,
    ) -> None:
        """Words on one line, their middle at y; shortened to the room, whole as a title."""
        size = size or self.size
        shown = shortened(words, room, size) if room else words
        whole = f"<title>{safe(words)}</title>" if shown != words else ""
        self.add(
            "text", safe(shown) + whole, x=x, y=y + size * 0.36, text_anchor=anchor or None,
            fill=self.colour(colour) if colour else None,
            font_size=size if size != self.size else None, **attributes,
        )  # fmt: skip

    def remark(self, words: str, x: float, y: float, anchor: str = "start") -> None:
        """Small words within the figure, which stay readable over a line."""
        self.words(words, x, y, size=11, anchor=anchor, colour="muted", stroke_width=4,
                   stroke=self.colour("paper"), paint_order="stroke")  # fmt: skip

    def wide(self, words: str) -> float:
        """How wide words are."""
        return measure(words, self.size)

    def svg(self, **attributes: Attribute) -> str:
        """The whole drawing, for a page."""
        return self._whole("".join(self.parts), self.width, self.height, attributes)

    def framed(self, words: str, margin: float) -> str:
        """The whole drawing as a file of its own, on paper; `words` say what it is."""
        width, height = self.width + 2 * margin, self.height + 2 * margin
        ground = f'<path d="M0 0H{short(width)}V{short(height)}H0z" fill="{self.colour("paper")}"/>'
        inner = (
            f'{words}{ground}<g transform="translate({margin} {margin})">{"".join(self.parts)}</g>'
        )
        named = {"xmlns": "http://www.w3.org/2000/svg", "role": "img"}
        return self._whole(inner, width, height, named)

    def _whole(
        self, inner: str, width: float, height: float, attributes: Mapping[str, Attribute]
    ) -> str:
        head = self._opening("svg", {
            **attributes, "viewBox": f"0 0 {short(width)} {short(height)}", "width": width,
            "height": height, "font-family": FONT, "font-size": self.size,
            "fill": self.colour("text"),
        })  # fmt: skip
        return f"{head}>{inner}</svg>"

    @staticmethod
    def _opening(tag: str, attributes: Mapping[str, Attribute]) -> str:
        written = [tag]
        for name, value in attributes.items():
            if value is not None:
                words = safe(value) if isinstance(value, str) else short(value)
                written.append(f'{name.rstrip("_").replace("_", "-")}="{words}"')
        return "<" + " ".join(written)
