"""Accuracy by relation: whose pairs count how much, in which order things are shown."""

from __future__ import annotations

from dataclasses import replace
from statistics import stdev

import pytest
from hypothesis import given

from sonde.analysis.comparison.numbers import accuracies, compare, paired, run_order
from sonde.analysis.comparison.tables import extremes
from sonde.analysis.joins import align
from sonde.analysis.runs import Compared, Lineage, Reading
from sonde.core.reports import Estimate
from tests.analysis.world import asked, run, several
from tests.grids import measured

# three relations of 4, 2 and 1 pairs
GOOD = asked("good", [[1, 1, 1, 0], [1, 0], [0]])
POOR = asked("poor", [[1, 0, 0, 0], [1, 1], [0]])


def found(*runs: Compared) -> dict[str, Estimate]:
    return dict(accuracies(align(runs)))


def values(estimates: dict[str, Estimate], *names: str) -> list[float | None]:
    return [estimates[f"accuracy.{name}"].value for name in names]


def test_every_relation_counts_the_same_in_a_runs_accuracy() -> None:
    estimates = found(GOOD, POOR)
    for name, expected in (("good", [0.75, 0.5, 0]), ("poor", [0.25, 1, 0])):
        of_relations = values(estimates, *(f"relation.R{r}.run.{name}" for r in range(3)))
        assert of_relations == expected
        mean, spread = (
            estimates[f"accuracy.{number}_over_relations.run.{name}"]
            for number in ("mean", "stdev")
        )
        assert mean.value == pytest.approx(sum(expected) / 3) and mean.n == 7
        assert spread.value == pytest.approx(stdev(expected)) and spread.n == 3


def test_relations_are_ordered_by_their_mean_over_runs() -> None:
    assert values(found(GOOD, POOR), "relation.R0", "relation.R1", "relation.R2") == [0.5, 0.75, 0]
    assert compare(align([GOOD, POOR]), Reading(draws=100)).relations == ["R1", "R0", "R2"]


def test_a_pair_counts_by_the_share_of_its_prompts_that_are_right() -> None:
    # one pair right in three of four prompts, one in one of four
    many = run("many", [[[0, 0], [0, 1]], [[1, 1], [1, 0]]])
    estimates = found(many, replace(many, name="twin"))
    assert values(estimates, "mean_over_relations.run.many") == [0.5]


def test_one_relation_has_no_standard_deviation() -> None:
    one = asked("one", [[1, 0]])
    estimates = found(one, replace(one, name="two"))
    assert estimates["accuracy.stdev_over_relations.run.one"] == Estimate.not_measured()


def test_a_difference_is_paired_and_changes_sign_with_the_order() -> None:
    both = align([GOOD, POOR])
    there, back = paired(both, "good", "poor"), paired(both, "poor", "good")
    # pairs: +1 twice in the first relation, -1 once in the second
    assert there.mean_over_facts().value == pytest.approx((2 - 1) / 7)
    assert there.mean_over_relations().value == pytest.approx((0.5 - 0.5 + 0) / 3)
    assert back.mean_over_facts().value == pytest.approx(-1 / 7)
    same = paired(both, "good", "good").mean_over_facts()
    assert same.value == 0 and same.low is not None and same.low <= 0


def test_a_paired_interval_is_narrower_than_two_apart_where_runs_err_on_the_same_pairs() -> None:
    hard = [1, 0] * 30
    first, second = asked("a", [hard, hard]), asked("b", [[*hard[:-2], 0, 0], hard])
    both = align([first, second])
    difference = paired(both, "a", "b").mean_over_facts()
    alone = dict(accuracies(both))["accuracy.mean_over_relations.run.a"]
    assert difference.low is not None and difference.high is not None
    assert alone.low is not None and alone.high is not None
    assert difference.high - difference.low < (alone.high - alone.low) / 2


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
    shares = {
        "huge": 0.9, "f7": 0.5, "g6": 0.6, "alone": 0.55,
        "other": 0.1, "h-good": 0.7, "h-poor": 0.2,
    }  # fmt: skip
    names = list(models)
    shown = ["h-good", "h-poor", "g6", "alone", "huge", "f7", "other"]
    for order in (names, names[::-1]):
        places = run_order([models[n] for n in order], [shares[n] for n in order])
        assert [order[i] for i in places] == shown


def test_the_best_and_worst_relations_never_overlap_and_ties_go_by_name() -> None:
    assert extremes({"d": 0.5, "c": 0.5, "b": 0.5, "a": 0.1}) == (["b", "c"], ["d", "a"])
    rising = {name: k / 10 for k, name in enumerate("abcdefghi")}
    assert extremes(rising) == (["i", "h", "g"], ["c", "b", "a"])
    assert extremes({"a": 0.5}) == ([], [])


@given(several())
def test_the_order_of_runs_changes_no_value(runs: list[Compared]) -> None:
    one, other = found(*runs), found(*runs[::-1])
    assert one.keys() == other.keys()
    for name, estimate in one.items():
        assert estimate.value == pytest.approx(other[name].value)
        if ".run." in name:
            assert estimate == other[name]
        if ".stdev" in name:
            assert estimate.value is None or 0 <= estimate.value <= 0.5 * 2**0.5 + 1e-9
        else:
            low, value, high = measured(estimate)
            assert 0 <= low <= value <= high <= 1
