"""What figures are drawn on: SVG as text, scales, and the widths of words. Knows no kind of figure.

On a page colours are variables of its style sheet, so that a theme turns them without redrawing,
and what the pointer reads at a point is kept apart, once for all sizes of a figure. In a file of
its own colours are literal and every point carries its words.

The widths are those of Helvetica, which Arial and Liberation Sans share; whatever has none of its
own is taken to be wide, so that it is rather cut than runs into something else.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from html import escape
from itertools import pairwise

from sonde.reporting.render.cells import Scale, digits_for, fixed, plain_number

ROUND = (1, 2, 5)
EDGE = 1e-9  # of a step: what rounding may add at the ends of a reach


@dataclass(frozen=True, slots=True)
class Linear:
    """A scale from values between `low` and `high` to pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    @property
    def length(self) -> float:
        """How many pixels it spans."""
        return abs(self.end - self.start)


def ticks(low: float, high: float, most: int, whole: bool = False) -> list[float]:
    """At most so many round numbers from low to high, evenly apart; whole ones if asked for.

    >>> ticks(0, 1.03, 6), ticks(0, 2.4, 9, whole=True)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 1.0, 2.0])
    """
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return [low]
    for step in steps((high - low) / most, whole):
        first, last = math.ceil(low / step - EDGE), math.floor(high / step + EDGE)
        if last - first < most:
            digits = max(0, 2 - math.floor(math.log10(step)))
            return [round(k * step, digits) + 0.0 for k in range(first, last + 1)]
    return [low]


def steps(least: float, whole: bool) -> Iterator[float]:
    """Round distances between numbers, from about the least one on."""
    power = math.floor(math.log10(max(least, 1e-300)))
    for exponent in range(power, power + 3):
        for digit in ROUND:
            step = digit * 10.0**exponent
            if step >= 1 or not whole:
                yield step
    if whole:
        yield 1.0


def tick_words(places: Sequence[float], scale: Scale) -> list[str]:
    """Round numbers as an axis writes them: with as many decimals as tell them apart."""
    step = min((b - a for a, b in pairwise(places)), default=0.0)
    if scale == "percent":
        digits = digits_for(step) if step else 0
        return [fixed(place * 100, digits) + "%" for place in places]
    if 0 < step < 0.0005:
        return [plain_number(place) for place in places]
    digits = max(0, math.ceil(-math.log10(step) - EDGE)) if step else 0 if whole(places) else 2
    return [fixed(place, digits) for place in places]


def whole(values: Iterable[float]) -> bool:
    """Whether all values are whole numbers: then those between them mean nothing."""
    return all(float(value).is_integer() for value in values)


def from_zero(ends: Iterable[float], scale: Scale) -> tuple[float, float]:
    """The reach of an axis that starts at zero where nothing is negative; shares end at 100 %."""
    values = [0.0, *(end for end in ends if math.isfinite(end))]
    low, high = min(values), max(values)
    high = high if high > low else low + 1.0
    pad = (high - low) * 0.03
    top = min(high + pad, max(high, 1.01)) if scale == "percent" else high + pad
    return (low - pad if low < 0 else 0.0), top


FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
BOLD = 1.1  # how much wider bold words are, at most

# thousandths of the font's size
WIDTHS = (
    (191, "'"), (222, "ijl’‘"), (260, "|"), (278, " !,./:;I[]\\ft·"), (333, "()-`r“”"),
    (334, "{}"), (355, '"•'), (389, "*"), (469, "^"), (500, "Jckvsxyz"),
    (556, "#$0123456789?L_abdeghnopqu–"), (584, "+<=>~−±"), (611, "FTZ"), (667, "&ABEKPSVXY"),
    (722, "CDHNRUw"), (778, "GOQ"), (833, "Mm"), (889, "%"), (944, "W"), (1000, "…"), (1015, "@"),
)  # fmt: skip
LETTERS = {letter: width for width, letters in WIDTHS for letter in letters}
OTHER, WIDE = 720, 1200
BREAKS = re.compile(r"[-/_.,]")
PIECES = re.compile(r"(?<=[-/_.,])|\s+")


@cache
def letter_width(letter: str) -> int:
    """The width of a letter in thousandths; accents add nothing."""
    base = unicodedata.normalize("NFD", letter)[0]
    if base in LETTERS:
        return LETTERS[base]
    kind = unicodedata.category(letter)
    if kind in ("Cf", "Mn"):
        return 0
    sign = kind[0] == "S" or kind in ("Cc", "Cs") or letter > "\uffff"
    return WIDE if sign or unicodedata.east_asian_width(letter) in "WF" else OTHER


def measure(words: str, size: float) -> float:
    """How many pixels words take on one line.

    >>> measure("iii", 10), measure("é", 10) == measure("e", 10)
    (6.66, True)
    """
    return sum(map(letter_width, words)) * size / 1000


def shortened(words: str, room: float, size: float) -> str:
    """Words that fit into the room, if need be cut and ended by three dots.

    >>> shortened("place of birth", 60, 12), shortened("capital", 60, 12)
    ('place of…', 'capital')
    """
    if measure(words, size) <= room:
        return words
    kept, left = 0, room - measure("…", size)
    for letter in words:
        left -= letter_width(letter) * size / 1000
        if left < 0:
            break
        kept += 1
    return words[:kept].rstrip(" ,;:-–(") + "…"


def wrapped(words: str, room: float, size: float, most: int = 99) -> list[str]:
    """Words over at most so many lines, each of which fits; the last is shortened.

    >>> wrapped("languages spoken, written or signed", 110, 12, most=2)
    ['languages spoken,', 'written or signed']
    """
    lines: list[str] = []
    rest = words.split()
    while rest and len(lines) < most - 1:
        taken = 1
        while taken < len(rest) and measure(" ".join(rest[: taken + 1]), size) <= room:
            taken += 1
        if taken == 1 and measure(rest[0], size) > room:
            rest[:1] = broken(rest[0], room, size)
        lines.append(" ".join(rest[:taken]))
        rest = rest[taken:]
    return [*lines, shortened(" ".join(rest), room, size)] if rest or not lines else lines


def fits(words: str, room: float, size: float, most: int) -> bool:
    """Whether so many lines hold all the words, none of them broken but after a hyphen or so."""
    whole = all(measure(piece, size) <= room for piece in PIECES.split(words))
    lines = wrapped(words, room, size, most)
    return whole and "".join(" ".join(lines).split()) == "".join(words.split())


def broken(word: str, room: float, size: float) -> list[str]:
    """A word too long for a line in two, of which the first fits; after a hyphen if it has one."""
    kept = 1
    while kept < len(word) - 1 and measure(word[: kept + 1], size) <= room:
        kept += 1
    pieces = list(BREAKS.finditer(word, 0, kept))
    kept = pieces[-1].end() if pieces else kept
    return [word[:kept], word[kept:]] if kept < len(word) else [word]


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
