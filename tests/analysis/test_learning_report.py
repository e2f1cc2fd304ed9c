"""The report about what runs may have learnt: tables as the papers have them, figures, findings."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given

from sonde.analysis.learning.facts import Learning, learning
from sonde.analysis.learning.report import learning_report
from sonde.core.reports import Bars, Curves, DotPlot, Report, Strip
from tests.analysis.lessons import lesson, method, world, worlds
from tests.analysis.world import table

N = 40
OBJECTS = [["b"] * N, ["c", "d"]]
RUNS = {
    "manual": [["x"] * N, ["c", "x"]],
    "opti": [["b"] * 30 + ["x"] * 10, ["c", "d"]],
    "nb": [["b"] * 20 + ["y"] * 20, ["d", "d"]],
}
TRAINED = [{"z": 3, "b": 1}, {"d": 1}]
FOUND = world(OBJECTS, RUNS, TRAINED, ["nb"])
REPORT = learning_report(FOUND, "lama")
NAMES = ("manual", "opti", "nb")


def figure(report: Report, id: str) -> object:
    return next((f for f in report.figures if f.id == id), None)


def cells(id: str, title: str) -> list[object]:
    shown = table(REPORT, id)
    at = [column.title for column in shown.columns].index(title)
    return [getattr(row[at], "value", row[at]) for row in shown.rows]


def test_tables_have_a_row_or_a_column_per_run() -> None:
    assert cells("methods", "run") == list(NAMES)
    assert cells("methods", "1-1") == [0.0, 0.75, 0.5]
    assert cells("easy-hard", "run") == list(NAMES)
    assert cells("gains", "run") == ["opti", "nb"]
    titles = [column.title for column in table(REPORT, "relations").columns]
    parts = ("", ", Maj.", ", easy", ", hard")
    assert titles[-12:] == [f"{name}{part}" for part in parts for name in NAMES]
    assert tuple(c.title for c in table(REPORT, "drawn-facts").columns[-3:]) == NAMES
    for shown in REPORT.tables:
        assert all(len(row) == len(shown.columns) for row in shown.rows), shown.id


def test_relations_without_a_kind_come_last() -> None:
    known = {f"R{i}": lesson(i, own, TRAINED[i]) for i, own in enumerate(OBJECTS)}
    known["R0"] = replace(known["R0"], relation=replace(known["R0"].relation, kind=None))
    runs = [method(n, OBJECTS, a) for n, a in RUNS.items()]
    shown = table(learning_report(learning(runs, known, ["nb"]), "lama"), "relations")
    assert [row[:2] for row in shown.rows] == [("R1", "N-1"), ("R0", None)]


def test_easy_and_hard_are_counted_with_what_decides_them() -> None:
    assert REPORT.counts["easy_facts"] == 21 and REPORT.counts["hard_facts"] == 21
    assert "Easy: answered right by nb; 21 of 42 facts" in table(REPORT, "easy-hard").note
    assert cells("relations", "facts") == [40, 2] and cells("relations", "easy") == [20, 1]


def test_the_report_says_which_of_the_papers_three_decide_what_is_easy() -> None:
    known = {f"R{i}": lesson(i, own, TRAINED[i]) for i, own in enumerate(OBJECTS)}
    taught = {"nb": "naive Bayes", "opti": "a fine-tuned random model"}
    runs = [method(n, OBJECTS, a, taught=taught.get(n, "")) for n, a in RUNS.items()]
    said = learning_report(learning(runs, known), "lama").summary
    assert "by opti (a fine-tuned random model) or nb (naive Bayes)" in said
    assert "The paper also counts fine-tuned random embeddings: no such run." in said


def test_accuracy_stands_beside_what_is_right_by_the_majority_in_each_relation() -> None:
    assert cells("relations", "opti") == [0.75, 1.0]
    assert cells("relations", "opti, Maj.") == [0.0, 0.5]


def test_answers_of_drawn_facts_are_marked_where_they_are_right() -> None:
    shown = table(REPORT, "drawn-facts")
    assert len(shown.rows) == 10 + 10
    for row in shown.rows:
        assert any(str(cell).endswith(" ✓") for cell in row[3:]), "some run is right"


def test_findings_tell_how_much_of_a_gain_is_easy() -> None:
    said = "\n".join(REPORT.findings)
    assert "opti is clearly above manual (+62.5 points" in said
    # 21 of the 31 facts that are won are easy
    assert re.search(r"Of the gain of opti over facts \(\+73\.8 points\), 67\.7% \(", said)
    assert "opti gains on easy facts" in said
    assert "nb gains on easy facts" not in said, "it decides what is easy"


def test_a_gain_that_its_own_test_does_not_tell_from_chance_is_not_called_clear() -> None:
    runs = {"manual": [["b"] * 2 + ["x"] * 4], "opti": [["b"] * 5 + ["x"]]}
    report = learning_report(world([["b"] * 6], runs, [{"z": 1}]), "lama")
    # three won and none lost: p is 0.25, so the interval reaches 0
    assert report.estimates["gain.mean_over_relations.run.opti"].low == 0
    assert report.findings[0].startswith("opti is not distinguishable from manual (+50.0 points")
    assert "p 0.250" in report.findings[0]


def test_figures_show_all_runs() -> None:
    bars, dots, strip, gains = (
        figure(REPORT, id) for id in ("accuracy-parts", "easy-hard", "majority", "gains")
    )
    assert isinstance(bars, Bars) and bars.labels == NAMES
    assert isinstance(dots, DotPlot) and [s.name for s in dots.series] == ["easy", "hard"]
    assert isinstance(strip, Strip)
    assert strip.labels == ("facts trained on", "facts asked", *NAMES)
    assert isinstance(gains, Curves) and [c.name for c in gains.curves] == ["opti"]
    assert gains.curves[0].x == (0.5, 0.0) and gains.curves[0].y == (0.75, 0.5)


def test_what_is_missing_is_said_and_leaves_the_rest() -> None:
    report = learning_report(world(OBJECTS, RUNS, [{}, {}]), "lama")
    assert "no run decides what is easy" in report.summary
    assert figure(report, "easy-hard") is None and figure(report, "majority") is None
    assert not any("easy" in finding for finding in report.findings)
    assert report.counts["relations_without_training_facts"] == 2
    assert any("No training facts" in note for note in report.notes)
    assert table(report, "methods").rows


def test_methods_stand_by_model_where_names_tell_models() -> None:
    runs = {f"{name}@{model}": RUNS[name] for model in ("x", "y") for name in ("manual", "opti")}
    report = learning_report(world(OBJECTS, {**runs, "nb": RUNS["nb"]}, TRAINED, ["nb"]), "lama")
    shown = table(report, "models")
    assert [c.title for c in shown.columns] == ["method", "x", "y"]
    assert [row[0] for row in shown.rows] == ["manual", "opti", "nb"]
    assert [getattr(cell, "value", 0) for cell in shown.rows[2][1:]] == [None, None]
    assert "models" not in [t.id for t in REPORT.tables]


def test_fewer_relations_are_told_beside_the_table() -> None:
    runs = {**RUNS, "auto": [["b"] * N, ["", ""]]}
    report = learning_report(world(OBJECTS, runs, TRAINED, ["nb"]), "lama")
    assert "fewer relations" in table(report, "methods").note
    assert "fewer relations" not in table(REPORT, "methods").note


@given(worlds())
def test_any_runs_make_a_report(found: Learning) -> None:
    report = learning_report(found, "lama")
    for shown in report.tables:
        assert all(len(row) == len(shown.columns) for row in shown.rows), shown.id
