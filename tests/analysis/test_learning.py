"""What runs may have learnt from training facts: majority, easy and hard, and where gains are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.analysis.learning.facts import Learning, learning, together
from sonde.analysis.learning.numbers import answered_too_often, drawn_facts, elicited, numbers
from sonde.core.errors import UsageError
from sonde.core.reports import Estimate
from sonde.metrics.estimates import FACTS, RELATIONS
from tests.analysis.lessons import lesson, method, world, worlds
from tests.grids import measured

OBJECTS = [["a", "a", "b", "c"], ["d", "e"]]
TRAINED = [{"a": 3, "b": 1}, {"e": 2}]
RUNS = {
    "manual": [["a", "b", "b", "b"], ["e", "d"]],
    "opti": [["a", "a", "a", "a"], ["d", "e"]],
    "nb": [["a", "a", "a", "b"], ["e", "e"]],
}
FOUND = world(OBJECTS, RUNS, TRAINED, ["nb"])
NUMBERS = numbers(FOUND, 0)

few = settings(max_examples=12, deadline=None)


def value(name: str, estimates: dict[str, Estimate] | None = None) -> float | None:
    return (estimates or NUMBERS)[name].value


def test_accuracy_is_the_share_right_by_relation_type_and_in_all() -> None:
    assert value("accuracy.relation.R0.run.manual") == 0.5
    assert value("accuracy.type.1-1.run.manual") == 0.5
    assert value("accuracy.type.N-1.run.manual") == 0
    assert value("accuracy.type.N-M.run.manual") is None
    assert value(f"accuracy.{RELATIONS}.run.manual") == 0.25
    assert value(f"accuracy.{FACTS}.run.manual") == 2 / 6
    assert NUMBERS[f"accuracy.{FACTS}.run.manual"].n == 6


def test_the_majority_is_that_of_the_training_facts() -> None:
    assert value("majority.answered.relation.R0.run.opti") == 1
    assert value("majority.right.relation.R0.run.opti") == 0.5
    assert value("majority.answered.relation.R1.run.manual") == 0.5
    assert value("majority.right.relation.R1.run.manual") == 0
    assert value("majority.train.relation.R0") == 0.75
    assert value("majority.test.relation.R0") == 0.5
    assert value("majority.share_of_right.run.opti") == 3 / 4


def test_easy_is_what_the_named_runs_answer() -> None:
    assert FOUND.split["easy"].to_list() == [True, True, False, False, False, True]
    assert value(f"easy.accuracy.{FACTS}.run.opti") == 1
    assert value(f"hard.accuracy.{FACTS}.run.opti") == 1 / 3
    assert value("easy.share_of_right.run.opti") == 3 / 4


def test_what_runs_answer_that_know_the_training_facts_alone_is_easy() -> None:
    known = {f"R{i}": lesson(i, own, TRAINED[i]) for i, own in enumerate(OBJECTS)}
    kinds = {"nb": "naive Bayes", "manual": ""}
    runs = [method(n, OBJECTS, a, taught=kinds.get(n, "")) for n, a in RUNS.items()]
    assert learning(runs, known).easy == ("nb",)
    assert learning(runs, known, ["opti"]).easy == ("opti",)


def test_a_gain_is_paired_and_has_its_place() -> None:
    assert value(f"gain.{FACTS}.run.opti") == pytest.approx(2 / 6)
    assert value(f"gain.part.easy.{FACTS}.run.opti") == pytest.approx(2 / 6)
    assert value(f"gain.part.hard.{FACTS}.run.opti") == pytest.approx(0)
    assert not any(name.startswith("gain.") and name.endswith("run.manual") for name in NUMBERS)
    # two facts more right of six may be chance: no share of a gain
    assert value("gain.share.easy.run.opti") is None


def test_the_share_of_a_clear_gain_is_measured() -> None:
    n = 40
    objects = [["b"] * n]
    runs = {
        "manual": [["x"] * n],
        "opti": [["b"] * 30 + ["x"] * 10],
        "nb": [["b"] * 20 + ["y"] * 20],
    }
    found = numbers(world(objects, runs, [{"z": 1}], ["nb"]), 0)
    share = found["gain.share.easy.run.opti"]
    assert share.value == pytest.approx(2 / 3) and share.n == 30
    assert share.low is not None and 0.4 < share.low < 2 / 3
    assert value("gain.share.hard.run.opti", found) == pytest.approx(1 / 3)


@given(worlds())
@few
def test_easy_and_hard_facts_are_all_facts(found: Learning) -> None:
    estimates = numbers(found, 0)
    for name in found.names:
        parts = [estimates[f"{part}.accuracy.{FACTS}.run.{name}"] for part in ("easy", "hard")]
        whole = estimates[f"accuracy.{FACTS}.run.{name}"]
        assert sum(part.n for part in parts) == whole.n
        right = sum((part.value or 0.0) * part.n for part in parts)
        assert right == pytest.approx((whole.value or 0.0) * whole.n)


@given(worlds())
@few
def test_what_decides_easy_is_right_there_together_and_nowhere_else(found: Learning) -> None:
    some = found.split["right m2"] | found.split["right m3"]
    assert some.to_list() == found.split["easy"].to_list()
    estimates = numbers(found, 0)
    for name in found.easy:
        assert not value(f"hard.accuracy.{FACTS}.run.{name}", estimates)


@given(worlds())
@few
def test_the_parts_of_a_gain_add_up(found: Learning) -> None:
    estimates = numbers(found, 0)
    for name in found.names[1:]:
        whole = value(f"gain.{FACTS}.run.{name}", estimates)
        parts = [value(f"gain.part.{p}.{FACTS}.run.{name}", estimates) for p in ("easy", "hard")]
        assert sum(part or 0.0 for part in parts) == pytest.approx(whole)
        if all(lesson.majority for lesson in found.lessons.values()):
            two = [
                value(f"gain.part.{p}.{FACTS}.run.{name}", estimates) for p in ("majority", "other")
            ]
            assert sum(part or 0.0 for part in two) == pytest.approx(whole)
        first, own = (value(f"accuracy.{FACTS}.run.{n}", estimates) for n in ("m0", name))
        assert whole == pytest.approx((own or 0.0) - (first or 0.0))


@given(worlds())
@few
def test_every_estimate_lies_in_its_interval_and_has_an_n(found: Learning) -> None:
    for name, estimate in numbers(found, 0).items():
        if estimate.value is None:
            assert estimate.n == 0, name
            continue
        assert estimate.n > 0, name
        if estimate.low is not None:
            low, value, high = measured(estimate)
            assert low <= value <= high, name


@given(worlds(), st.integers(0, 9))
@few
def test_the_order_of_answers_and_of_other_runs_changes_nothing(found: Learning, seed: int) -> None:
    rng = np.random.default_rng(seed)
    mixed = [
        replace(m, judged=m.judged.rows(rng.permutation(len(m.judged.grid)))) for m in found.methods
    ]
    mixed = [mixed[0], *(mixed[1:][i] for i in rng.permutation(3))]
    other = learning(mixed, found.lessons, ("m3", "m2"))
    assert numbers(other, 0) == numbers(found, 0)
    assert drawn_facts(found, 0) == drawn_facts(other, 0)


def test_without_a_run_that_decides_nothing_is_easy_or_hard() -> None:
    found = world(OBJECTS, RUNS, TRAINED)
    assert not len(found.split)
    estimates = numbers(found, 0)
    assert value(f"easy.accuracy.{FACTS}.run.opti", estimates) is None
    assert value("easy.share.mean_over_facts", estimates) is None
    assert value(f"gain.part.easy.{FACTS}.run.opti", estimates) is None
    assert value(f"gain.{FACTS}.run.opti", estimates) is not None
    assert drawn_facts(found, 0) == []


def test_without_training_facts_there_is_no_majority() -> None:
    estimates = numbers(world(OBJECTS, RUNS, [{}, {}], ["nb"]), 0)
    assert value(f"majority.answered.{RELATIONS}.run.opti", estimates) is None
    assert value(f"majority.train.{RELATIONS}", estimates) is None
    assert value(f"accuracy.{RELATIONS}.run.opti", estimates) is not None


def test_a_run_of_fewer_relations_is_compared_on_these_alone() -> None:
    runs = {**RUNS, "auto": [["a", "a", "b", "c"], ["", ""]]}
    found = world(OBJECTS, runs, TRAINED, ["nb"])
    estimates = numbers(found, 0)
    assert value(f"accuracy.{RELATIONS}.run.auto", estimates) == 1
    assert not any(name.endswith("relation.R1.run.auto") for name in estimates), "it was not asked"
    assert value(f"gain.{RELATIONS}.run.auto", estimates) == 0.5
    assert estimates[f"gain.{FACTS}.run.auto"].n == 4
    assert value(f"accuracy.{RELATIONS}.run.manual", estimates) == 0.25, "the others keep theirs"


def test_a_fact_that_one_run_could_not_judge_counts_in_none() -> None:
    runs = {**RUNS, "nb": [["a", "a", "", "b"], ["e", "e"]]}
    found = world(OBJECTS, runs, TRAINED, ["nb"])
    assert found.frame["relation"].to_list() == ["R0"] * 3 + ["R1"] * 2


def test_a_relation_in_which_what_is_easy_is_not_decided_has_no_split() -> None:
    found = world(OBJECTS, {**RUNS, "nb": [["a", "a", "a", "b"], ["", ""]]}, TRAINED, ["nb"])
    assert set(found.split["relation"]) == {"R0"}
    assert numbers(found, 0)[f"easy.accuracy.{FACTS}.run.opti"].n == 2


def test_runs_of_several_models_are_set_against_their_own_first_run() -> None:
    runs = {f"{name}@{model}": RUNS[name] for model in ("x", "y") for name in ("manual", "opti")}
    found = world(OBJECTS, runs, TRAINED)
    assert [found.base(name) for name in runs] == ["manual@x"] * 2 + ["manual@y"] * 2


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(UsageError, match="no run is called 'bayes'"):
        world(OBJECTS, RUNS, TRAINED, ["bayes"])
    with pytest.raises(UsageError, match="share no fact"):
        world(OBJECTS, {**RUNS, "opti": [[""] * 4, [""] * 2]}, TRAINED)
    twins = [method("m", OBJECTS, RUNS["opti"])] * 2
    with pytest.raises(UsageError, match="the same name"):
        learning(twins, {"R0": lesson(0, OBJECTS[0], {})})


def test_runs_of_other_facts_are_refused() -> None:
    one = {"R0": lesson(0, ["a", "b"], {"a": 1})}
    assert together(one, {"R1": lesson(1, ["c"], {})}, "r").keys() == {"R0", "R1"}
    with pytest.raises(UsageError, match=r"other facts.*'f0-1'"):
        together(one, {"R0": lesson(0, ["a", "c"], {"a": 1})}, "r")
    with pytest.raises(UsageError, match="other training facts of R0"):
        together(one, {"R0": lesson(0, ["a", "b"], {"a": 2})}, "r")


def test_facts_with_the_majority_object_and_those_nobody_knows_are_not_drawn() -> None:
    drawn = drawn_facts(FOUND, 0)
    assert {(d.subset, d.relation, d.sentence) for d in drawn} == {
        ("hard", "R0", "S2 0 b"),
        ("hard", "R1", "S0 1 d"),
    }
    [fact] = [d for d in drawn if d.relation == "R0"]
    assert fact.answers == {"manual": "b ✓", "opti": "a", "nb": "a"}


def test_ten_facts_of_each_kind_are_drawn_by_the_seed() -> None:
    objects = [[f"o{i}" for i in range(40)]]
    half = [f"o{i}" if i % 2 else "x" for i in range(40)]
    found = world(objects, {"manual": objects, "nb": [half]}, [{"z": 1}], ["nb"])
    one, other = drawn_facts(found, 0), drawn_facts(found, 1)
    assert [d.subset for d in one] == ["easy"] * 10 + ["hard"] * 10
    assert one == drawn_facts(found, 0) and one != other


def test_prompts_that_elicit_the_majority_nearly_always_are_told() -> None:
    often = answered_too_often(FOUND, 0)
    assert [(o.run, o.relation, o.object) for o in often if o.majority] == [
        ("nb", "R1", "e"), ("opti", "R0", "a"),
    ]  # fmt: skip
    assert elicited(often, "opti") == ["R0"]
    assert [(o.test, o.train) for o in often if o.run == "opti"] == [(0.5, 0.75)]


def test_other_objects_are_told_where_they_are_clearly_too_many() -> None:
    n = 50
    objects = [["b"] * 10 + ["c"] * 40]
    runs = {"manual": [["b"] * 30 + ["c"] * 20], "opti": [["b"] * 14 + ["c"] * 36]}
    often = answered_too_often(world(objects, runs, [{"z": 1}]), 0)
    assert [(o.run, o.object, o.majority) for o in often] == [("manual", "b", False)]
    assert often[0].answered.n == n and often[0].test == 0.2


def test_runs_that_read_no_prompt_elicit_nothing() -> None:
    known = {f"R{i}": lesson(i, own, TRAINED[i]) for i, own in enumerate(OBJECTS)}
    runs = [method(name, OBJECTS, a, counting=name == "nb") for name, a in RUNS.items()]
    often = answered_too_often(learning(runs, known), 0)
    assert {o.run for o in often} == {"manual", "opti"}, "class prior and naive Bayes always would"
