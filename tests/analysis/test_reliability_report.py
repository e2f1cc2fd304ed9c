"""MONITOR in the report of several runs: sections, findings, what is left out or not measured."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from sonde.analysis.runs import Reading
from sonde.core.fingerprints import draw_key
from sonde.core.prompts import Prompt
from sonde.core.reports import Bars, Boxes, Curves, Estimate, HeatMap, Report
from sonde.metrics.distance import Monitored
from sonde.former.monitor.probe import Monitor
from sonde.reporting.render.figures import on_page
from tests.analysis.monitors import monitored, run
from tests.analysis.world import asked, report_of, table
from tests.former.monitor_world import Told, golden, kind, world
from tests.rows import answer_all

READING = Reading(draws=100)
FACTS = (12, 12)
SMALL = run("small", monitored(1, FACTS, noise=0.8), family="f", size=10**9, setting="s")
LARGE = run("large", monitored(2, FACTS, noise=0.2), family="f", size=9 * 10**9, setting="s")
OTHER = run("other", monitored(3, FACTS, noise=0.5, knows=0.05), setting="s")
REPORT = report_of([SMALL, LARGE, OTHER], READING)

TABLES = (
    "reliability", "anchors", "prompt-accuracy", "monitor-accuracy", "equal-accuracy",
    "disputed-facts", "frames", "frame-subsets", "facts",
)  # fmt: skip
FIGURES = {
    "monitor-accuracy": Curves, "monitor-relations": HeatMap, "prompts-from-mean": Boxes,
    "accuracy-over-prompts": Boxes, "anchor-probabilities": Bars, "scaling": Curves,
    "frames": Curves,
}  # fmt: skip


def said(report: Report, words: str) -> str:
    """The one finding that has these words."""
    [found] = [finding for finding in report.findings if words in finding]
    return found


def without(known: Monitored, relation: int) -> Monitored:
    """The same with no valid anchor in a relation."""
    return replace(known, valid={**known.valid, "exact": known.relation != relation})


def test_every_section_is_there_and_every_figure_can_be_drawn() -> None:
    ids = [t.id for t in REPORT.tables]
    own = ids.index(TABLES[0])
    assert tuple(ids[own : own + len(TABLES)]) == TABLES
    for found in REPORT.tables:
        assert {len(row) for row in found.rows} <= {len(found.columns)}, found.id
    made = {f.id: f for f in REPORT.figures if f.id in FIGURES}
    assert {id: type(f) for id, f in made.items()} == FIGURES
    for figure in made.values():
        assert on_page(figure).tips


def test_the_most_reliable_run_comes_first_and_is_named() -> None:
    rows = table(REPORT, "reliability").rows
    assert [row[0] for row in rows] == ["large", "other", "small"]
    assert rows[0][1] == 9 * 10**9 and rows[0][-1] == 2.5
    assert rows[0][-2] == 24 * (1 + 5 + 3), "prompts"
    assert said(REPORT, "lowest MONITOR").startswith("large has the lowest MONITOR, 0.")
    assert "24 facts" in table(REPORT, "reliability").note


def test_runs_that_did_not_all_measure_it_are_compared_without_it() -> None:
    report = report_of([SMALL, replace(LARGE, monitored=None)], READING)
    assert not any(t.id == "reliability" for t in report.tables)
    assert not any(name.startswith("monitor") for name in report.estimates)
    assert not any(
        t.id == "reliability" for t in report_of([asked("a", [[1]]), asked("b", [[1]])]).tables
    )


def test_two_runs_leave_the_correlation_not_measured() -> None:
    report = report_of([SMALL, LARGE], READING)
    assert report.estimates["monitor_accuracy.pearson"] == Estimate.not_measured()
    assert "monitor-accuracy" not in {table.id for table in report.tables}
    assert any("a correlation needs 3 runs" in note for note in report.notes)
    assert "was not measured" in said(report, "goes with mean accuracy")


def test_three_runs_have_one_with_p_overall_and_by_relation() -> None:
    rows = table(REPORT, "monitor-accuracy").rows
    assert [row[0] for row in rows] == ["overall", "R0", "R1"]
    for name, row in zip(("", ".relation.R0", ".relation.R1"), rows, strict=True):
        assert row[2] == REPORT.estimates[f"monitor_accuracy{name}.pearson"]
        assert row[3] == REPORT.estimates[f"monitor_accuracy{name}.p"].value
    points = next(f for f in REPORT.figures if f.id == "monitor-accuracy")
    assert isinstance(points, Curves) and not any(curve.joined for curve in points.curves)
    x, y = ([getattr(c, axis)[0] for c in points.curves] for axis in "xy")
    r = REPORT.estimates["monitor_accuracy.pearson"].value
    assert r == pytest.approx(np.corrcoef(x, y)[0, 1])


def test_relations_without_anchors_are_counted_and_named() -> None:
    known = SMALL.monitored
    assert known is not None
    bare = replace(SMALL, name="bare", monitored=without(known, 0))
    report = report_of([bare, LARGE], READING)
    assert report.counts["relations_without_anchors.run.bare"] == 1
    assert report.counts["relations_without_anchors.run.large"] == 0
    assert report.estimates["monitor.relation.R0.run.bare"] == Estimate.not_measured()
    assert "1 of 2 relations (label 0)" in said(report, "bare has no valid anchor")


def test_the_lowest_monitor_is_named_only_where_it_is_told_from_all_others() -> None:
    alike = [run(name, monitored(i, (4, 4), noise=0.5)) for i, name in enumerate("abc")]
    [said_of] = [f for f in report_of(alike, READING).findings if "lowest MONITOR" in f]
    assert said_of.startswith("Which run has the lowest MONITOR cannot be told: ")


def test_runs_without_any_anchor_are_said_to_have_none() -> None:
    none = [run(name, monitored(i, FACTS, valid=0.0)) for i, name in enumerate("ab")]
    report = report_of(none, READING)
    assert said(report, "no run has a valid anchor")
    assert report.estimates["monitor.run.a"] == Estimate.not_measured()
    assert any("no fact has a valid anchor in all runs" in note for note in report.notes)
    assert {f.id for f in report.figures} >= {"accuracy-over-prompts"}
    assert not {f.id for f in report.figures} & {"anchor-probabilities", "scaling", "frames"}
    assert any("against size was not measured" in note for note in report.notes)


def test_runs_asked_in_other_ways_are_compared_with_a_warning() -> None:
    report = report_of([SMALL, replace(LARGE, setting="t"), OTHER], READING)
    assert "Asked alike: small, other; large." in said(report, "not comparable")
    assert not any("not comparable" in finding for finding in REPORT.findings)


def test_facts_that_some_run_lacks_are_counted() -> None:
    report = report_of([SMALL, run("narrow", monitored(4, (12,)))], READING)
    assert report.counts["facts_in_common"] == 12 and report.counts["relations_in_common"] == 1
    assert report.counts["facts_left_out.run.small"] == 12
    assert report.counts["facts_left_out.run.narrow"] == 0
    assert any("Left out: small 12 facts." in note for note in report.notes)


def test_sizes_of_a_family_are_joined_and_told() -> None:
    scaling = next(f for f in REPORT.figures if f.id == "scaling")
    assert isinstance(scaling, Curves)
    [line] = scaling.curves
    assert line.name == "f" and line.x == (1.0, 9.0) and line.joined
    assert "large" in said(REPORT, "In family f")


def test_runs_of_equal_base_accuracy_stand_side_by_side() -> None:
    rows = table(REPORT, "equal-accuracy").rows
    assert [(row[0], row[3]) for row in rows] == [("large", "small")]
    difference = rows[0][7]
    assert difference == REPORT.estimates["monitor.runs.large.minus.small"]
    assert "Base accuracy does not tell large from small" in said(REPORT, "does not tell")


def test_boxes_hold_the_accuracy_of_every_prompt() -> None:
    boxes = next(f for f in REPORT.figures if f.id == "accuracy-over-prompts")
    assert isinstance(boxes, Boxes)
    assert set(boxes.labels) == {
        f"label {r}: {n}" for r in (0, 1) for n in ("small", "large", "other")
    }
    known = SMALL.monitored
    assert known is not None
    own = np.stack([known.right[c][1:] for c in np.flatnonzero(known.relation == 1)])
    shown = boxes.values[boxes.labels.index("label 1: small")]
    assert shown == pytest.approx(tuple(own.mean(axis=0)))
    assert boxes.names[0][0] == "Which 0 of [X]? [Y]." and boxes.names[0][-1].endswith("name 3")


def test_the_anchors_of_the_two_runs_named_first_are_set_side_by_side() -> None:
    bars = next(f for f in REPORT.figures if f.id == "anchor-probabilities")
    assert isinstance(bars, Bars) and [s.name for s in bars.series] == ["small", "large"]
    for series in bars.series:
        assert sum(e.value or 0.0 for e in series.values) == pytest.approx(1)
        assert series.values[-1].n == series.values[0].n > 0


def test_fewer_frames_than_asked_for_leave_nothing_to_compare() -> None:
    report = report_of([SMALL, LARGE, OTHER], Reading(draws=100, frames=5))
    assert any("no relation has more than 5 frames" in note for note in report.notes)
    assert "not measured" in said(report, "fewer frames")
    assert "ρ = " in said(REPORT, "first 4 of up to 5 frames")


@dataclass(frozen=True, slots=True)
class Moody:
    """A probability, and whether an answer is right, that depend on everything in the prompt."""

    seed: int

    def likely(self, prompt: Prompt) -> float:
        drawn = draw_key(self.seed, prompt.prefix) / 2**64
        return 0.3 + 0.6 * drawn if kind(prompt) == "right" else 0.1 + 0.8 * drawn

    def says(self, prompt: Prompt) -> str:
        sure = kind(prompt) == "right" or self.likely(prompt) > 0.5
        return golden(world())(prompt) if sure else "nothing"


def test_numbers_are_those_of_each_runs_own_report() -> None:
    probe, data = Monitor(), world()
    runs, own = [], []
    for seed in (1, 2):
        moody = Moody(seed)
        model = Told(likely=moody.likely, says=moody.says)
        answers = answer_all(model, probe.ask(data))
        made = run(f"r{seed}", probe.monitored(data, answers))
        runs.append(replace(made, judged=probe.judged(data, answers)))
        own.append(probe.read(data, answers).estimates)
    report = report_of(runs, READING)
    pairs = {"monitor": "monitor", "pfd": "pfd", "ird": "ird",
             "anchor_probability": "anchor_probability", "solid_anchors": "solid_anchors",
             "anchor_rate": "anchor_rate.exact"}  # fmt: skip
    pairs |= {
        f"prompt_accuracy.{o}": f"accuracy.all.{o}" for o in ("avg", "max", "min", "base", "stdev")
    }
    for here, there in pairs.items():
        for name, estimates in zip(("r1", "r2"), own, strict=True):
            found, expected = (
                report.estimates[f"{here}.run.{name}"],
                estimates[f"{there}.mean_over_relations"],
            )
            assert found.value == pytest.approx(expected.value), here
            assert found.n == expected.n, here
