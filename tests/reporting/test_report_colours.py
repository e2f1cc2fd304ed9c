"""The colours of figures: told apart by every reader, in both themes."""

from __future__ import annotations

import re
from itertools import combinations

import pytest

from sonde.core.reports import HeatMap
from sonde.reporting.render.figures.canvas import LIGHT, Canvas
from sonde.reporting.render.figures.heat import colours
from sonde.reporting.render.html import asset

# Machado et al. 2009: what a person sees who has no M, L or S cones, in linear RGB
SEEN = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no M": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
             (-0.011820, 0.042940, 0.968881)),
    "no L": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
             (-0.003882, -0.048116, 1.051998)),
    "no S": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602),
             (0.004733, 0.691367, 0.303900)),
}  # fmt: skip
OKLAB = (
    ((0.4122214708, 0.5363325363, 0.0514459929), (0.2119034982, 0.6806995451, 0.1073969566),
     (0.0883024619, 0.2817188376, 0.6299787005)),
    ((0.2104542553, 0.7936177850, -0.0040720468), (1.9779984951, -2.4285922050, 0.4505937099),
     (0.0259040371, 0.7827717662, -0.8086757660)),
)  # fmt: skip

Triple = tuple[float, ...]


def times(matrix: tuple[Triple, ...], vector: Triple) -> Triple:
    """A matrix times a vector."""
    return tuple(sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix)


def linear(colour: str) -> Triple:
    """A colour such as #0b5394 as linear RGB."""
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return tuple(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)


def perceived(colour: str, cones: str) -> Triple:
    """Where a person with these cones places a colour, such that distances mean something."""
    light = tuple(min(1.0, max(0.0, c)) for c in times(SEEN[cones], linear(colour)))
    return times(OKLAB[1], tuple(c ** (1 / 3) for c in times(OKLAB[0], light)))


def contrast(a: str, b: str) -> float:
    """The contrast between two colours as WCAG defines it."""
    lights = sorted(times(((0.2126, 0.7152, 0.0722),), linear(c))[0] for c in (a, b))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def themes() -> dict[str, tuple[str, list[str]]]:
    """Page colour and inks of the light and the dark theme, from the style sheet."""
    style = asset("style.css")
    papers = re.findall(r"--paper: (#\w+);", style)
    inks = re.findall(r"--ink-\d: (#\w+);", style)
    assert papers[1] == papers[2] and inks[5:10] == inks[10:]
    return {"light": (papers[0], inks[:5]), "dark": (papers[1], inks[5:10])}


def test_the_colours_of_files_are_those_of_the_light_theme_on_white() -> None:
    style = asset("style.css")
    for name, colour in LIGHT.items():
        [light, *_] = re.findall(rf"--{name}: (#\w+);", style)
        assert colour == (light if name != "paper" else "#ffffff"), name


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("cones", SEEN)
def test_inks_stay_apart_whatever_cones_a_reader_has(theme: str, cones: str) -> None:
    for a, b in combinations(themes()[theme][1], 2):
        pairs = zip(perceived(a, cones), perceived(b, cones), strict=True)
        assert sum((x - y) ** 2 for x, y in pairs) ** 0.5 > 0.09, f"{a} and {b}"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_inks_stand_out_from_the_page(theme: str) -> None:
    paper, inks = themes()[theme]
    assert min(contrast(ink, paper) for ink in inks) >= 3


@pytest.mark.parametrize("cones", SEEN)
def test_a_scale_from_little_to_much_goes_one_way_in_lightness(cones: str) -> None:
    for scale in scales("scale"):
        lightness = [perceived(colour, cones)[0] for colour in scale]
        assert lightness in (sorted(lightness), sorted(lightness, reverse=True))


@pytest.mark.parametrize("cones", SEEN)
def test_the_two_ends_of_a_scale_about_zero_stay_apart(cones: str) -> None:
    for below, _, above in scales("zero"):
        pairs = zip(perceived(below, cones), perceived(above, cones), strict=True)
        assert sum((x - y) ** 2 for x, y in pairs) ** 0.5 > 0.09


@pytest.mark.parametrize("about_zero", [False, True])
def test_numbers_in_cells_can_be_read_in_both_themes(about_zero: bool) -> None:
    plot = HeatMap(id="h", title="", rows=(), columns=(), values=(), low=-about_zero)
    style = asset("style.css")
    for theme in (0, 1):
        named = {name: re.findall(rf"--{name}: (#\w+);", style)[theme] for name in LIGHT}
        canvas = Canvas(100, named)
        for k in range(201):
            ground, words = colours(canvas, plot, k / 200 * 2 - 1 if about_zero else k / 200)
            assert contrast(ground, words) >= 3.4, (theme, k)


def scales(name: str) -> list[list[str]]:
    """The scales of this name in the style sheet: light, dark by system, dark by choice."""
    stops = [re.findall(rf"--{name}-{k}: (#\w+);", asset("style.css")) for k in (1, 2, 3)]
    found = [list(colours) for colours in zip(*stops, strict=True)]
    assert len(found) == 3 and found[1] == found[2]
    return found
