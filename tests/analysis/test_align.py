"""Runs are compared on the prompts they share; what cannot be compared is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from polars import DataFrame

from sonde.analysis.joins import align
from sonde.core.errors import UsageError
from tests.analysis.world import changed, judged, run
from tests.grids import grid, one_relation, shuffled

TWO_BY_TWO = run("a", [[[0], [1]], [[1], [0]]])


def test_the_same_prompts_stay_as_they_are_in_whatever_order_they_come() -> None:
    mixed = changed(replace(TWO_BY_TWO, name="b"), grid=shuffled(TWO_BY_TWO.judged.grid, 1))
    found = align([TWO_BY_TWO, mixed])
    assert set(found.left_out.values()) == {0}
    for made in found.runs:
        for column in ("pair", "template", "name", "right", "answer"):
            left, right = getattr(made.judged.grid, column), getattr(TWO_BY_TWO.judged.grid, column)
            assert np.array_equal(left, right)


def test_prompts_of_one_run_alone_are_left_out_and_counted() -> None:
    wide = run("wide", [[[0, 1], [0]], [[0], [0]], [[0], [0]]])
    found = align([wide, TWO_BY_TWO])
    assert found.left_out == {"wide": 3, "a": 0}
    assert found.first.pairs == ("f0", "f1")
    assert found.first.grid.right.tolist() == [True] * 4


def test_things_are_matched_by_what_they_are_called_not_by_their_numbers() -> None:
    facts = judged(one_relation([[[0], [1]], [[1], [1]]]))
    swapped = replace(facts, pairs=("f1", "f0"), templates=facts.templates[::-1])
    found = align([TWO_BY_TWO, replace(TWO_BY_TWO, name="b", judged=swapped)])
    # its only right answer is about f1 under t1
    assert found.runs[1].judged.grid.right.tolist() == [False, False, False, True]
    assert found.runs[1].judged.pairs == ("f0", "f1")


def test_columns_beside_the_grid_follow_their_prompts() -> None:
    words = np.array([1, 2, 3, 4])
    mixed = changed(
        replace(TWO_BY_TWO, name="b"),
        grid=TWO_BY_TWO.judged.grid.rows(np.array([3, 2, 1, 0])),
        words=words[::-1],
    )
    found = align([run("less", [[[0], [1]]]), mixed])
    assert found.runs[1].judged.words is not None
    assert found.runs[1].judged.words.tolist() == [1, 2]
    assert found.runs[0].judged.words is None


def test_relations_that_are_left_over_are_counted_anew() -> None:
    rows = [(0, 0, 0, True, 0), (1, 1, 0, True, 0)]
    two = run("two", grid(rows, [0, 1], [0, 1]))
    second = run("second", grid(rows[1:], [0, 1], [0, 1]))
    found = align([two, second]).first
    assert [r.id for r in found.relations] == ["R1"]
    assert found.grid.relations.tolist() == found.grid.template_relations.tolist() == [0]


def test_one_run_is_refused() -> None:
    with pytest.raises(UsageError, match="at least two runs"):
        align([TWO_BY_TWO])


def about(**gold: list[str]) -> DataFrame:
    """What pairs are about: their ids, a subject of their own, what is right of each."""
    rows = {"fact": list(gold), "subject": list(gold), "gold": list(gold.values())}
    return DataFrame({**rows, "date": [""] * len(gold)})


def test_in_different_datasets_facts_are_the_same_by_what_they_say() -> None:
    here = replace(TWO_BY_TWO, facts=about(f0=["Rome", "Paris"], f1=["Oslo"]))
    there = replace(
        TWO_BY_TWO, name="b", dataset="e", facts=about(f0=["Paris", "Rome"], f1=["Bern"])
    )
    found = align([here, there])
    assert found.first.pairs == ("f0",), "the other has another answer"
    assert found.left_out == {"a": 2, "b": 2}


def test_different_datasets_without_a_common_fact_are_refused_naming_both() -> None:
    other = replace(TWO_BY_TWO, name="b", dataset="e")
    with pytest.raises(UsageError, match="share no fact: they were asked d and e"):
        align([TWO_BY_TWO, other])


def test_runs_that_share_no_fact_are_refused() -> None:
    elsewhere = changed(replace(TWO_BY_TWO, name="b"), pairs=("f8", "f9"))
    with pytest.raises(UsageError, match="share no fact"):
        align([TWO_BY_TWO, elsewhere])


def test_a_run_without_a_judged_prompt_is_refused() -> None:
    with pytest.raises(UsageError, match="'empty' has no prompt that could be judged"):
        align([TWO_BY_TWO, run("empty", grid([], [0], [0]))])


def test_two_runs_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="the same name"):
        align([TWO_BY_TWO, TWO_BY_TWO])


def test_names_of_subjects_follow_their_pairs() -> None:
    names = (("Ann",), ("Bea",))
    first = changed(TWO_BY_TWO, names=names)
    second = changed(run("second", grid([(1, 0, 0, True, 0)], [0, 0], [0, 0])), names=names)
    found = align([first, second])
    assert found.first.pairs == ("f1",)
    assert found.runs[1].judged.frame()["name"].to_list() == ["Bea"]
