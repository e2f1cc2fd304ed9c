"""Numbers and tables as text."""

import polars as pl

from sonde.evaluation.layout import Exhibit
from sonde.reports.cells import (
    Estimate,
    escape_control_characters,
    format_interval,
    format_number,
    text_columns,
)


def test_a_number_has_its_sign_and_digits_by_unit() -> None:
    assert [format_number(-0.0312, unit) for unit in ("percent", "points", "number")] == [
        "−3.1%",
        "−3.1",
        "−0.031",
    ]
    assert (format_number(-1e-9, "points"), format_number(0.0, "percent"), format_number(None)) == (
        "0.0",
        "0.0%",
        "–",
    )
    assert (format_number(2.5, "count"), format_number(12345, "count")) == ("2.5", "12,345")


def test_an_estimate_without_an_interval_is_its_value() -> None:
    assert format_interval(Estimate(0.25)) == "25.0%"
    assert format_interval(Estimate(0.1, -0.02, 0.2), "points") == "+10.0 [−2.0, +20.0]"


def test_controls_and_bidirectional_marks_are_shown_escaped() -> None:
    assert escape_control_characters("a\x1b[31m\u202eb\u2066") == "a\\x1b[31m\\u202eb\\u2066"
    assert escape_control_characters("Perú 東京 مصر") == "Perú 東京 مصر"


def test_a_figure_has_a_column_for_each_series() -> None:
    frame = pl.DataFrame(
        {
            "label": ["x", "x", "y", "y"],
            "color": ["m", "c", "m", "c"],
            "x": [0.5, 0.25, 1.0, 0.0],
            "low": [0.4, 0.1, None, 0.0],
            "high": [0.6, 0.3, None, 0.1],
            "facts": [4, 4, 6, 6],
        }
    )
    item = Exhibit("i", "t", frame, {"x": "percent"}, "intervals", x_label="P@1")
    assert [(c.head, list(c.cells)) for c in text_columns(item)] == [
        ("", ["x", "y"]),
        ("P@1 [95% CI]", ["50.0% [40.0, 60.0]", "100.0%"]),
        ("c", ["25.0%", "0.0%"]),
        ("facts", ["4", "6"]),
    ]


def test_series_of_separate_labels_share_a_column() -> None:
    frame = pl.DataFrame({"label": ["x", "y"], "color": ["m", "c"], "x": [0.5, 0.25]})
    item = Exhibit("i", "t", frame, {"x": "percent"}, "intervals")
    assert [list(c.cells) for c in text_columns(item)] == [["x", "y"], ["50.0%", "25.0%"]]


def test_a_heat_map_is_a_table_of_its_cells() -> None:
    frame = pl.DataFrame({"x": ["p", "q"] * 2, "y": ["r", "r", "s", "s"], "color": [1, None, 2, 3]})
    found = text_columns(Exhibit("h", "t", frame, {"color": "count"}, "heat", y_label="row"))
    assert [(c.head, list(c.cells)) for c in found] == [
        ("row", ["r", "s"]),
        ("p", ["1", "2"]),
        ("q", ["–", "3"]),
    ]
