"""The lab's report: every number with its interval, sentences that follow the data."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from sonde.core.errors import UsageError
from sonde.core.reports import Cell, Curves, Estimate, Report, Table
from sonde.evaluation.layout import Exhibit
from sonde.lab.evaluation.judging import Trial, judge
from sonde.lab.report.findings import chosen
from sonde.lab.report.report import lab_report
from sonde.reports.legacy import to_report
from sonde.reports.svg import svg
from sonde.reports.terminal import show
from tests.lab.trials import HABITS, known, likely, study, timeline, trial, verdicts


@pytest.fixture(scope="module")
def report() -> Report:
    return lab_report(study(("plain", "skew"), worlds=2, facts=24), timeline(facts=24))


@pytest.fixture(scope="module")
def single() -> Report:
    return lab_report([likely("shipped", "masked", facts=24, names=("lama", "optiprompt"))])


def table(report: Report, id: str) -> Table:
    return next(one for one in report.tables if one.id == id)


def rows(report: Report, id: str) -> dict[str, tuple[Cell, ...]]:
    return {str(row[0]).split("\N{NO-BREAK SPACE}")[0]: row for row in table(report, id).rows}


def printed(report: Report, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    show(to_report(report), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_every_sort_and_kind_has_its_main_table(report: Report) -> None:
    for kind in ("causal", "masked"):
        for sort in ("plain", "skew"):
            found = rows(report, f"estimators-{kind}-{sort}")
            fits = [n for n in HABITS if kind == "causal" or f"auroc.taught.{kind}.{sort}.{n}"
                    in report.estimates]  # fmt: skip
            assert set(found) == set(fits)
    assert "belief-icl" not in rows(report, "estimators-masked-plain")


def test_estimates_have_stable_names_and_intervals(report: Report) -> None:
    found = report.estimates["share.less_stored.causal.plain.belief-oracle"]
    assert found.n == 2 and found.low is not None and found.high is not None
    assert found.low < (found.value or 0.0) < found.high
    assert "recall.exposure.50.masked.skew.any" in report.estimates


def test_no_estimate_of_several_worlds_is_without_width(report: Report) -> None:
    flat = [
        name
        for name, e in report.estimates.items()
        if not name.startswith("cost.") and (e.low is None or e.low == e.high)
    ]
    assert not flat


def test_a_single_world_says_that_its_interval_is_over_facts(single: Report) -> None:
    assert single.estimates["recall.exposure.50.masked.shipped.lama"].n == 16
    assert any("Of a single world" in note for note in single.notes)
    assert not any("Student" in note for note in single.notes)
    assert "worlds:" not in single.tables[1].title


def test_the_terminal_fits_and_breaks_no_number(report: Report) -> None:
    lines = printed(report).splitlines()
    assert max(map(len, lines)) <= 100
    main = next(i for i, line in enumerate(lines) if "Causal models, skew worlds: est" in line)
    assert any(line.startswith("monitor-dist") for line in lines[main : main + 45])


def test_the_pictures_are_those_that_were_asked_for(report: Report) -> None:
    ids = [figure.id for figure in report.figures]
    assert {
        "shares-causal",
        "off-masked-plain",
        "auroc-causal-skew",
        "recall-causal-plain",
        "recall-learning-masked-skew",
        "false-causal-skew",
        "training-masked-plain-1-0",
    } <= set(ids)
    assert len(set(ids)) == len(ids)
    [figures] = [s for s in to_report(report).sections if s.id == "figures"]
    assert all(isinstance(item, Exhibit) for item in figures.items)
    assert all(svg(item).startswith("<svg") for item in figures.items if isinstance(item, Exhibit))


def test_estimates_stand_against_the_truth_of_every_model_and_checkpoint(report: Report) -> None:
    shares = next(f for f in report.figures if f.id == "shares-masked")
    assert isinstance(shares, Curves) and shares.diagonal
    lama = next(curve for curve in shares.curves if curve.name == "lama")
    assert len(lama.x) == 4 + 3 and not lama.joined


def test_training_ends_with_the_finished_model(report: Report) -> None:
    training = next(f for f in report.figures if f.id == "training-causal-plain-1-0")
    assert isinstance(training, Curves)
    stored = training.curves[0]
    assert stored.name == "stored (truth)" and stored.x == (100, 250, 500, 1000)
    assert list(stored.y) == sorted(stored.y)


def test_findings_follow_the_data() -> None:
    trials = study(worlds=6, facts=24, names=("lama", "belief-oracle", "monitor-anchor"))
    before = "\n".join(lab_report(trials).findings)
    assert "monitor-anchor flatters most" in before
    without = [
        replace(t, verdicts=tuple(v for v in t.verdicts if v.estimator != "monitor-anchor"))
        for t in trials
    ]
    after = "\n".join(lab_report(without).findings)
    assert "belief-oracle flatters most" in after and "monitor-anchor" not in after


def test_an_estimator_is_singled_out_only_where_a_test_tells_it_from_all_others() -> None:
    few = study(worlds=2, facts=12, names=("lama", "belief-oracle", "monitor-anchor"))
    said = "\n".join(f for f in lab_report(few).findings if f.startswith("Causal"))
    for claim in ("flatters most:", " best by ", "takes the most for known,", "finds the most,"):
        assert claim not in said
    for question in ("flatters most cannot be told", "finds the most cannot be told"):
        assert question in said


def test_worlds_in_which_one_is_always_ahead_tell_it_from_the_other() -> None:
    facts = [known(f"a{i}", 5 * (i % 2), stored=bool(i % 2)) for i in range(40)]
    ids = [f.fact for f in facts]

    def world(k: int) -> Trial:
        good = verdicts("good", ids, [1.0 if f.stored else 0.02 * k for f in facts])
        poor = [0.5 + 0.001 * ((7 * i + k) % 11) for i in range(40)]
        return trial(facts, [good, verdicts("poor", ids, poor)], world=f"plain-{k}")

    [one] = judge([world(1), world(2), world(3)])
    choice = chosen(one, "auroc.stored")
    assert choice is not None and choice.best == "good" and choice.ties == ()


def test_learning_is_told_from_recall_by_the_control() -> None:
    facts = [known(f"a{i}", 5 * (i % 2), stored=bool(i % 2), guess="cue") for i in range(80)]
    ids = [f.fact for f in facts]
    lama = verdicts("lama", ids, [float(f.stored) for f in facts])
    soft = verdicts("soft", ids, [1.0] * 80, learns=True)
    cued = verdicts("soft-random", ids, [1.0] * 60 + [0.0] * 20, learns=True, control=True)
    blind = verdicts("soft-random", ids, [0.0] * 80, learns=True, control=True)
    learnt = lab_report([trial(facts, [lama, soft, cued])])
    assert "above what random weights gain" in "\n".join(learnt.findings)
    even = replace(cued, frame=cued.frame.with_columns(soft.frame["decision"]))
    matched = lab_report([trial(facts, [lama, soft, even])])
    assert "matched by random weights, so learnt" in "\n".join(matched.findings)
    found = table(matched, "learning-masked-plain")
    assert [row[-1] for row in found.rows] == ["matched"] * 3
    held = table(lab_report([trial(facts, [lama, soft, blind])]), "learning-masked-plain")
    assert {row[-1] for row in held.rows} == {"above control"}


def test_a_gain_that_random_weights_do_not_clearly_have_is_not_called_learnt() -> None:
    facts = [known(f"a{i}", guess="cue") for i in range(12)]
    ids = [f.fact for f in facts]
    lama = verdicts("lama", ids, [0.0] * 12)
    soft = verdicts("soft", ids, [1.0] * 7 + [0.0] * 5, learns=True)
    weak = verdicts("soft-random", ids, [0.0] * 10 + [1.0] * 2, learns=True, control=True)
    told = "\n".join(lab_report([trial(facts, [lama, soft, weak])]).findings)
    assert "not distinguishable from what random weights gain" in told and "so learnt" not in told


def test_unfound_facts_at_the_top_are_explained() -> None:
    facts = [known(f"a{i}", 50, stored=i < 30) for i in range(40)]
    facts += [known(f"a{i}", 0) for i in range(40, 60)]
    said = verdicts("lama", [f.fact for f in facts], [1.0] * 25 + [0.0] * 35)
    told = "\n".join(lab_report([trial(facts, [said])]).findings)
    assert "of the 15 of 40 that none finds 10 are not stored either" in told


def test_an_estimator_that_tells_nothing_is_trusted_for_nothing() -> None:
    facts = [known(f"a{i}", i % 2, stored=bool(i % 2)) for i in range(60)]
    ids = [f.fact for f in facts]
    useless = verdicts("useless", ids, [0.5] * 60, counts=[0.5] * 60)
    near = verdicts("near", ids, [0.8 if f.stored else 0.3 for f in facts], counts=[0.6] * 60)
    [group] = judge([trial(facts, [useless, near])])
    choice = chosen(group, "share.less_stored")
    assert choice is not None and choice.best == "near" and choice.ties == ()


def test_estimators_whose_intervals_overlap_are_ties() -> None:
    names = ("lama", "lama-unused", "belief-max", "belief-oracle")
    [group] = judge([likely("shipped", "masked", facts=24, names=names)])
    choice = chosen(group, "auroc.stored")
    assert choice is not None and choice.estimate.low is not None
    for name in group.estimators:
        high = group.of("auroc.stored", name).high
        overlaps = high is not None and high >= choice.estimate.low
        assert overlaps == (name == choice.best or name in choice.ties)


def test_chance_is_shown_beside_what_is_counted(report: Report) -> None:
    row = rows(report, "unshown-masked-plain")["lama"]
    assert row[2] == pytest.approx(0.02)
    counts, less = row[1], row[3]
    assert isinstance(counts, Estimate) and isinstance(less, Estimate)
    assert less.value == pytest.approx((counts.value or 0.0) - 0.02)


def test_estimators_that_were_asked_other_facts_are_noted() -> None:
    facts = [known(f"a{i}", i % 2) for i in range(10)]
    ids = [f.fact for f in facts]
    said = [verdicts("lama", ids, [0.0] * 10), verdicts("b", ids[:4], [1.0] * 4)]
    notes = lab_report([trial(facts, said)]).notes
    assert any("not all estimators" in note.lower() for note in notes)


def test_every_model_stands_by_itself_whatever_it_is_called() -> None:
    facts = [known(f"a{i}", i % 2) for i in range(4)]
    ids = [f.fact for f in facts]
    trials = [
        replace(trial(facts, [verdicts("lama", ids, score)], world=world), model="masked")
        for world, score in (("plain-1", [0, 1, 0, 1]), ("plain-2", [0, 0, 0, 0]))
    ]
    found = table(lab_report(trials), "models").rows
    assert [row[:5] for row in found] == [
        ("plain-1", "masked", "masked", "lama", 1.0),
        ("plain-2", "masked", "masked", "lama", 0.5),
    ]


def test_a_report_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="no estimator"):
        lab_report([])
