"""MONITOR's formulas: what they are when one thing moves, and when nothing does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.metrics.distance import EQUAL, Alphas, Ratios, combined, mean_distance, over_prompts

unit = st.floats(0, 1)
probabilities = st.lists(unit, min_size=1, max_size=6)


@st.composite
def columns(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    size = draw(st.integers(1, 8))
    rows = [draw(st.lists(unit, min_size=size, max_size=size)) for _ in range(3)]
    pfd, ird, anchors = (np.array(row) for row in rows)
    return pfd, ird, anchors + 1e-3


def score(
    pfd: np.ndarray, ird: np.ndarray, anchors: np.ndarray, alphas: Alphas = EQUAL
) -> float | None:
    """MONITOR as reports have it, of facts about as many subjects."""
    values = {"r": combined(pfd, ird, alphas)}
    return Ratios(values, {"r": anchors}, {"r": np.arange(len(pfd))}, 0).relation("r").value


@given(columns())
def test_the_first_weight_alone_gives_framing_over_anchors(
    given: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    pfd, ird, anchors = given
    assert score(pfd, ird, anchors, (1, 0, 0)) == pytest.approx(pfd.sum() / anchors.sum())


@given(columns())
def test_the_second_weight_alone_gives_interference_over_anchors(
    given: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    pfd, ird, anchors = given
    assert score(pfd, ird, anchors, (0, 1, 0)) == pytest.approx(ird.sum() / anchors.sum())


@given(columns(), st.tuples(unit, unit, unit))
def test_a_distance_lies_between_the_smaller_and_the_larger_part(
    given: tuple[np.ndarray, np.ndarray, np.ndarray], alphas: Alphas
) -> None:
    pfd, ird, _ = given
    found = combined(pfd, ird, alphas)
    total = np.sqrt(sum(alphas))
    assert (found <= np.maximum(pfd, ird) * total + 1e-12).all()
    assert (found >= np.minimum(pfd, ird) * total - 1e-12).all()


@given(columns())
def test_equal_weights_change_nothing_where_both_parts_are_equal(
    given: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    pfd, _, anchors = given
    assert score(pfd, pfd, anchors, EQUAL) == pytest.approx(pfd.sum() / anchors.sum())


@given(probabilities, st.integers(1, 4))
def test_nothing_that_moves_is_no_distance(anchor: list[float], prompts: int) -> None:
    probabilities = np.array(anchor)
    assert mean_distance(probabilities, np.tile(probabilities, (prompts, 1))) == 0


@given(probabilities, st.data())
def test_a_distance_is_the_mean_over_prompts_of_those_over_tokens(
    anchor: list[float], data: st.DataObject
) -> None:
    size = len(anchor)
    rows = data.draw(st.lists(st.lists(unit, min_size=size, max_size=size), min_size=1, max_size=4))
    expected = sum(
        sum(abs(a - b) for a, b in zip(anchor, row, strict=True)) / size for row in rows
    ) / len(rows)
    assert mean_distance(np.array(anchor), np.array(rows)) == pytest.approx(expected, abs=1e-12)


def test_no_prompt_leaves_a_distance_unknown() -> None:
    assert np.isnan(mean_distance(np.array([0.5]), np.zeros((0, 1))))


def test_anchors_without_probability_leave_the_score_unmeasured() -> None:
    nothing = np.zeros(2)
    assert score(nothing, nothing, nothing) is None
    found = Ratios({"P36": nothing}, {"P36": nothing}, {"P36": np.arange(2)}, 0)
    assert found.relation("P36").value is None
    assert found.mean_over_relations().value is None


def test_a_relation_counts_as_much_as_another_however_many_facts_it_has() -> None:
    values = {"a": np.full(10, 0.2), "b": np.array([0.4, 0.4])}
    weights = {name: np.ones(len(column)) for name, column in values.items()}
    subjects = {name: np.arange(len(column)) for name, column in values.items()}
    found = Ratios(values, weights, subjects, 0).mean_over_relations()
    assert found.value == pytest.approx(0.3)
    assert found.n == 12


def test_one_subject_leaves_a_wide_interval() -> None:
    one = Ratios({"a": np.array([0.2])}, {"a": np.array([0.5])}, {"a": np.zeros(1, np.int64)}, 0)
    found = one.relation("a")
    assert found.value == pytest.approx(0.4)
    assert found.low is not None and found.high is not None
    assert found.low < 0.1 and found.high > 1.5


def test_nothing_that_moves_leaves_an_interval_that_narrows_with_the_facts() -> None:
    def high(facts: int) -> float:
        zero, one = {"a": np.zeros(facts)}, {"a": np.ones(facts)}
        found = Ratios(zero, one, {"a": np.arange(facts)}, 0).relation("a")
        assert (found.value, found.low) == (0, 0)
        return found.high or 0.0

    assert 0 < high(100) < high(10) < 0.5


def test_facts_of_one_subject_are_drawn_together() -> None:
    values = np.array([0.0, 0.0, 1.0, 1.0])
    apart = Ratios({"a": values}, {"a": np.ones(4)}, {"a": np.arange(4)}, 0).draws["a"]
    pairs = {"a": np.array([0, 0, 1, 1])}
    together = Ratios({"a": values}, {"a": np.ones(4)}, pairs, 0).draws["a"]
    assert set(together.tolist()) == {0.0, 0.5, 1.0}
    assert len(set(apart.tolist())) > 3


def test_accuracies_over_prompts_leave_out_what_was_not_asked() -> None:
    found = over_prompts(np.array([[0.5, 1.0, np.nan], [0.25, 0.25, 0.25]]))
    assert {name: column.tolist() for name, column in found.items() if name != "stdev"} == {
        "avg": [0.75, 0.25],
        "max": [1.0, 0.25],
        "min": [0.5, 0.25],
        "base": [0.5, 0.25],
    }
    assert found["stdev"].tolist() == pytest.approx([0.5 / 2**0.5, 0.0])
    assert np.isnan(over_prompts(np.array([[0.5]]))["stdev"]).all()
