"""MONITOR over runs: numbers by hand, and what must hold whatever the runs are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.analysis.reliability.compare import (
    ablation,
    chosen,
    equals,
    linked,
    monitor_from,
    on_shared_anchors,
    reliability,
)
from sonde.analysis.reliability.measures import Measure, in_common, measures
from sonde.analysis.reliability.tables import fact_row, most_disputed
from sonde.analysis.runs import Compared, Reading
from sonde.core.errors import UsageError
from sonde.core.reports import Estimate
from sonde.metrics.distance import Monitored, combined
from tests.analysis.monitors import FRAMES, fact, frame_texts, monitored, permuted, run, several

FEW = settings(max_examples=8, deadline=None)


def numbers(*runs: Compared) -> dict[str, Measure]:
    return measures(in_common(runs))


def slow_monitor(known: Monitored, relation: int) -> float | None:
    """The formula of one relation, fact by fact."""
    at = [c for c in np.flatnonzero(known.counted()) if known.relation[c] == relation]
    ones = np.array(at, dtype=np.int64)
    whole = combined(known.pfd()[ones], known.ird()[ones], known.alphas)
    total = float(known.anchors()[ones].sum())
    return float(whole.sum()) / total if total > 0 else None


def same(one: Estimate, other: Estimate) -> None:
    """Whether two estimates agree in everything."""
    assert one.n == other.n
    for a, b in ((one.value, other.value), (one.low, other.low), (one.high, other.high)):
        assert a == pytest.approx(b, abs=1e-12)


def test_numbers_are_those_of_the_formulas_relation_by_relation() -> None:
    known = monitored(1, (7, 5))
    found = numbers(run("a", known), run("b", monitored(2, (7, 5))))
    slow = [slow_monitor(known, r) for r in (0, 1)]
    assert found["monitor"].values[0] == pytest.approx(slow)
    assert found["monitor"].mean(0).value == pytest.approx(np.mean([s for s in slow if s]))
    assert found["monitor"].mean(0).n == int(known.counted().sum())
    own = known.valid["exact"] & (known.relation == 1)
    assert found["anchor_probability"].cell(0, 1).value == pytest.approx(
        known.anchors()[own].mean()
    )
    assert found["anchor_rate"].cell(0, 1).value == pytest.approx(own.sum() / 5)
    assert found["solid_anchors"].cell(0, 1).value == pytest.approx(
        (known.anchors()[own] > 0.8).mean()
    )
    table = np.stack([known.right[c][1:] for c in np.flatnonzero(known.relation == 1)])
    accuracies = table.mean(axis=0)
    for name, expected in {
        "avg": accuracies.mean(),
        "max": accuracies.max(),
        "min": accuracies.min(),
        "base": accuracies[0],
        "stdev": accuracies.std(ddof=1),
    }.items():
        assert found[f"prompt_accuracy.{name}"].cell(0, 1).value == pytest.approx(expected), name


def test_a_prompt_that_some_facts_lack_counts_where_it_was_asked() -> None:
    known = monitored(3, (2,))
    right = (
        np.array([1, 1, 0, 0, 0, 0, 1, 1, 1], np.bool_),
        np.array([0, 1, 0, 0, 0, 0, 1, 0], np.bool_),
    )
    short = replace(
        known,
        right=right,
        misled=(known.misled[0], known.misled[1][:2]),
        wrong=(("x", "y", "z"), ("x", "y")),
        valid={"exact": np.array([True, True])},
    )  # fmt: skip
    found = numbers(run("a", short), run("b", short))
    # base 1, other frames 0, wrong names 1, 1/2 and, of one fact, 1
    assert found["prompt_accuracy.avg"].cell(0, 0).value == pytest.approx((1 + 1 + 0.5 + 1) / 8)
    slow = slow_monitor(short, 0)
    assert found["monitor"].cell(0, 0).value == pytest.approx(slow)


def test_facts_that_one_run_lacks_are_left_out_of_all() -> None:
    wide, narrow = monitored(1, (4, 3)), monitored(2, (4,))
    found = in_common([run("wide", wide), run("narrow", narrow)])
    assert [r.id for r in found.relations] == ["R0"]
    assert found.left_out == {"wide": 3, "narrow": 0}
    assert [f.id for f in found.monitored[0].facts] == ["f0", "f1", "f2", "f3"]
    stranger = replace(narrow, facts=tuple(fact(c, 0) for c in range(90, 94)))
    with pytest.raises(UsageError, match="share no fact"):
        in_common([run("wide", wide), run("stranger", stranger)])


def test_abstentions_stay_with_their_facts_when_runs_share_only_some() -> None:
    wide = monitored(1, (4, 3))
    silent = tuple(np.arange(len(said)) == c for c, said in enumerate(wide.said))
    shifted = replace(monitored(2, (4,)), facts=wide.facts[3:], relation=np.array([0, 1, 1, 1]),
                      relations=wide.relations, frames=wide.frames)  # fmt: skip
    shared = in_common([run("wide", replace(wide, abstained=silent)), run("shifted", shifted)])
    chosen = shared.monitored[0]
    assert len(chosen.abstained) == len(chosen.facts) == 4
    for each, own in zip(chosen.facts, chosen.abstained, strict=True):
        assert own.tolist() == silent[wide.facts.index(each)].tolist()
    assert shared.monitored[1].abstained == ()


def test_relations_may_stand_in_another_order_in_another_run() -> None:
    known = monitored(1, (4, 3))
    turned = replace(
        known,
        relations=known.relations[::-1],
        frames=known.frames[::-1],
        relation=1 - known.relation,
    )
    shared = in_common([run("a", known), run("b", turned)])
    assert shared.monitored[1].relation.tolist() == shared.owners.tolist()
    assert [t[0].id for t in shared.monitored[1].frames] == ["R0-0", "R1-0"]
    found = measures(shared)
    for measure in found.values():
        assert measure.values[0] == pytest.approx(measure.values[1], nan_ok=True)


@given(several(), st.randoms(use_true_random=False))
@FEW
def test_the_order_of_facts_changes_nothing(runs: list[Compared], random: object) -> None:
    order = list(range(len(runs[0].monitored.facts if runs[0].monitored else ())))
    random.shuffle(order)  # type: ignore[attr-defined]
    moved = [replace(r, monitored=permuted(r.monitored, order)) for r in runs if r.monitored]
    first, second = (measures(in_common(these)) for these in (runs, moved))
    for name, measure in first.items():
        for i in range(len(runs)):
            same(measure.mean(i), second[name].mean(i))


@given(several(runs=2))
@FEW
def test_identical_runs_differ_by_nothing(runs: list[Compared]) -> None:
    twins = [runs[0], replace(runs[0], name="twin"), runs[1]]
    found = in_common(twins)
    made = measures(found)
    for measure in made.values():
        difference = measure.difference(0, 1)
        assert difference.value in (None, 0.0)
        if not measure.share:
            assert difference.low in (None, 0.0) and difference.high in (None, 0.0)
    assert (0, 1) in equals(found, made)
    compared = reliability(twins, Reading()).estimates
    assert compared["monitor_same_facts.runs.r0.minus.twin"].value in (None, 0.0)
    assert compared["base_accuracy.runs.r0.minus.twin"].value == 0


@given(several())
@FEW
def test_every_interval_holds_its_value_and_shares_stay_shares(runs: list[Compared]) -> None:
    made = numbers(*runs)
    for name, measure in made.items():
        for i in range(len(runs)):
            e = measure.mean(i)
            if e.value is None:
                assert e == Estimate.not_measured()
                continue
            assert e.n > 0
            if e.low is not None and e.high is not None:
                assert e.low <= e.value + 1e-12 and e.value <= e.high + 1e-12
            if measure.share:
                assert e.low is not None and e.high is not None, name
                assert e.low >= 0 and e.high <= 1


@given(several())
@FEW
def test_all_frames_as_a_subset_are_the_full_number(runs: list[Compared]) -> None:
    found = in_common(runs)
    full = measures(found)["monitor"]
    for name in ("first", "draw_1"):
        made = monitor_from(found, FRAMES, name, seed=0)
        assert made.rows == pytest.approx(full.rows, nan_ok=True)
        assert made.n.tolist() == full.n.tolist()
    assert ablation(found, Reading(frames=FRAMES)) == (FRAMES, {}), "nothing to compare"


def test_a_relation_with_few_frames_keeps_them_all() -> None:
    few = (frame_texts(0, 2), frame_texts(1, 5))
    runs = []
    for seed in range(3):
        known = replace(monitored(seed, (4, 4)), frames=few)
        cut = tuple(
            f[:2] if r == 0 else f for f, r in zip(known.framed, known.relation, strict=True)
        )
        right = tuple(
            np.delete(x, slice(3, 6)) if r == 0 else x
            for x, r in zip(known.right, known.relation, strict=True)
        )
        runs.append(run(f"r{seed}", replace(known, framed=cut, right=right)))
    found = in_common(runs)
    full = measures(found)["monitor"]
    for monitor in ablation(found, Reading(frames=3, subsets=1))[1].values():
        assert monitor.values[:, 0] == pytest.approx(full.values[:, 0], nan_ok=True)
        assert not np.allclose(monitor.values[:, 1], full.values[:, 1])


def test_a_subset_is_the_formula_with_these_frames() -> None:
    known = monitored(5, (6,))
    reading = Reading(frames=2, subsets=3, seed=4)
    found = reliability([run("a", known), run("b", monitored(6, (6,)))], reading)
    for subset, monitor in found.subsets.items():
        keep = chosen(known.frames[0], 2, subset.removeprefix("frames."), 4, "R0")
        assert len(keep) == 2 and keep == sorted(keep)
        kept = known.counted()
        whole = combined(known.pfd(keep), known.ird(), known.alphas)[kept].sum()
        expected = whole / known.anchors()[kept].sum()
        assert monitor.cell(0, 0).value == pytest.approx(expected)
        less = expected - (slow_monitor(known, 0) or 0.0)
        assert found.estimates[f"{subset}.minus_all.run.a"].value == pytest.approx(less)
    assert chosen(known.frames[0], 2, "first", 4, "R0") == [0, 1]
    drawn = {tuple(chosen(known.frames[0], 2, f"draw_{k}", 4, "R0")) for k in range(20)}
    assert len(drawn) > 3


def test_draws_of_frames_depend_on_their_ids_and_not_on_their_places() -> None:
    own = frame_texts(0, 6)
    first = {own[j].id for j in chosen(own, 3, "draw_1", 0, "R0")}
    turned = own[::-1]
    assert {turned[j].id for j in chosen(turned, 3, "draw_1", 0, "R0")} == first


def test_a_number_correlates_with_itself_perfectly_and_with_its_opposite_too() -> None:
    runs = [run(f"r{i}", monitored(i, (5, 5), noise=0.2 * (i + 1))) for i in range(4)]
    monitor = measures(in_common(runs))["monitor"]
    for ranked in (False, True):
        itself = linked(monitor.means(), monitor.means(), ranked)
        assert itself.r.value == pytest.approx(1) and itself.r.n == 4
        assert itself.r.low is None and itself.p == pytest.approx(0, abs=1e-6)
        assert linked(monitor.means(), -monitor.means(), ranked).r.value == pytest.approx(-1)


def test_fewer_than_three_runs_with_monitor_have_no_correlation() -> None:
    two = [run(f"r{i}", monitored(i)) for i in range(2)]
    without = run("none", monitored(9, valid=0.0))
    for runs in (two, [*two, without]):
        made = numbers(*runs)
        assert linked(made["monitor"].means(), made["prompt_accuracy.avg"].means()).r.value is None


def test_a_relation_without_anchors_is_not_measured() -> None:
    known = monitored(1, (4, 4))
    late = replace(known, valid={"exact": known.relation == 1})
    found = in_common(
        [run("a", late), run("b", replace(known, valid={"exact": known.relation >= 0}))]
    )
    monitor = measures(found)["monitor"]
    assert monitor.cell(0, 0) == Estimate.not_measured()
    assert monitor.measured(0).tolist() == [1] and monitor.measured(1).tolist() == [0, 1]
    assert monitor.mean(0).value == monitor.cell(0, 1).value
    # two runs are compared where both have it
    expected = monitor.values[0, 1] - monitor.values[1, 1]
    assert monitor.difference(0, 1).value == pytest.approx(expected)
    assert monitor.difference(1, 0).value == pytest.approx(-expected)


def test_runs_that_base_accuracy_tells_apart_are_no_pair() -> None:
    weak, strong = (monitored(1, (30,), knows=k) for k in (0.0, 1.0))
    other = monitored(2, (30,), knows=1.0, noise=0.9)
    found = reliability([run("weak", weak), run("strong", strong), run("other", other)], Reading())
    assert found.equals == [("strong", "other")], "the lower MONITOR first"
    base, monitor = (
        found.estimates[f"{number}.runs.strong.minus.other"]
        for number in ("base_accuracy", "monitor")
    )
    assert base.value == 0 and (base.low or 0) < 0 < (base.high or 0)
    assert (monitor.value or 0) < 0 and (monitor.high or 0) < 0


def test_two_runs_that_are_told_apart_leave_no_pair() -> None:
    weak, strong = (monitored(1, (30,), knows=k) for k in (0.0, 1.0))
    found = in_common([run("weak", weak), run("strong", strong)])
    assert equals(found, measures(found)) == []


def test_the_difference_on_the_same_facts_takes_those_valid_in_both() -> None:
    one, other = monitored(1, (6,), valid=1.0), monitored(2, (6,), valid=1.0)
    cut = replace(other, valid={"exact": np.array([True] * 3 + [False] * 3)})
    found = in_common([run("a", one), run("b", cut)])
    made = on_shared_anchors(found, [(0, 1)], seed=0)
    only = replace(one, valid={"exact": np.array([True] * 3 + [False] * 3)})
    assert made.values[:, 0] == pytest.approx([slow_monitor(only, 0), slow_monitor(cut, 0)])
    assert made.n.tolist() == [[3], [3]]


def test_the_most_disputed_facts_are_valid_in_all_runs() -> None:
    one, other = monitored(1, (8,), valid=1.0, noise=0.1), monitored(2, (8,), noise=0.9, valid=0.5)
    found = in_common([run("a", one), run("b", other)])
    facts = most_disputed(found, 3)
    off = [
        abs(a - b) for a, b in zip(*(combined(k.pfd(), k.ird()) for k in (one, other)), strict=True)
    ]
    there = [c for c in range(8) if other.valid["exact"][c]]
    assert facts == sorted(there, key=lambda c: -off[c])[:3]
    *_, lowest, frame, misled, _, name = fact_row(found, facts[0], 1)
    assert lowest == pytest.approx(other.framed[facts[0]].mean(axis=1).min())
    assert misled == pytest.approx(other.misled[facts[0]].mean())
    assert str(name).startswith("no") and str(frame).startswith("Which")


def test_a_fact_without_wrong_names_is_shown_and_does_not_count() -> None:
    known = monitored(1, (3,), valid=1.0)
    bare = replace(
        known,
        misled=(known.misled[0][:0], *known.misled[1:]),
        wrong=((), *known.wrong[1:]),
        right=(known.right[0][: 1 + FRAMES], *known.right[1:]),
    )
    found = in_common([run("a", bare), run("b", known)])
    assert measures(found)["monitor"].n.tolist() == [[2], [3]]
    assert fact_row(found, 0, 0)[-3:] == (None, None, None)
    assert 0 not in most_disputed(found, 3)


def test_one_subject_has_no_interval() -> None:
    made = numbers(run("a", monitored(1, (1,), valid=1.0)), run("b", monitored(2, (1,), valid=1.0)))
    assert made["monitor"].mean(0).value is not None and made["monitor"].mean(0).low is None
    assert made["monitor"].difference(0, 1).low is None


def test_everything_is_found_by_the_reading_that_is_asked_for() -> None:
    runs = [run(f"r{i}", monitored(i)) for i in range(3)]
    found = reliability(runs, Reading(frames=2, subsets=1))
    assert list(found.subsets) == ["frames.first", "frames.draw_1"]
    assert found.estimates["monitor_accuracy.pearson"].n == 3
    assert found.estimates["monitor_accuracy.relation.R1.pearson"].n == 3
