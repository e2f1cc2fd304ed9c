"""Verdicts on simulated models: equal ones are rarely called different, others usually are."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from benchmarks.verdict import called_different, many_runs, simulated
from sonde.compare.pairwise import CORRECT, differences, leaderboard


def test_equal_models_are_rarely_called_different() -> None:
    assert called_different(80, 0.0, clusters=100) <= 0.075


def test_a_difference_of_ten_points_is_found() -> None:
    assert called_different(20, 0.1) >= 0.8


def test_one_better_run_is_found_among_many() -> None:
    aligned = many_runs(6, 2_000)
    found = differences(aligned, CORRECT, combinations(aligned.names, 2))
    significant = {frozenset((d.first, d.reference)) for d in found if d.significant}
    assert significant == {frozenset((f"run {n}", "best")) for n in range(5)}
    board = leaderboard(aligned, CORRECT)
    assert board.ranks.pop("best") == (1, 1) and set(board.ranks.values()) == {(2, 6)}


def test_p_is_small_enough_for_a_thousand_pairs() -> None:
    aligned = many_runs(2, 20_000)
    [d] = differences(aligned, CORRECT, [("best", "run 0")])
    assert 1176 * (d.estimate.p or 1.0) < 0.05


def test_intervals_of_many_runs_are_wider_and_ranks_agree_with_p() -> None:
    aligned = many_runs(6, 400)
    board = leaderboard(aligned, CORRECT)
    pair = simulated(
        {n: aligned.conditions[n].results.rows["correct"].to_numpy() for n in ("best", "run 0")},
        200,
    )
    alone = leaderboard(pair, CORRECT)
    for name, e in alone.values.items():
        of_many = board.values[name]
        assert e.value == pytest.approx(of_many.value)
        assert (of_many.high or 0) - (of_many.low or 0) > (e.high or 0) - (e.low or 0)
    low, high, p = (getattr(board.lead.estimate, k) for k in ("low", "high", "p"))
    assert (p < 0.05) == (low > 0 or high < 0)
    first, second = list(board.values)[:2]
    assert (board.ranks[first] == (1, 1)) <= (p < 0.05), second


def test_perfect_and_useless_runs_differ_without_any_spread() -> None:
    n = 40
    answers = {"all": np.ones(n, bool), "none": np.zeros(n, bool), "half": np.arange(n) % 4 < 2}
    board = leaderboard(simulated(answers, n // 2), CORRECT)
    assert board.ranks == {"all": (1, 1), "half": (2, 2), "none": (3, 3)}
    assert all((e.low or 0) < (e.high or 0) for e in board.values.values())
