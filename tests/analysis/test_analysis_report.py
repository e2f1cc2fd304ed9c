"""The report of several runs: a row per run, figures with all of them, and what was left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sonde.analysis.runs import Compared, Reading
from sonde.core.reports import Bars, Curves, HeatMap, Report
from tests.analysis.world import asked, changed, report_of, run, table

READING = Reading(draws=200, floor=1)

GOOD = replace(run("good", [[[0], [0]], [[0], [1]]], group="g"), seconds=12.5)
POOR = run("poor", [[[1], [0]], [[1], [1]]], group="p")
REPORT = report_of([GOOD, POOR], READING)


def figure(report: Report, id: str) -> object:
    return next((f for f in report.figures if f.id == id), None)


def test_the_comparison_has_a_row_per_run_with_its_time() -> None:
    shown = table(REPORT, "comparison")
    assert [row[0] for row in shown.rows] == ["good", "poor"]
    assert [row[-1] for row in shown.rows] == [12.5, None]
    accuracy = [c.title for c in shown.columns].index("Acc@1")
    assert [row[accuracy].value for row in shown.rows] == [0.75, 0.25]  # type: ignore[union-attr]


def test_every_table_has_a_row_per_run_or_is_left_out_and_named() -> None:
    assert [row[1] for row in table(REPORT, "leaderboard").rows] == ["good", "poor"]
    assert "Added names that help" in REPORT.notes[-1]
    for shown in REPORT.tables:
        assert all(len(row) == len(shown.columns) for row in shown.rows), shown.id


def test_names_and_templates_stand_below_each_other_for_every_run() -> None:
    rows = table(REPORT, "drivers").rows
    assert [row[:2] for row in rows] == [
        ("good", "names"), ("good", "templates"), ("poor", "names"), ("poor", "templates"),
    ]  # fmt: skip
    values = [[e.value for e in row[2:]] for row in rows]  # type: ignore[union-attr]
    assert values[0] == [None, None, None], "there is one name each"
    assert values[1] == [0.5, 0.5, 1.0]
    assert values[3] == [0.5, 0.0, 0.5]


def test_heat_maps_have_the_runs_as_rows_and_columns() -> None:
    sharing = figure(REPORT, "sharing")
    assert isinstance(sharing, HeatMap)
    assert sharing.rows == sharing.columns == ("good", "poor")
    assert sharing.values == ((1.0, 1 / 3), (1.0, 1.0))
    ranks = figure(REPORT, "rank-agreement")
    assert isinstance(ranks, HeatMap) and ranks.values == ((1.0, -1.0), (-1.0, 1.0))


def test_one_figure_has_the_calibration_of_all_runs_that_were_sure_of_something() -> None:
    assert figure(REPORT, "calibration") is None
    grid = replace(GOOD.judged.grid, confidence=np.array([0.9, 0.8, 0.7, np.nan]))
    sure = changed(GOOD, grid=grid)
    curves = figure(report_of([sure, replace(sure, name="twin"), POOR], READING), "calibration")
    assert isinstance(curves, Curves) and curves.diagonal
    assert [(c.name, sum(c.sizes)) for c in curves.curves] == [("good", 3), ("twin", 3)]


def test_coverage_bars_stand_side_by_side() -> None:
    bars = figure(REPORT, "coverage")
    assert isinstance(bars, Bars) and bars.labels == ("good", "poor")
    assert {s.name: [e.value for e in s.values] for s in bars.series}["oracle"] == [1.0, 0.5]


def test_templates_whose_rank_differs_are_named_with_the_runs() -> None:
    [first, second] = table(REPORT, "ranks").rows
    assert first[:7] == ("R0", "[X] 0 [Y]", 2, 1.0, "good", 2.0, "poor")
    assert second[:7] == ("R0", "[X] 1 [Y]", 2, 1.0, "poor", 2.0, "good")


def test_what_was_left_out_is_counted_and_said_and_the_runs_stand_also_alone() -> None:
    wide = run("wide", [[[0], [0]], [[0], [0]], [[1], [1]]])
    report = report_of([wide, POOR], READING)
    assert report.counts["prompts"] == 4
    assert report.counts["prompts_left_out.run.wide"] == 2
    assert any("Left out: wide 2 prompts" in note for note in report.notes)
    assert "4 prompts that both were asked (67% of wide's)" in report.summary
    assert report.estimates["acc_at_1.run.wide"].value == 1
    assert report.estimates["own.acc_at_1.run.wide"].value == 2 / 3
    counts = [row[2] for row in table(report, "comparison-own").rows]
    assert counts == [6, 4]


def test_nothing_left_out_makes_no_second_table() -> None:
    assert "comparison-own" not in [t.id for t in REPORT.tables]
    assert any("Nothing was left out" in note for note in REPORT.notes)
    assert "which is all they were asked" in REPORT.summary


def test_runs_that_answered_in_different_ways_are_told_apart() -> None:
    assert "different ways" not in REPORT.summary
    report = report_of([GOOD, changed(POOR, way="written")], READING)
    said = "different ways (good: filled in a word; poor: wrote a text)"
    assert said in report.summary


def test_runs_that_know_nothing_are_said_to() -> None:
    nothing = [run(name, [[[1], [1]]]) for name in ("a", "b")]
    report = report_of(nothing, READING)
    assert "a and b cannot be told apart" in report.title
    assert "None of the runs knows anything." in report.findings


def found(report: Report, *words: str) -> list[str]:
    """The findings that have one of these words."""
    return [finding for finding in report.findings if any(word in finding for word in words)]


def many(name: str, right: int, of: int = 40, relations: int = 1) -> Compared:
    """A run that is right on the first so many pairs of each relation."""
    return asked(name, [[int(i < right) for i in range(of)]] * relations)


def test_who_is_best_is_said_only_where_a_paired_test_says_so() -> None:
    assert REPORT.title.startswith("good and poor cannot be told apart: −50.0 points [")
    clear = report_of([many("a", 30), many("b", 10), many("c", 0)], READING)
    assert clear.title.startswith("a (75.0%) is best of 3, ahead of b (25.0%): +50.0 points [")
    assert clear.title.endswith("p < 0.001, on 40 facts asked of all")
    tied = report_of([many("a", 30), many("b", 28), many("c", 0)], READING)
    assert tied.title == (
        "Which of 3 runs is best cannot be told: a (75.0%) cannot be told apart from b (70.0%), on "
        "40 facts asked of all"
    )


def test_one_pair_of_runs_makes_no_finding_of_a_correlation() -> None:
    ease = [[int(i < n) for i in range(40)] for n in (5, 20, 35)]
    hard = [[int(i < n) for i in range(40)] for n in (2, 15, 38)]
    two = report_of([asked("a", ease), asked("b", hard)], READING)
    assert two.estimates["correlation.mean"].value is not None
    assert not found(two, "same relations easy", "agree least")
    three = report_of([asked("a", ease), asked("b", hard), asked("c", ease)], READING)
    assert found(three, "same relations easy")


def test_no_two_runs_are_said_to_agree_least_on_templates_unless_a_test_says_so() -> None:
    runs = [GOOD, POOR, replace(GOOD, name="twin")]
    [said] = found(report_of(runs, READING), "which templates are good")
    assert "cannot be told" in said


def test_runs_of_different_tasks_are_not_averaged() -> None:
    outcomes = [[1] * 40, [0] * 40]
    scored, written = asked("a", outcomes), changed(asked("b", outcomes), way="written")
    assert found(report_of([scored, asked("b", outcomes)], READING), "known best")
    assert not found(report_of([scored, written], READING), "known best", "on average")


def test_relations_are_known_best_or_least_only_where_a_test_says_so() -> None:
    apart = report_of([asked("a", [[1] * 40, [0] * 40]), asked("b", [[1] * 40, [0] * 40])], READING)
    [said] = found(apart, "known best")
    assert "R0 is known best (100.0%)" in said
    few = report_of([asked("a", [[1] * 3, [0] * 3]), asked("b", [[1] * 3, [0] * 3])], READING)
    [said] = found(few, "known best")
    assert said == (
        "Which relation is known best over all runs cannot be told: R0 (100.0%) is not "
        "distinguishable from R1."
    )


def test_what_two_runs_share_is_said_both_ways_and_of_several_from_least_to_most() -> None:
    assert found(REPORT, "knows") == [
        "Of what good knows, poor knows 33.3%; of what poor knows, good knows 100.0%.",
        "Of what any run knows, 66.7% is known in one run only.",
    ]
    several = report_of([GOOD, POOR, replace(GOOD, name="twin")], READING)
    [said] = found(several, "another knows")
    assert said == "Of what one run knows, another knows 33.3% to 100.0%, depending on which two."
