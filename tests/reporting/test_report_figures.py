"""Every kind of figure as a drawing, read as a reader would, and as a table of numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest

from sonde.core.reports import (
    Bars,
    Boxes,
    Curve,
    Curves,
    DotPlot,
    Estimate,
    Figure,
    HeatMap,
    Histogram,
    Series,
    Strip,
)
from sonde.reporting.render.figures import NARROW, on_page, svg
from sonde.reporting.render.figures import drawn as drawn_on
from sonde.reporting.render.figures.canvas import INKS, LIGHT, Canvas
from sonde.reporting.render.figures.heat import DARK
from sonde.reporting.render.figures.look import symbol
from sonde.reporting.render.numbers import to_table

from .drawing import SVG, Drawing, drawn
from .sample import (
    belief,
    calibration,
    coverage,
    estimate,
    fluctuation,
    hostile,
    ranks,
    sharing,
    template_strip,
)

NAN = float("nan")


def rows(figure: Figure) -> tuple[tuple[object, ...], ...]:
    """The numbers of a figure as its table has them."""
    table = to_table(figure)
    assert table is not None
    return tuple(table.rows)


def tiny_curves(**changes: Any) -> Curves:
    """Two bins and an empty one."""
    curve = Curve(name="m", x=(0.1, 0.5, 0.9), y=(0.2, 0.4, NAN), sizes=(100, 25, 0))
    plot = Curves(id="c", title="C", x_axis="confidence", y_axis="accuracy", curves=(curve,))
    return replace(plot, **changes)


def tiny_strip() -> Strip:
    """Two rows: three templates of two kinds, and none that was asked."""
    return Strip(id="s", title="S", axis="accuracy", labels=("P1", "P2"),
                 values=((0.2, 0.2, 0.6), (NAN,)), names=(("a", "b", "<c>"), ("d",)),
                 groups=(("manual", "paraphrase", "paraphrase"), ("manual",)))  # fmt: skip


def tiny_boxes(**changes: Any) -> Boxes:
    """Five prompts of which one was not asked, and a row of none."""
    plot = Boxes(id="x", title="X", axis="accuracy", labels=("P1", "P2"),
                 values=((0.1, 0.5, 0.2, NAN, 0.4, 0.3), ()),
                 names=(("a", "b", "<c>", "d", "e", "f"), ()))  # fmt: skip
    return replace(plot, **changes)


@pytest.mark.parametrize("width", [840, 360])
@pytest.mark.parametrize("figure", [*belief().figures, *hostile().figures], ids=lambda f: f.id)
def test_every_figure_is_drawn_and_has_its_numbers_as_a_table(figure: Figure, width: int) -> None:
    made = drawn(figure, width)
    assert made.points() and all(made.tips())
    assert float(made.root.get("width") or 0) <= width
    table = to_table(figure)
    assert table is not None and table.rows
    assert {len(row) for row in table.rows} == {len(table.columns)}


@pytest.mark.parametrize("figure", hostile().figures, ids=lambda f: f.id)
def test_no_text_in_a_figure_is_markup(figure: Figure) -> None:
    tags = {node.tag.removeprefix(SVG) for node in drawn(figure).root.iter()}
    assert tags <= {"svg", "g", "path", "text", "title", "desc"}


@pytest.mark.parametrize("figure", belief().figures, ids=lambda f: f.id)
def test_both_drawings_of_a_page_have_the_same_points_in_the_same_order(figure: Figure) -> None:
    made = on_page(figure)
    assert [made.wide.count("<title>"), made.narrow.count("<title>")] <= [9, 9]  # cut labels alone
    canvas = drawn_on(Canvas(NARROW), figure)
    assert canvas.tips == made.tips == drawn(figure).tips()
    for drawing in (made.wide, made.narrow):
        root = ElementTree.fromstring(drawing)
        points = [p for g in root.iter("g") if g.get("class") == "points" for p in g]
        assert len(points) == len(made.tips)


def test_a_drawing_on_a_page_takes_every_colour_from_the_theme() -> None:
    for figure in belief().figures:
        found = set(re.findall(r"#[0-9a-f]{6}", on_page(figure).wide))
        assert found <= {DARK}, figure.id


def test_the_area_of_a_point_follows_the_size_of_its_bin() -> None:
    radii = [re.findall(r"a([\d.]+) ", point.get("d") or "")[0] for point in
             drawn(tiny_curves()).points()]  # fmt: skip
    assert radii == ["10", "5"]


def test_an_empty_bin_has_no_point_but_stands_in_the_table() -> None:
    made = drawn(tiny_curves())
    assert [made.read(x) for x, _ in made.places()] == pytest.approx([0.1, 0.5], abs=0.002)
    assert [made.read(y, "end") for _, y in made.places()] == pytest.approx([0.2, 0.4], abs=0.002)
    assert rows(tiny_curves())[2] == ("m", 0.9, None, 0)


def test_a_point_of_a_curve_tells_curve_coordinates_and_bin_size() -> None:
    assert drawn(tiny_curves()).tips()[1] == "m\nconfidence: 50.0%\naccuracy: 40.0%\nn = 25"


def test_the_diagonal_runs_through_the_whole_square() -> None:
    made = drawn(tiny_curves(diagonal=True))
    (dotted,) = [p for p in made.root.iter(f"{SVG}path") if p.get("stroke-dasharray") == "2 3"
                 and "L" in (p.get("d") or "")]  # fmt: skip
    x0, y0, x1, y1 = map(float, re.findall(r"[\d.]+", dotted.get("d") or ""))
    ends = [made.read(x0), made.read(y0, "end"), made.read(x1), made.read(y1, "end")]
    assert ends == pytest.approx([0, 0, 1, 1], abs=0.002)
    assert made.legend == ["m", "both equal"]


def test_points_that_stand_for_too_few_are_not_drawn_and_counted() -> None:
    made = drawn(tiny_curves(least=50))
    assert len(made.points()) == 1 and "each point stands for 100" in made.texts
    assert "one point of fewer than 50 is not drawn" in made.texts
    assert len(rows(tiny_curves(least=50))) == 3


def test_points_of_about_the_same_size_look_alike() -> None:
    curve = Curve(name="m", x=(0.1, 0.5), y=(0.2, 0.4), sizes=(100, 101))
    made = drawn(tiny_curves(curves=(curve,)))
    assert "each point stands for about 101" in made.texts
    assert len({re.findall(r"a([\d.]+) ", p.get("d") or "")[0] for p in made.points()}) == 1


def test_curves_without_a_point_say_that_nothing_was_measured() -> None:
    made = drawn(tiny_curves(curves=(Curve(name="m", x=(), y=()),)))
    assert "not measured" in made.texts


def test_no_two_of_25_curves_share_colour_and_symbol() -> None:
    assert len({(k % len(INKS), symbol(k)) for k in range(25)}) == 25


def test_the_axis_of_counts_has_whole_numbers_alone() -> None:
    few = Histogram(id="h", title="H", axis="a", edges=(0.0, 0.5, 1.0), counts=(1, 2))
    assert [value for _, value in drawn(few).axis("end")] == [0, 1, 2]
    curve = Curve(name="m", x=(1, 2, 3), y=(0.1, 0.2, 0.3))
    shots = tiny_curves(curves=(curve,), x_kind="number")
    assert [value for _, value in drawn(shots).axis("middle")] == [0, 1, 2, 3]


def test_a_bar_of_a_histogram_tells_its_bin_its_count_and_its_share() -> None:
    plot = Histogram(id="h", title="H", axis="a", edges=(0.3, 0.3002, 0.3004), counts=(1, 3))
    assert drawn(plot).tips() == [
        "30.00% to 30.02%\n1 (25.0% of 4)",
        "30.02% to 30.04%\n3 (75.0% of 4)",
    ]


def test_marks_of_a_histogram_are_drawn_named_and_in_the_table() -> None:
    plot = fluctuation(Random(0))
    made = drawn(plot)
    (dashed,) = [p for p in made.root.iter(f"{SVG}path") if p.get("stroke-dasharray") == "5 4"]
    places = [made.read(float(x)) for x in re.findall(r"M([\d.]+)", dashed.get("d") or "")]
    assert places == pytest.approx([value for _, value in plot.marks], abs=1e-4)
    assert "mean 30.7%" in made.texts
    assert str(rows(plot)[1][0]).startswith("mean: 30.7")


def test_labels_of_marks_that_lie_close_stand_on_different_lines() -> None:
    plot = Histogram(id="h", title="H", axis="a", edges=(0.0, 1.0), counts=(9,),
                     marks=(("the one", 0.5), ("the other", 0.5), ("far", 0.9)))  # fmt: skip
    heights = {text.text: text.get("y") for text in drawn(plot).root.iter(f"{SVG}text")}
    assert heights["the one 50.0%"] == heights["far 90.0%"] != heights["the other 50.0%"]


def test_an_empty_histogram_says_that_nothing_was_measured() -> None:
    plot = Histogram(id="h", title="H", axis="a", edges=(0.0, 1.0), counts=(0,))
    assert "not measured" in drawn(plot).texts and rows(plot) == ()


def test_groups_of_a_strip_differ_by_symbol_and_colour_and_stand_in_the_legend() -> None:
    made = drawn(tiny_strip())
    assert made.legend == ["manual", "paraphrase"]
    first, second = made.groups("points")
    assert first.get("fill") != second.get("fill")
    assert "a" in (first[0].get("d") or "") and "a" not in (second[0].get("d") or "")


def test_a_dot_of_a_strip_tells_its_template() -> None:
    assert drawn(tiny_strip()).tips(1)[1] == "<c>\nP1, paraphrase\n60.0%"


def test_equal_values_of_a_strip_stand_above_one_another_within_their_row() -> None:
    made = drawn(tiny_strip())
    assert made.places(0)[0][1] != made.places(1)[0][1]
    crowd = replace(tiny_strip(), labels=("P1",), values=((0.5,) * 99,), names=(), groups=())
    heights = [y for _, y in drawn(crowd).places()]
    assert len(set(heights)) > 90 and max(heights) - min(heights) < 30


def test_very_many_dots_are_few_elements() -> None:
    many = Strip(id="s", title="S", axis="a", labels=("P1",),
                 values=(tuple(k / 20_000 for k in range(20_000)),))  # fmt: skip
    text = svg(many)
    assert len(text) < 200_000 and text.count("<path") < 20


def test_a_row_of_a_strip_without_values_says_so() -> None:
    assert "not measured" in drawn(tiny_strip()).texts
    assert rows(tiny_strip())[1] == ("P2", 0, None, None, None, None, None)


def test_the_table_of_a_strip_names_the_worst_and_the_best() -> None:
    label, count, low, mean, high, worst, best = rows(tiny_strip())[0]
    assert (label, count, low, high, worst, best) == ("P1", 3, 0.2, 0.6, "a", "<c>")
    assert mean == pytest.approx(1 / 3)


def test_few_cells_of_a_heat_map_carry_their_numbers_and_many_do_not() -> None:
    assert drawn(sharing(Random(0))).texts.count("100%") == 5  # four cells and the scale
    assert "1.00" not in drawn(ranks(Random(0))).texts


def test_a_cell_that_was_not_measured_is_a_gap_and_never_zero() -> None:
    plot = sharing(Random(0))
    made = drawn(plot)
    assert made.points()[9].get("fill") == "none"
    assert made.tips()[9] == "not measured\nrow: encoder-24m\ncolumn: roberta-large"
    assert "–" in made.texts and "blank, or –: not measured" in made.texts
    assert rows(plot)[2][2] is None


def test_very_many_cells_are_few_elements_and_some_names_are_left_out() -> None:
    wide = HeatMap(id="h", title="H", rows=tuple(map(str, range(99))),
                   columns=tuple(map(str, range(99))),
                   values=tuple(tuple(i * j / 9801 for j in range(99)) for i in range(99)),
                   )  # fmt: skip
    text = svg(wide)
    assert len(text) < 400_000 and text.count("<path") < 300
    assert text.count("<text") < 150


def test_the_rows_of_a_heat_map_run_from_the_top() -> None:
    heights = [y for _, y in drawn(sharing(Random(0))).places()]
    assert heights == sorted(heights)


def test_values_about_zero_have_two_hues_that_meet_at_zero() -> None:
    plot = HeatMap(id="h", title="H", rows=("a",), columns=("b", "c", "d"),
                   values=((-1.0, 0.0, 1.0),), low=-0.2)  # fmt: skip
    fills = [point.get("fill") for point in drawn(plot).points()]
    assert fills == [LIGHT["zero-1"], LIGHT["zero-2"], LIGHT["zero-3"]]


def test_bars_start_at_zero_and_have_whiskers() -> None:
    made = drawn(coverage())
    value = coverage().series[0].values[0]
    start, _, wide, *_ = map(float, re.findall(r"-?[\d.]+", made.points(0)[0].get("d") or ""))
    assert made.read(start) == pytest.approx(0, abs=1e-6)
    assert made.read(start + wide) == pytest.approx(value.value, abs=0.001)
    low, _, high = made.lines(0)[0]
    assert [made.read(low), made.read(high)] == pytest.approx(value.ends, abs=0.001)


def test_bars_differ_by_pattern_and_not_only_by_colour() -> None:
    made = drawn(coverage())
    kinds = [{len(stroke) for stroke in made.lines(k)} for k in range(3)]
    assert kinds == [{3}, {3, 4}, {3}]  # whiskers alone; lines; dots, which have no length
    assert [any(s[2] == 0 for s in made.lines(k) if len(s) == 3) for k in (0, 2)] == [False, True]


def test_a_bar_that_was_not_measured_is_a_word() -> None:
    made = drawn(coverage())
    assert "any template (oracle): not measured" in made.texts and len(made.points(2)) == 3


def test_a_box_has_the_places_that_its_table_names() -> None:
    made = drawn(tiny_boxes())
    paths = [p.get("d") or "" for p in made.root.iter(f"{SVG}path") if p.get("stroke-width")]
    body, middle = paths[:2]
    numbers = [made.read(float(x)) for x in re.findall(r"[MH]([\d.]+)", body + middle)]
    assert rows(tiny_boxes())[0] == ("P1", 5, *map(pytest.approx, (0.1, 0.2, 0.3, 0.4, 0.5)))
    assert {round(number, 2) for number in numbers} == {0.1, 0.2, 0.3, 0.4, 0.5}
    assert rows(tiny_boxes())[1] == ("P2", 0, *[None] * 5)


def test_every_value_of_a_box_is_a_dot_of_its_own_that_tells_its_name() -> None:
    made = drawn(tiny_boxes())
    values = [made.read(x) for x, _ in made.places()]
    assert values == pytest.approx([0.1, 0.5, 0.2, 0.4, 0.3], abs=0.001)
    assert len({y for _, y in made.places()}) == 5
    assert made.tips()[2] == "<c>\nP1\n20.0%"
    assert drawn(tiny_boxes(names=())).tips()[0] == "P1\n10.0%"


def test_a_box_of_nothing_is_a_word() -> None:
    assert "not measured" in drawn(tiny_boxes()).texts


def test_values_below_zero_are_seen() -> None:
    made = drawn(tiny_boxes(values=((-0.3, 0.2), ()), names=()))
    assert [made.read(x) for x, _ in made.places()] == pytest.approx([-0.3, 0.2], abs=0.001)


def test_a_label_that_is_cut_is_told_whole() -> None:
    long = "the relation whose name goes on and on until no figure has the room for all of it, ever"
    made = drawn(tiny_boxes(labels=(long, "P2")), 360)
    assert not any(long in text for text in made.texts)
    assert long in [node.text for node in made.root.iter(f"{SVG}title")]


def test_three_hundred_rows_make_a_tall_figure_with_an_axis_at_both_ends() -> None:
    labels = tuple(f"P{k}" for k in range(300))
    series = Series(name="m", values=tuple(estimate(k / 300, 50) for k in range(300)))
    made = drawn(DotPlot(id="d", title="D", axis="a", labels=labels, series=(series,)))
    assert float(made.root.get("height") or 0) > 300 * 24
    assert made.texts.count("20%") == 2 and len(svg_of(made)) < 100_000


def svg_of(made: Drawing) -> bytes:
    """The drawing as it would be sent."""
    return ElementTree.tostring(made.root)


BAD: dict[str, Any] = {
    "one y per x": lambda: Curve(name="c", x=(1,), y=()),
    "one size per point": lambda: Curve(name="c", x=(1,), y=(1,), sizes=(1, 2)),
    "one edge more": lambda: Histogram(id="h", title="", axis="", edges=(0, 1), counts=(1, 2)),
    "edges must rise": lambda: Histogram(id="h", title="", axis="", edges=(0, 0), counts=(1,)),
    "row of values per label": lambda: Strip(id="s", title="", axis="", labels=("a",), values=()),
    "one name per value": lambda: replace(tiny_strip(), names=(("a",), ("b",))),
    "one group per value": lambda: replace(tiny_strip(), groups=(("a",), ("b",))),
    "values of each box": lambda: tiny_boxes(values=((0.5,),), names=()),
    "one name per value of a box": lambda: tiny_boxes(names=(("a",), ())),
    "one value per row and column": lambda: HeatMap(
        id="h", title="", rows=("a",), columns=("b",), values=((1, 2),)
    ),
    "must be below high": lambda: HeatMap(
        id="h", title="", rows=(), columns=(), values=(), low=1, high=1
    ),
    "one value per label": lambda: Bars(
        id="b", title="", axis="", labels=(), series=(Series(name="s", values=(estimate(0, 1),)),)
    ),
}


@pytest.mark.parametrize("message", BAD)
def test_a_figure_whose_lengths_do_not_agree_is_refused(message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BAD[message]()


def test_figures_of_nothing_are_drawn() -> None:
    nothing = Series(name="s", values=(Estimate.not_measured(),))
    empty: tuple[Figure, ...] = (
        Curves(id="c", title="", x_axis="", y_axis="", curves=(), diagonal=True),
        Histogram(id="h", title="", axis="", edges=(0.0,), counts=()),
        Strip(id="s", title="", axis="", labels=(), values=()),
        Boxes(id="x", title="", axis="", labels=(), values=()),
        HeatMap(id="m", title="", rows=(), columns=(), values=()),
        Bars(id="b", title="", axis="", labels=("a",), series=(nothing,)),
    )
    for figure in empty:
        assert float(drawn(figure).root.get("height") or 0) > 0
        assert to_table(figure) is not None


def test_calibration_of_several_models_is_one_figure() -> None:
    names = drawn(calibration(Random(0))).legend
    assert len(names) == 5 and names[-1] == "both equal"


def test_the_strip_of_the_sample_shows_every_template_that_was_asked() -> None:
    plot = template_strip(Random(0))
    asked = sum(value == value for row in plot.values for value in row)
    assert len(drawn(plot).points()) == asked
