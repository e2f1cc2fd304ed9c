"""Judging: ranks, ties and probabilities of single answers."""

from __future__ import annotations

from math import log

from hypothesis import given
from hypothesis import strategies as st

from sonde.core.answers import Filled, Scored
from sonde.core.scores import option_logps
from sonde.metrics.verdicts import judge


def scored(*values: float) -> Scored:
    names = tuple(f"o{i}" for i in range(len(values)))
    return Scored(options=names, logps=tuple((v,) for v in values))


def test_the_likeliest_correct_option_decides() -> None:
    result = judge(scored(-1.0, -2.0, -0.5), {"o0", "o1"})
    assert result.rank == 2
    assert not result.tied


def test_a_tie_with_a_wrong_option_counts_as_wrong() -> None:
    result = judge(scored(-1.0, -1.0), {"o0"})
    assert result.rank == 2
    assert result.tied


def test_correct_options_do_not_rank_against_each_other() -> None:
    assert judge(scored(-1.0, -0.9, -3.0), {"o0", "o1"}).rank == 1


def test_probabilities_of_correct_names_are_pooled() -> None:
    result = judge(scored(log(0.2), log(0.3), log(0.5)), {"o0", "o2"})
    assert result.probability is not None
    assert abs(result.probability - 0.7) < 1e-9


def test_what_follows_the_answer_counts() -> None:
    answer = Scored(options=("a", "b"), logps=((-1.0,), (-2.0,)), suffix_logps=((-5.0,), (-1.0,)))
    assert judge(answer, {"b"}).rank == 1


def test_per_token_comparison_favours_long_options() -> None:
    answer = Scored(options=("a", "b"), logps=((-2.0,), (-1.5, -1.5)))
    assert judge(answer, {"b"}).rank == 2
    assert judge(answer, {"b"}, "tokens").rank == 1


def test_a_filled_answer_takes_its_best_watched_name() -> None:
    answer = Filled(
        top=("Rome", "Paris"),
        top_logps=(-0.1, -2.0),
        watched=("Paris", "City of Light", "Rome"),
        watched_logps=(-2.0, None, -0.1),
        watched_ranks=(2, None, 1),
    )
    assert judge(answer, {"Paris", "City of Light"}).rank == 2
    assert judge(answer, {"Rome"}).rank == 1
    assert judge(answer, {"City of Light"}).rank is None


def test_one_token_under_two_names_is_counted_once() -> None:
    answer = Filled(
        top=("Paris",),
        top_logps=(log(0.5),),
        watched=("Paris", "paris"),
        watched_logps=(log(0.5), log(0.5)),
        watched_ranks=(1, 1),
    )
    assert judge(answer, {"Paris", "paris"}).probability == 0.5


@given(st.lists(st.floats(-50, -0.01), min_size=2, max_size=12), st.integers(0, 11))
def test_rank_is_one_exactly_when_strictly_best(values: list[float], gold: int) -> None:
    gold %= len(values)
    rest = [v for i, v in enumerate(values) if i != gold]
    result = judge(scored(*values), {f"o{gold}"})
    assert (result.rank == 1) == (values[gold] > max(rest))
    assert result.probability is not None
    assert 0 <= result.probability <= 1


@given(st.lists(st.lists(st.floats(-9, 0), min_size=1, max_size=4), min_size=1, max_size=6))
def test_summed_log_probabilities_are_sums(rows: list[list[float]]) -> None:
    names = tuple(map(str, range(len(rows))))
    answer = Scored(options=names, logps=tuple(map(tuple, rows)))
    assert option_logps(answer).tolist() == [sum(row) for row in rows]
