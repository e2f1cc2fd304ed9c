"""Accuracy by relation: whose pairs count how much, in which order things are shown."""

from __future__ import annotations

from dataclasses import replace
from statistics import stdev

import numpy as np
import pytest
from hypothesis import given, settings

from sonde.analysis.comparison.numbers import (
    ByRelation,
    by_relation,
    differences,
    extremes,
    run_order,
)
from sonde.analysis.runs import Compared, Lineage, align
from sonde.core.reports import Estimate
from tests.analysis.world import asked, run, several

# three relations of 4, 2 and 1 pairs
GOOD = asked("good", [[1, 1, 1, 0], [1, 0], [0]])
POOR = asked("poor", [[1, 0, 0, 0], [1, 1], [0]])


def values(estimates: tuple[Estimate, ...]) -> list[float | None]:
    return [e.value for e in estimates]


def test_every_relation_counts_the_same_in_a_runs_accuracy() -> None:
    found = by_relation(align([GOOD, POOR]))
    assert [values(row) for row in found.accuracies] == [[0.75, 0.5, 0], [0.25, 1, 0]]
    assert values(found.mean) == pytest.approx([(0.75 + 0.5) / 3, (0.25 + 1) / 3])
    assert [e.n for e in found.mean] == [7, 7]
    assert values(found.stdev) == pytest.approx([stdev([0.75, 0.5, 0]), stdev([0.25, 1, 0])])
    assert [e.n for e in found.stdev] == [3, 3]


def test_relations_are_ordered_by_their_mean_over_runs() -> None:
    found = by_relation(align([GOOD, POOR]))
    assert values(found.relations) == [0.5, 0.75, 0]
    assert found.best_first == (1, 0, 2)


def test_a_pair_counts_by_the_share_of_its_prompts_that_are_right() -> None:
    # one pair right in three of four prompts, one in one of four
    many = run("many", [[[0, 0], [0, 1]], [[1, 1], [1, 0]]])
    found = by_relation(align([many, replace(many, name="twin")]))
    assert values(found.mean) == [0.5, 0.5]


def test_one_relation_has_no_standard_deviation() -> None:
    one = asked("one", [[1, 0]])
    found = by_relation(align([one, replace(one, name="two")]))
    assert found.stdev == (Estimate.not_measured(),) * 2


def test_a_difference_is_paired_and_changes_sign_with_the_order() -> None:
    both = align([GOOD, POOR])
    there, back = differences(both, 0, 1), differences(both, 1, 0)
    # pairs: +1 twice in the first relation, -1 once in the second
    assert there.mean_over_facts().value == pytest.approx((2 - 1) / 7)
    assert there.mean_over_relations().value == pytest.approx((0.5 - 0.5 + 0) / 3)
    assert back.mean_over_facts().value == pytest.approx(-1 / 7)
    same = differences(both, 0, 0).mean_over_facts()
    assert same.value == 0 and same.low is not None and same.low <= 0


def test_a_paired_interval_is_narrower_than_two_apart_where_runs_err_on_the_same_pairs() -> None:
    hard = [1, 0] * 30
    first, second = asked("a", [hard, hard]), asked("b", [[*hard[:-2], 0, 0], hard])
    both = align([first, second])
    paired = differences(both, 0, 1).mean_over_facts()
    alone = by_relation(both).mean[0]
    assert paired.low is not None and paired.high is not None
    assert alone.low is not None and alone.high is not None
    assert paired.high - paired.low < (alone.high - alone.low) / 2


def test_families_stand_together_by_their_model_of_about_seven_billion() -> None:
    models = {
        "huge": Lineage(model="huge", family="f", size=70_000_000_000),
        "f7": Lineage(model="f7", family="f", size=7_200_000_000),
        "g6": Lineage(model="g6", family="g", size=6_000_000_000),
        "alone": Lineage(model="alone"),
        "other": Lineage(model="other"),
        "h-good": Lineage(model="h-good", family="h"),
        "h-poor": Lineage(model="h-poor", family="h"),
    }
    accuracies = {
        "huge": 0.9, "f7": 0.5, "g6": 0.6, "alone": 0.55,
        "other": 0.1, "h-good": 0.7, "h-poor": 0.2,
    }  # fmt: skip
    names = list(models)
    shown = ["h-good", "h-poor", "g6", "alone", "huge", "f7", "other"]
    for order in (names, names[::-1]):
        found = run_order([models[n] for n in order], [accuracies[n] for n in order])
        assert [order[i] for i in found] == shown


def test_the_best_and_worst_relations_never_overlap_and_ties_go_by_name() -> None:
    best, worst = extremes(np.array([0.5, 0.5, 0.5, 0.1]), ["d", "c", "b", "a"])
    assert (best.tolist(), worst.tolist()) == ([2, 1], [0, 3])
    best, worst = extremes(np.arange(9) / 10, list("abcdefghi"))
    assert (best.tolist(), worst.tolist()) == ([8, 7, 6], [2, 1, 0])
    assert [x.tolist() for x in extremes(np.array([0.5]), ["a"])] == [[], []]


@settings(max_examples=30, deadline=None)
@given(several())
def test_the_order_of_runs_changes_no_value(runs: list[Compared]) -> None:
    one, other = by_relation(align(runs)), by_relation(align(runs[::-1]))
    assert one.accuracies == other.accuracies[::-1]
    assert one.mean == other.mean[::-1] and one.stdev == other.stdev[::-1]
    assert one.best_first == other.best_first
    assert values(one.relations) == pytest.approx(values(other.relations))
    _within_bounds(one)


def _within_bounds(found: ByRelation) -> None:
    for estimate in [e for row in found.accuracies for e in row] + list(found.mean):
        assert estimate.low is not None and estimate.value is not None
        assert estimate.high is not None
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
    for spread in found.stdev:
        assert spread.value is None or 0 <= spread.value <= 0.5 * 2**0.5 + 1e-9
