"""Tables, headlines and figures from metrics; what has nothing to show is left out."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from polars import DataFrame

from sonde.core.facts import Relation
from sonde.core.reports import Column, Estimate, Metric, Report, Table
from sonde.metrics.calibration import Bin
from sonde.metrics.estimates import RELATIONS
from sonde.reporting.build.figures import bars, calibration, distribution, dots_by_relation, strip
from sonde.reporting.build.parts import above_on_relations, headline, left_out, shown, trimmed
from sonde.reporting.build.tables import (
    Field,
    across,
    browse,
    by_place,
    by_relation,
    drawn,
    listing,
    side_by_side,
)
from sonde.reporting.catalogue import documented, metric_of
from sonde.reporting.render.html import page
from sonde.reporting.render.json import as_json
from tests.worlds import relation

RIGHT = Metric("right", "right", "percent", "share that is right")
WRONG = Metric("wrong", "wrong", "percent", "share that is wrong", better="lower")
NONE = Estimate.not_measured()
TWO = (relation("A", label="first"), relation("B", label="second"))


def told(value: float) -> Estimate:
    return Estimate(value=value, low=value - 0.1, high=value + 0.1, n=7)


ESTIMATES = {
    "right.relation.A": told(0.25),
    "right.relation.B": told(0.75),
    "wrong.relation.A": told(0.75),
    "wrong.relation.B": told(0.25),
    f"right.{RELATIONS}": told(0.5),
}


def test_a_column_is_a_metric_or_what_a_row_says_itself() -> None:
    size = Field[Relation]("size", lambda relation: len(relation.id), "count", "of its id", True)
    made = by_relation(ESTIMATES, TWO, [RIGHT, WRONG.detail().without_interval(), size])
    assert made.columns == (
        Column(title="relation"),
        Column(title="label"),
        Column(title="right", kind="percent", help="share that is right"),
        Column(title="wrong", kind="percent", help=WRONG.help, detail=True),
        Column(title="size", kind="count", help="of its id", detail=True),
    )
    assert made.rows[0] == ("A", "first", told(0.25), 0.75, 1)


def test_rows_may_be_places_metrics_runs_or_those_of_a_frame() -> None:
    places = {"one": "relation.A", "all": RELATIONS}
    by = by_place(ESTIMATES, places, [RIGHT], head="over", id="p", title="P")
    assert by.rows == (("one", told(0.25)), ("all", told(0.5)))
    lines = listing(ESTIMATES, [RIGHT, WRONG.named("false")], "relation.A", id="l", title="L")
    assert lines.columns[1].kind == "percent"
    assert lines.rows[1] == ("false", told(0.75), "share that is wrong")
    runs = {"x": {"right": told(0.1)}, "y": {"right": told(0.2)}}
    beside = side_by_side(runs, [RIGHT], lambda run, m: runs[run][m.id], id="s", title="S")
    assert [row[0] for row in beside.rows] == ["x", "y"]
    wide = by_relation({}, TWO, across(["x", "y"], lambda r, run: f"{r.id}{run}", "text"))
    assert wide.rows[1] == ("B", "second", "Bx", "By")
    rows = [{"subject": "Rome", "rank": 1}]
    long = browse(rows, [Field("subject"), Field("rank", kind="count")], id="b", title="B", total=5)
    assert long.rows == (("Rome", 1),)
    assert long.note.startswith("1 of the 5 facts, drawn by the seed")
    assert long.browsable


def test_rows_of_a_frame_are_made_when_one_is_looked_at() -> None:
    made: list[int] = []

    def frame() -> DataFrame:
        made.append(1)
        return DataFrame({"rank": [1.0, float("nan")], "subject": ["Peru", "Chile"]})

    fields: list[Field[object] | str] = ["subject", Field("rank", kind="number")]
    late = browse(frame, fields, id="b", title="B", count=2, total=3)
    now = browse(frame(), fields, id="b", title="B", total=3)
    made.clear()
    assert len(late.rows) == 2 and "2 of the 3 facts" in late.note
    assert shown(late) == (late,) and not made
    assert late == now == copy.deepcopy(late) and made == [1]
    assert late.rows[0] == ("Peru", 1.0) and late.rows[1:] == (("Chile", None),)
    assert made == [1]


def test_rows_to_show_are_drawn_by_the_seed_and_stay_in_order() -> None:
    ids = [str(i) for i in range(100)]
    assert drawn(ids, seed=1, most=100) == list(range(100))
    some = drawn(ids, seed=1, most=10)
    assert len(some) == 10
    assert some == sorted(some)
    assert some != drawn(ids, seed=2, most=10)


def test_what_is_best_follows_from_the_metric() -> None:
    assert headline(RIGHT, RELATIONS).label == "right, mean over relations"
    assert headline(RIGHT).best == 1.0
    assert headline(WRONG).best == 0.0
    assert WRONG.help == "share that is wrong; lower is better"
    assert headline(RIGHT, control=WRONG).control == "wrong"


def test_a_figure_shows_the_best_relation_first_whichever_way_is_better() -> None:
    words: Any = {"id": "f", "title": "F", "axis": "x"}
    assert dots_by_relation(ESTIMATES, TWO, {"m": RIGHT}, **words).labels == ("B second", "A first")
    assert dots_by_relation(ESTIMATES, TWO, {"m": WRONG}, **words).labels == ("B second", "A first")
    unmeasured = ESTIMATES | {"right.relation.B": NONE}
    assert dots_by_relation(unmeasured, TWO, {"m": RIGHT}, **words).labels == ("A first",)


def test_a_calibration_of_fewer_than_ten_answers_a_bin_is_not_shown() -> None:
    for n, seen in ((9, False), (10, True)):
        bins = tuple(Bin(low=0.0, high=1.0, confidence=0.5, accuracy=0.5, n=n) for _ in range(10))
        report = Report(title="R", estimates={}, figures=(calibration({"model": bins}),))
        assert bool(trimmed(report).figures) == seen


def test_what_has_nothing_to_show_is_left_out() -> None:
    words: Any = {"id": "f", "title": "F", "axis": "x"}
    columns = (Column(title="relation"), Column(title="right", kind="percent"))
    empty = Table(id="t", title="T", columns=columns, rows=(("A", NONE), ("B", float("nan"))))
    full = Table(id="t", title="T", columns=columns, rows=(("A", NONE), ("B", 0.0)))
    assert shown(*[None, empty, full]) == (full,)
    why = replace(empty, title="U", note="Not measured: no name was added.")
    assert left_out([empty, full]) == ("Left out, with nothing to show: T.",)
    assert left_out([why])[0].endswith(": U (no name was added).")
    assert left_out([full]) == ()
    bin = Bin(low=0.0, high=1.0, confidence=0.5, accuracy=0.5, n=3)
    nothing = (
        bars({"right": NONE}, {"all": ""}, {"m": RIGHT}, **words),
        calibration({"model": []}),
        distribution(np.array([]), **words),
        strip([("a", [])], **words),
    )
    something = (
        bars({"right": told(0.5)}, {"all": ""}, {"m": RIGHT}, **words),
        calibration({"model": [bin]}),
        distribution(np.array([0.5]), **words),
        strip([("a", []), ("b", [(0.5, "t", "manual")])], **words),
    )
    assert shown(*nothing) == ()
    assert shown(*something) == something
    assert something[3].labels == ("b",)
    assert shown(*["", "said"]) == ("said",)


def test_relations_above_and_below_the_baseline_and_neither_are_named_apart() -> None:
    assert above_on_relations(ESTIMATES, RIGHT, TWO).endswith("on every relation.")
    first = "The model beats the majority baseline on 1 of 2 relations."
    level, below = (ESTIMATES | {"right.relation.B": told(v)} for v in (0.0, -0.417))
    assert above_on_relations(level, RIGHT, TWO) == (
        f"{first} No significant difference: B second."
    )
    assert above_on_relations(below, RIGHT, TWO) == f"{first} Below the baseline: B second."
    both = below | {"right.relation.A": told(0.0)}
    assert above_on_relations(both, RIGHT, TWO).endswith(
        "0 of 2 relations. No significant difference: A first. Below the baseline: B second."
    )
    assert above_on_relations(dict.fromkeys(ESTIMATES, NONE), RIGHT, TWO) == ""


def test_a_difference_to_the_control_is_in_points_everywhere() -> None:
    majority, above = RIGHT.controlled()
    assert (majority.unit, above.unit) == ("percent", "points")
    assert Metric("mrr", "MRR", "number").controlled()[1].unit == "number"


@pytest.mark.parametrize(
    ("name", "found"), [("a", "a"), ("a.b", "a.b"), ("a.b.relation.P1", "a.b"), ("ab", None)]
)
def test_an_estimate_is_of_the_metric_with_the_longest_name(name: str, found: str | None) -> None:
    metric = metric_of(name, [Metric("a", "A"), Metric("a.b", "B")])
    assert (metric.id if metric else None) == found


def test_a_report_says_in_json_what_its_numbers_are() -> None:
    made = as_json(Report(title="R", summary="", estimates={}, metrics=(WRONG,)), {})
    words = {"better": "lower", "label": "wrong", "sentence": WRONG.sentence, "unit": "percent"}
    assert made["metrics"] == {"wrong": words}


def test_settings_in_names_stand_in_capitals_in_documents() -> None:
    metric = Metric("p_at_{k}", "P@{k}", "percent", "among the first {k}", better="")
    assert list(documented([metric]))[2] == "| `p_at_K` | P@K | share | among the first K | – |"


def test_a_page_leaves_out_what_has_nothing_to_show_whoever_made_the_report() -> None:
    empty = Table(id="none", title="Nothing here", columns=(Column(title="a"),), rows=())
    figure = distribution(np.array([]), id="f", title="Nothing drawn", axis="x")
    report = Report(title="R", summary="", estimates={}, tables=(empty,), figures=(figure,))
    made = page(report, {})
    assert "Nothing here" not in made
    assert "Nothing drawn" not in made
