"""Models side by side in the report: leaderboard, best relations, sizes, fine-tuning, families."""

from __future__ import annotations

from statistics import stdev

import pytest

from sonde.analysis.runs import Reading
from sonde.core.reports import Estimate, HeatMap, Report
from tests.analysis.world import asked, report_of, run, table
from tests.grids import measured

READING = Reading(draws=200)
SMALL = asked(
    "small", [[1, 1, 0, 0], [1, 0], [0, 0]], group="f", family="f", size=1_000_000, stage="base"
)
LARGE = asked(
    "large", [[1, 0, 1, 1], [1, 1], [1, 0]], group="f", family="f", size=9_000_000, stage="base"
)
CHAT = asked(
    "chat", [[1, 0, 0, 0], [1, 1], [0, 0]], group="f",
    family="f", size=9_000_000, stage="fine-tuned", base="large",
)  # fmt: skip
STRANGER = asked("stranger", [[0, 0, 0, 1], [0, 0], [1, 1]], group="unknown (stranger)")
REPORT = report_of([SMALL, LARGE, CHAT, STRANGER], READING)


def heat(report: Report, id: str) -> HeatMap | None:
    found = next((f for f in report.figures if f.id == id), None)
    assert found is None or isinstance(found, HeatMap)
    return found


def value(cell: object) -> float | None:
    assert isinstance(cell, Estimate)
    return cell.value


def test_the_leaderboard_goes_from_best_to_worst_with_deviation_and_interval() -> None:
    rows = table(REPORT, "leaderboard").rows
    assert [row[1] for row in rows] == ["large", "chat", "stranger", "small"]
    assert [row[0] for row in rows] == [1, 2, 3, 4]
    assert [row[2] for row in rows] == ["f", "f", "unknown", "f"]
    accuracies = [(0.75 + 1 + 0.5) / 3, (0.25 + 1 + 0) / 3, (0.25 + 0 + 1) / 3, (0.5 + 0.5) / 3]
    assert [value(row[5]) for row in rows] == pytest.approx(accuracies)
    assert rows[0][6] == pytest.approx(stdev([0.75, 1, 0.5]))
    best = rows[0][5]
    assert isinstance(best, Estimate)
    low, _, high = measured(best)
    assert low < 0.75 < high


def test_the_heat_map_has_relations_by_their_mean_and_runs_by_family() -> None:
    shown = heat(REPORT, "accuracy")
    assert shown is not None
    # means over runs: R0 (.5 + .75 + .25 + .25) / 4, R1 (.5 + 1 + 1 + 0) / 4, R2 (.5 + 1) / 4
    assert shown.rows == ("R1", "R0", "R2")
    assert shown.columns == ("large", "chat", "small", "stranger")
    assert shown.values[0] == (1, 1, 0.5, 0)
    assert shown.values[2] == (0.5, 0, 0, 1)


def test_the_best_and_worst_relation_of_each_run_are_named() -> None:
    rows = {row[0]: row[1:] for row in table(REPORT, "extremes").rows}
    assert rows["stranger"] == ("R2 100.0%", "R1 0.0%")
    assert rows["large"] == ("R1 100.0%", "R2 50.0%")


def test_the_smallest_stands_against_the_largest_with_both_accuracies_and_eta() -> None:
    [row] = table(REPORT, "sizes").rows
    assert (row[0], row[1], row[2], row[4], row[5]) == ("f", "small", 1_000_000, "large", 9_000_000)
    assert [value(row[i]) for i in (3, 6)] == pytest.approx([1 / 3, 0.75])
    assert value(row[7]) == pytest.approx(0.75 - 1 / 3)
    # small knows two of R0, of which large knows one, and one of R1, which large knows
    assert value(row[8]) == pytest.approx((1 / 2 + 1) / 2)


def test_a_fine_tuned_model_stands_against_its_base() -> None:
    [row] = table(REPORT, "tuned").rows
    assert (row[1], row[4]) == ("large", "chat")
    assert [value(row[i]) for i in (3, 6)] == pytest.approx([0.75, (0.25 + 1) / 3])
    difference = row[7]
    assert isinstance(difference, Estimate)
    low, middle, high = measured(difference)
    assert middle == pytest.approx((0.25 + 1) / 3 - 0.75) and low < middle < high
    # all three that chat knows, large knows
    assert value(row[8]) == 1
    assert any("chat is" in f and "than large, its base" in f for f in REPORT.findings)


def test_every_run_stands_also_less_the_first() -> None:
    assert len(table(REPORT, "measures").rows) == 4
    shown = table(REPORT, "measures-differences")
    assert [row[0] for row in shown.rows] == [
        "large minus small", "chat minus small", "stranger minus small"
    ]  # fmt: skip
    assert [value(row[1]) for row in shown.rows] == pytest.approx([3 / 8, 0, 0])
    assert {column.kind for column in shown.columns} <= {"text", "points", "number", "count"}
    assert all(len(row) == len(shown.columns) for row in shown.rows)


def test_families_that_are_not_known_are_said() -> None:
    [note] = [n for n in REPORT.notes if "Family unknown" in n]
    assert "stranger" in note and "small" not in note
    known = report_of([SMALL, LARGE], READING)
    assert not any("Family unknown" in n for n in known.notes)


def test_correlations_are_shown_by_run_and_by_group() -> None:
    runs = heat(REPORT, "correlation")
    assert runs is not None and runs.rows == ("large", "chat", "small", "stranger")
    groups = [row[:2] for row in table(REPORT, "correlations").rows]
    assert groups[:2] == [("f", "f"), ("f", "unknown (stranger)")], "one run alone has none within"


def test_one_template_per_relation_leaves_what_needs_several_not_measured() -> None:
    for name in ("fluctuation.relation.range", "consist", "templates_only.consist", "manual.rank"):
        assert REPORT.estimates[f"{name}.run.small"].value is None, name
    assert REPORT.estimates["rank_agreement.mean"].value is None
    assert heat(REPORT, "rank-agreement") is None
    assert "ranks" not in {table.id for table in REPORT.tables}
    assert any("asked in one template" in note for note in REPORT.notes)
    several = report_of([run("a", [[[0], [1]]]), run("b", [[[1], [0]]])], READING)
    assert not any("asked in one template" in note for note in several.notes)


def test_one_relation_leaves_what_needs_several_not_measured() -> None:
    report = report_of([asked("a", [[1, 0]]), asked("b", [[1, 1]])], READING)
    assert report.estimates["correlation.mean"].value is None
    assert report.estimates["accuracy.stdev_over_relations.run.a"].value is None
    assert report.estimates["accuracy.mean_over_relations.run.a"].value == 0.5
    assert heat(report, "correlation") is None
    assert [row[1:] for row in table(report, "extremes").rows] == [(None, None), (None, None)]
    assert not {"sizes", "tuned"} & {table.id for table in report.tables}
    assert "no family has runs of two sizes" in report.notes[-1]


def test_the_order_of_runs_changes_no_value_under_its_name() -> None:
    runs = [SMALL, LARGE, CHAT, STRANGER]
    other = report_of(runs[::-1], READING).estimates
    for name, estimate in REPORT.estimates.items():
        if ".minus.small" not in name:  # the first run is what others are compared with
            assert other[name].value == pytest.approx(estimate.value), name
            assert other[name].n == estimate.n, name
