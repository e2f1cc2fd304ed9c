"""Whatever a figure holds, its drawing is XML, and nothing in it leaves the paper."""

from __future__ import annotations

import re
from typing import Any, Literal
from xml.etree import ElementTree

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sonde.core.reports import (
    Bars,
    Boxes,
    Curve,
    Curves,
    DotPlot,
    Estimate,
    Figure,
    HeatMap,
    HeatRow,
    HeatStrip,
    Histogram,
    Series,
    Strip,
)
from sonde.reporting.render.figures import on_page, svg
from sonde.reporting.render.numbers import to_table

from .drawing import SVG

WORDS = st.text(max_size=40)
VALUES = st.floats(min_value=-1e7, max_value=1e7) | st.sampled_from([0.0, 1.0, float("nan")])
COUNTS = st.integers(min_value=0, max_value=10**7)
KINDS: st.SearchStrategy[Literal["percent", "number"]] = st.sampled_from(["percent", "number"])
ABSOLUTE = re.compile(r"([MLHV])(-?[\d.]+)(?: (-?[\d.]+))?")


@st.composite
def estimates(draw: st.DrawFn) -> Estimate:
    value, low, high = draw(VALUES), draw(VALUES), draw(VALUES)
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=draw(COUNTS))


@st.composite
def labelled(draw: st.DrawFn) -> Figure:
    labels = tuple(draw(st.lists(WORDS, max_size=6)))
    rows = st.tuples(*[estimates()] * len(labels))
    series = tuple(
        Series(name=draw(WORDS), values=draw(rows)) for _ in range(draw(st.integers(0, 7)))
    )
    kind: Any = draw(st.sampled_from([Bars, DotPlot]))
    words = {"title": draw(WORDS), "axis": draw(WORDS), "kind": draw(KINDS)}
    made: Figure = kind(id="f", labels=labels, series=series, **words)
    return made


@st.composite
def curves(draw: st.DrawFn) -> Figure:
    made = []
    for _ in range(draw(st.integers(0, 7))):
        size = draw(st.integers(0, 6))
        x, y = (tuple(draw(st.lists(VALUES, min_size=size, max_size=size))) for _ in range(2))
        sizes = tuple(draw(st.lists(COUNTS, min_size=size, max_size=size)))
        made.append(Curve(name=draw(WORDS), x=x, y=y, sizes=sizes if draw(st.booleans()) else ()))
    marks = draw(st.lists(st.tuples(WORDS, st.floats(-1e7, 1e7)), max_size=4))
    return Curves(id="f", title=draw(WORDS), x_axis=draw(WORDS), y_axis=draw(WORDS),
                  kind=draw(KINDS), x_kind=draw(KINDS), curves=tuple(made), marks=tuple(marks),
                  diagonal=draw(st.booleans()), least=draw(st.integers(0, 20)))  # fmt: skip


@st.composite
def histograms(draw: st.DrawFn) -> Figure:
    edges = sorted(draw(st.sets(st.integers(-100, 100), min_size=1, max_size=9)))
    counts = draw(st.lists(COUNTS, min_size=len(edges) - 1, max_size=len(edges) - 1))
    marks = draw(st.lists(st.tuples(WORDS, st.floats(-200, 200)), max_size=4))
    return Histogram(id="f", title=draw(WORDS), axis=draw(WORDS), kind=draw(KINDS),
                     edges=tuple(map(float, edges)), counts=tuple(counts),
                     marks=tuple(marks))  # fmt: skip


@st.composite
def spots(draw: st.DrawFn) -> Figure:
    labels = tuple(draw(st.lists(WORDS, max_size=5)))
    values = tuple(tuple(draw(st.lists(VALUES, max_size=8))) for _ in labels)
    kind: Any = draw(st.sampled_from([Strip, Boxes]))
    words = {"title": draw(WORDS), "axis": draw(WORDS), "kind": draw(KINDS)}
    made: Figure = kind(id="f", labels=labels, values=values, **words)
    return made


@st.composite
def heat_maps(draw: st.DrawFn) -> Figure:
    rows, columns = (tuple(draw(st.lists(WORDS, max_size=30))) for _ in range(2))
    value = draw(VALUES | st.none())
    low = draw(st.sampled_from([0.0, -1.0, -0.2]))
    return HeatMap(id="f", title=draw(WORDS), kind=draw(KINDS), rows=rows, columns=columns,
                   values=((value,) * len(columns),) * len(rows), low=low)  # fmt: skip


@st.composite
def heat_strips(draw: st.DrawFn) -> Figure:
    tokens = tuple(draw(st.lists(WORDS, max_size=30)))
    row = HeatRow(label=draw(WORDS), tokens=tokens, weights=(draw(st.floats(-9, 9)),) * len(tokens))
    return HeatStrip(id="f", title=draw(WORDS), rows=(row,), limit=2.0)


@settings(suppress_health_check=list(HealthCheck))
@given(
    st.one_of(labelled(), curves(), histograms(), spots(), heat_maps(), heat_strips()),
    st.sampled_from([840, 360]),
)
def test_any_figure_is_drawn_within_its_paper(figure: Figure, width: int) -> None:
    root = ElementTree.fromstring(svg(figure, width))
    wide, tall = (float(root.get(name) or 0) for name in ("width", "height"))
    assert 0 < wide <= width and tall > 0
    for path in root.iter(f"{SVG}path"):
        d = path.get("d") or ""
        assert "n" not in d  # neither nan nor inf
        for letter, first, second in ABSOLUTE.findall(d):
            across = [float(first)] if letter != "V" else []
            down = [float(second)] if second else [float(first)] if letter == "V" else []
            assert all(-1 <= x <= wide + 1 for x in across), d
            assert all(-1 <= y <= tall + 1 for y in down), d
    assert len(on_page(figure).tips) == len(root.findall(f".//{SVG}path/{SVG}title"))
    assert to_table(figure) is not None
