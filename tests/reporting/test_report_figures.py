"""Every kind of figure as plotly's data and as a table of numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random
from typing import Any

import plotly.graph_objects as plotly
import pytest

from sonde.core.reports import (
    Bars,
    Boxes,
    Curve,
    Curves,
    Estimate,
    Figure,
    HeatMap,
    Histogram,
    Series,
    Strip,
)
from sonde.reporting.render.figures import spec
from sonde.reporting.render.figures.look import INKS, symbol
from sonde.reporting.render.numbers import to_table

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
    return table.rows


def remarks(figure: Figure) -> list[str]:
    """The words that stand in a figure."""
    return [note["text"] for note in spec(figure)["layout"].get("annotations", [])]


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


@pytest.mark.parametrize("figure", [*belief().figures, *hostile().figures], ids=lambda f: f.id)
def test_every_figure_is_drawn_and_has_its_numbers_as_a_table(figure: Figure) -> None:
    made = spec(figure)
    assert made["data"] and made["layout"]["height"] > 0
    plotly.Figure(made)  # which refuses a name or a value that it does not know
    table = to_table(figure)
    assert table is not None and table.rows
    assert {len(row) for row in table.rows} == {len(table.columns)}


@pytest.mark.parametrize("figure", hostile().figures, ids=lambda f: f.id)
def test_no_text_in_a_figure_is_markup(figure: Figure) -> None:
    ours = re.compile(r"</?b>|<br>|<extra></extra>")
    for words in strings(spec(figure)):
        assert "<" not in ours.sub("", words)


def strings(value: object) -> list[str]:
    """Every string in nested data."""
    if isinstance(value, dict):
        return [word for inner in value.values() for word in strings(inner)]
    if isinstance(value, list):
        return [word for inner in value for word in strings(inner)]
    return [value] if isinstance(value, str) else []


def test_the_area_of_a_point_follows_the_size_of_its_bin() -> None:
    (trace,) = spec(tiny_curves())["data"]
    assert trace["marker"]["size"] == [20.0, 10.0]


def test_an_empty_bin_has_no_point_but_stands_in_the_table() -> None:
    (trace,) = spec(tiny_curves())["data"]
    assert trace["x"] == [0.1, 0.5]
    assert rows(tiny_curves())[2] == ("m", 0.9, None, 0)


def test_a_point_of_a_curve_tells_curve_coordinates_and_bin_size() -> None:
    (trace,) = spec(tiny_curves())["data"]
    assert trace["customdata"][1] == "<b>m</b><br>confidence: 50.0%<br>accuracy: 40.0%<br>n = 25"


def test_the_diagonal_runs_through_the_whole_square() -> None:
    made = spec(tiny_curves(diagonal=True))
    assert made["data"][0]["x"] == made["data"][0]["y"] == [0.0, 1.0]
    assert made["layout"]["xaxis"]["range"] == made["layout"]["yaxis"]["range"]


def test_curves_without_a_point_say_that_nothing_was_measured() -> None:
    assert remarks(tiny_curves(curves=(Curve(name="m", x=(), y=()),))) == ["not measured"]


def test_no_two_of_25_curves_share_colour_and_symbol() -> None:
    assert len({(k % len(INKS), symbol(k)) for k in range(25)}) == 25


def test_a_bar_of_a_histogram_tells_its_bin_its_count_and_its_share() -> None:
    plot = Histogram(id="h", title="H", axis="a", edges=(0.3, 0.3002, 0.3004), counts=(1, 3))
    assert spec(plot)["data"][0]["customdata"] == [
        "<b>30.00% to 30.02%</b><br>1 (25.0% of 4)",
        "<b>30.02% to 30.04%</b><br>3 (75.0% of 4)",
    ]


def test_marks_of_a_histogram_are_drawn_named_and_in_the_table() -> None:
    plot = fluctuation(Random(0))
    layout = spec(plot)["layout"]
    assert [shape["x0"] for shape in layout["shapes"]] == [value for _, value in plot.marks]
    assert [re.sub(r" .*", "", words) for words in remarks(plot)] == ["lowest", "mean", "highest"]
    assert str(rows(plot)[1][0]).startswith("mean: 30.7")


def test_labels_of_marks_that_lie_close_stand_on_different_lines() -> None:
    plot = Histogram(id="h", title="H", axis="a", edges=(0.0, 1.0), counts=(9,),
                     marks=(("the one", 0.5), ("the other", 0.5), ("far", 0.9)))  # fmt: skip
    shifts = [note["yshift"] for note in spec(plot)["layout"]["annotations"]]
    assert shifts[0] != shifts[1] and shifts[2] == 0


def test_an_empty_histogram_says_that_nothing_was_measured() -> None:
    plot = Histogram(id="h", title="H", axis="a", edges=(0.0, 1.0), counts=(0,))
    assert remarks(plot) == ["not measured"] and rows(plot) == ()


def test_groups_of_a_strip_differ_by_symbol_and_colour_and_stand_in_the_legend() -> None:
    manual, paraphrase = spec(tiny_strip())["data"]
    assert (manual["name"], paraphrase["name"]) == ("manual", "paraphrase")
    assert manual["marker"]["symbol"] != paraphrase["marker"]["symbol"]
    assert manual["meta"]["ink"] != paraphrase["meta"]["ink"]
    assert spec(tiny_strip())["layout"]["showlegend"]


def test_a_dot_of_a_strip_tells_its_template() -> None:
    _, paraphrase = spec(tiny_strip())["data"]
    assert paraphrase["customdata"][1] == "<b>&lt;c&gt;</b><br>P1, paraphrase<br>60.0%"


def test_equal_values_of_a_strip_stand_above_one_another_within_their_row() -> None:
    manual, paraphrase = spec(tiny_strip())["data"]
    assert manual["y"][0] != paraphrase["y"][0]
    crowd = replace(tiny_strip(), labels=("P1",), values=((0.5,) * 99,), names=(), groups=())
    (trace,) = spec(crowd)["data"]
    assert len(set(trace["y"])) == 99 and max(map(abs, trace["y"])) < 0.5


def test_a_row_of_a_strip_without_values_says_so() -> None:
    assert remarks(tiny_strip()) == ["not measured"]
    assert rows(tiny_strip())[1] == ("P2", 0, None, None, None, None, None)


def test_the_table_of_a_strip_names_the_worst_and_the_best() -> None:
    label, count, low, mean, high, worst, best = rows(tiny_strip())[0]
    assert (label, count, low, high, worst, best) == ("P1", 3, 0.2, 0.6, "a", "<c>")
    assert mean == pytest.approx(1 / 3)


def test_few_cells_of_a_heat_map_carry_their_numbers_and_many_do_not() -> None:
    few, many = spec(sharing(Random(0)))["data"][0], spec(ranks(Random(0)))["data"][0]
    assert few["texttemplate"] == "%{text}" and few["text"][0][0] == "100%"
    assert many["texttemplate"] == ""


def test_a_cell_that_was_not_measured_is_a_gap_with_a_word_and_never_zero() -> None:
    plot = sharing(Random(0))
    (trace,) = spec(plot)["data"]
    assert trace["z"][2][1] is None and remarks(plot) == ["not<br>measured"]
    assert trace["hovertext"][2][1].endswith("not measured")
    assert rows(plot)[2][2] is None


def test_gaps_of_a_heat_map_of_many_cells_are_explained_once() -> None:
    assert remarks(ranks(Random(0), size=24)) == ["–"] * 24
    wide = HeatMap(id="h", title="H", rows=("a",), columns=tuple(map(str, range(99))),
                   values=((None,) * 99,))  # fmt: skip
    assert remarks(wide) == ["blank: not measured"]
    assert len(spec(wide)["layout"]["xaxis"]["ticktext"]) <= 50


def test_the_rows_of_a_heat_map_run_from_the_top() -> None:
    low, high = spec(sharing(Random(0)))["layout"]["yaxis"]["range"]
    assert low > high


def test_values_about_zero_have_two_hues_that_meet_at_zero() -> None:
    plot = HeatMap(id="h", title="H", rows=("a",), columns=("b",), values=((0.0,),), low=-0.2)
    (trace,) = spec(plot)["data"]
    assert (trace["zmin"], trace["zmax"]) == (-1.0, 1.0)
    assert trace["meta"]["scale"] == "diverging"


def test_bars_start_at_zero_and_have_whiskers() -> None:
    made = spec(coverage())
    low, high = made["layout"]["xaxis"]["range"]
    assert low <= 0 < high
    value = coverage().series[0].values[0]
    assert value.value is not None and value.high is not None
    assert made["data"][0]["error_x"]["array"][0] == pytest.approx(value.high - value.value)


def test_bars_differ_by_pattern_and_not_only_by_colour() -> None:
    shapes = [trace["marker"]["pattern"]["shape"] for trace in spec(coverage())["data"]]
    assert len(set(shapes)) == 3


def test_a_bar_that_was_not_measured_is_a_word() -> None:
    assert remarks(coverage()) == ["any template (oracle): not measured"]
    assert len(spec(coverage())["data"][2]["x"]) == 3


def test_a_box_has_the_places_that_its_table_names() -> None:
    box, median, _ = spec(tiny_boxes())["data"]
    places = [box[part][0] for part in ("lowerfence", "q1", "median", "q3", "upperfence")]
    assert places == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5]) and median["x"] == [places[2]]
    first, second = rows(tiny_boxes())
    assert first == ("P1", 5, *places) and second == ("P2", 0, *[None] * 5)


def test_every_value_of_a_box_is_a_dot_of_its_own_that_tells_its_name() -> None:
    *_, dots = spec(tiny_boxes())["data"]
    assert dots["x"] == [0.1, 0.5, 0.2, 0.4, 0.3]
    assert len(set(dots["y"])) == 5 and all(abs(y) < 0.5 for y in dots["y"])
    assert dots["customdata"][2] == "<b>&lt;c&gt;</b><br>P1<br>20.0%"
    unnamed = spec(tiny_boxes(names=()))["data"][-1]
    assert unnamed["customdata"][0] == "P1<br>10.0%"


def test_a_box_of_nothing_is_a_word() -> None:
    assert remarks(tiny_boxes()) == ["not measured"]


def test_a_box_of_one_value_is_a_line() -> None:
    box, *_ = spec(tiny_boxes(labels=("P1",), values=((0.4,),), names=()))["data"]
    assert box["q1"] == box["q3"] == [0.4]


def test_boxes_below_zero_are_seen() -> None:
    made = spec(tiny_boxes(values=((-0.3, 0.2), ()), names=()))
    low, high = made["layout"]["xaxis"]["range"]
    assert low < -0.3 and high > 0.2


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
        assert spec(figure)["layout"]["height"] > 0
        assert to_table(figure) is not None


def test_calibration_of_several_models_is_one_figure() -> None:
    names = [trace["name"] for trace in spec(calibration(Random(0)))["data"]]
    assert len(names) == 5 and names[0] == "both equal"


def test_the_strip_of_the_sample_shows_every_template_that_was_asked() -> None:
    plot = template_strip(Random(0))
    asked = sum(value == value for row in plot.values for value in row)
    assert sum(len(trace["x"]) for trace in spec(plot)["data"]) == asked
