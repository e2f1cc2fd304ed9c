"""A drawn figure as a reader has it: its words, its points, and values read off its axes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from sonde.core.reports import Figure
from sonde.reporting.render.figures import svg
from sonde.reporting.render.figures.canvas import LIGHT

SVG = "{http://www.w3.org/2000/svg}"
NUMBER = re.compile(r"-?\d*\.?\d+")


def value_of(words: str) -> float:
    """A number of an axis as a value."""
    plain = words.replace(",", "").replace("−", "-")
    return float(plain[:-1]) / 100 if plain.endswith("%") else float(plain)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture, parsed."""

    root: Element

    @property
    def texts(self) -> list[str]:
        """All words, in the order in which they were drawn."""
        return [node.text or "" for node in self.root.iter(f"{SVG}text")]

    def groups(self, css: str) -> list[Element]:
        """The groups of a class."""
        return [node for node in self.root.iter(f"{SVG}g") if node.get("class") == css]

    @property
    def legend(self) -> list[str]:
        """The names in the legend."""
        return ["".join(t.text or "" for t in g.iter(f"{SVG}text")) for g in self.groups("entry")]

    def points(self, k: int | None = None) -> list[Element]:
        """The points, all or those of a series."""
        groups = self.groups("points")
        return [p for g in groups if k is None or g.get("data-series") == str(k) for p in g]

    def tips(self, k: int | None = None) -> list[str]:
        """What is read at the points."""
        return [point.findtext(f"{SVG}title") or "" for point in self.points(k)]

    def places(self, k: int | None = None) -> list[tuple[float, float]]:
        """The middles of the points that are circles, the first corners of others, in pixels."""
        found = []
        for point in self.points(k):
            d = point.get("d") or ""
            x, y, *rest = map(float, NUMBER.findall(d))
            found.append((x + rest[0] if "a" in d else x, y))
        return found

    def lines(self, k: int) -> list[list[float]]:
        """The numbers of every stroke of a series that is no point: lines and whiskers."""
        groups = [g for g in self.root.iter(f"{SVG}g") if g.get("data-series") == str(k)]
        paths = [p for g in groups if g.get("class") != "points" for p in g.iter(f"{SVG}path")]
        strokes = [s for p in paths for s in (p.get("d") or "").split("M") if s]
        return [list(map(float, NUMBER.findall(stroke))) for stroke in strokes]

    def axis(self, anchor: str) -> list[tuple[float, float]]:
        """The numbers of the x axis (`middle`) or the y axis (`end`): pixel and value."""
        found = []
        for node in self.root.iter(f"{SVG}text"):
            look = (node.get("text-anchor"), node.get("fill"), node.get("font-size"))
            if look == (anchor, LIGHT["muted"], None):  # remarks are smaller
                pixel = float(node.get("x") or 0) if anchor == "middle" else height(node)
                found.append((pixel, value_of(node.text or "")))
        return found

    def read(self, pixel: float, anchor: str = "middle") -> float:
        """The value that a reader sees at a pixel, by the numbers of the axis."""
        (a, low), *_, (b, high) = self.axis(anchor)
        return low + (high - low) * (pixel - a) / (b - a)


def height(node: Element) -> float:
    """The middle of a line of words."""
    return float(node.get("y") or 0) - 13 * 0.36


def drawn(figure: Figure, width: int = 840) -> Drawing:
    """A figure as a picture, parsed."""
    return Drawing(ElementTree.fromstring(svg(figure, width)))
