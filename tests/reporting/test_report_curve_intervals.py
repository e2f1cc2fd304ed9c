"""Curves with intervals, named places and points that stand alone."""

from __future__ import annotations

import pytest

from sonde.core.reports import Curve, Curves
from sonde.reporting.render.numbers import to_table

from .drawing import Drawing, drawn

CURVE = Curve(name="m", x=(1, 5, 50), y=(0.2, 0.4, 0.5), low=(0.0, 0.3, 0.4), high=(0.3, 0.6, 0.9))


def plot(*curves: Curve) -> Curves:
    return Curves(
        id="c",
        title="C",
        x_axis="examples",
        y_axis="accuracy",
        curves=curves,
        x_kind="number",
        marks=(("enough", 5.0),),
    )


def drawing(*curves: Curve) -> Drawing:
    return drawn(plot(*curves))


def test_whiskers_reach_to_the_ends_of_the_interval() -> None:
    made = drawing(CURVE)
    spans = [stroke for stroke in made.lines(0)[1:] if len(stroke) == 3 and stroke[2] != 6]
    ends = [[made.read(y, "end") for y in stroke[1:]] for stroke in spans]
    for read, wanted in zip(ends, zip(CURVE.low, CURVE.high, strict=True), strict=True):
        assert read == pytest.approx(wanted, abs=0.002)


def test_the_axis_has_room_for_the_whiskers() -> None:
    made = drawing(CURVE)
    top = min(y for stroke in made.lines(0) for y in stroke[1:2])
    assert made.read(top, "end") == pytest.approx(0.9, abs=0.002) and top > 40


def test_a_point_tells_its_interval_and_counts_are_no_shares() -> None:
    assert drawing(CURVE).tips()[1] == "m\nexamples: 5\naccuracy: 40.0%\n[30.0%, 60.0%]"


def test_the_table_has_the_ends_of_intervals() -> None:
    table = to_table(plot(CURVE, Curve(name="bare", x=(1,), y=(0.1,))))
    assert table is not None
    assert [column.title for column in table.columns] == [
        "curve",
        "examples",
        "accuracy",
        "from",
        "to",
    ]
    assert table.rows[0] == ("m", 1, 0.2, 0.0, 0.3)
    assert table.rows[3] == ("bare", 1, 0.1, None, None)


def test_a_mark_is_a_dashed_line_with_its_name() -> None:
    made = drawing(CURVE)
    [dashed] = [node for node in made.root.iter() if node.get("stroke-dasharray") == "5 4"]
    at = float((dashed.get("d") or "")[1:].split()[0])
    assert made.read(at) == pytest.approx(5.0, abs=0.1) and "enough" in made.texts


def test_points_that_are_not_joined_have_no_line() -> None:
    alone = Curve(name="m", x=(1, 2), y=(0.1, 0.2), joined=False)
    assert drawing(alone).lines(0) == [] and len(drawing(alone).points()) == 2


def test_half_an_interval_is_refused() -> None:
    with pytest.raises(ValueError, match="one interval per point"):
        Curve(name="m", x=(1, 2), y=(0.1, 0.2), low=(0.0, 0.1), high=(0.2,))


def test_labels_stand_on_the_axis_in_place_of_numbers() -> None:
    curve = Curve(name="m", x=(0.1, 0.9), y=(0.2, 0.4))
    made = Curves(
        id="c", title="C", x_axis="times", y_axis="found", curves=(curve,), x_labels=("1", "<50>")
    )
    picture = drawn(made)
    assert {"1", "<50>"} <= set(picture.texts)
    assert picture.tips()[1] == "m\ntimes: <50>\nfound: 40.0%"
    table = to_table(made)
    assert table is not None and [row[1] for row in table.rows] == ["1", "<50>"]


def test_a_point_beside_no_label_is_refused() -> None:
    with pytest.raises(ValueError, match="beside no label"):
        Curves(id="c", title="", x_axis="", y_axis="", x_labels=("1", "2"),
               curves=(Curve(name="m", x=(2.0,), y=(0.1,)),))  # fmt: skip
