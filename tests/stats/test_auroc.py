"""AUROC: the share of pairs in order, ties being half; its interval holds what it should."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sonde.stats.correlation import auroc, auroc_interval

SCORED = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=12)


def columns(pairs: list[tuple[int, bool]]) -> tuple[np.ndarray, np.ndarray]:
    score, positive = zip(*pairs, strict=True)
    assume(any(positive) and not all(positive))
    return np.array(score, dtype=np.float64), np.array(positive)


@given(SCORED)
def test_auroc_counts_the_pairs_in_order_and_ties_as_half(pairs: list[tuple[int, bool]]) -> None:
    score, positive = columns(pairs)
    won = [
        1.0 if a > b else 0.5 if a == b else 0.0 for a in score[positive] for b in score[~positive]
    ]
    assert auroc(score, positive) == pytest.approx(np.mean(won))


@given(SCORED)
def test_auroc_sees_the_order_of_scores_alone(pairs: list[tuple[int, bool]]) -> None:
    score, positive = columns(pairs)
    assert auroc(np.exp(score) + score**3, positive) == pytest.approx(auroc(score, positive))
    turned = auroc(-score, positive)
    assert turned is not None and turned == pytest.approx(1 - (auroc(score, positive) or 0.0))


@given(SCORED)
def test_the_interval_holds_the_value_and_has_a_width(pairs: list[tuple[int, bool]]) -> None:
    score, positive = columns(pairs)
    low, high = auroc_interval(score, positive)
    value = auroc(score, positive)
    assert value is not None and 0 <= low <= value + 1e-12 and value - 1e-12 <= high <= 1
    assert high - low > 0.01


def test_a_perfect_score_has_one_and_a_constant_one_a_half() -> None:
    positive = np.array([False, False, True, True])
    assert auroc(positive.astype(np.float64), positive) == 1.0
    assert auroc(np.ones(4), positive) == 0.5


@pytest.mark.parametrize("every", [True, False])
def test_nothing_is_ranked_without_both_sorts(every: bool) -> None:
    assert auroc(np.arange(3.0), np.full(3, every)) is None
    with pytest.raises(ValueError, match="positives and negatives"):
        auroc_interval(np.arange(3.0), np.full(3, every))


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    positive = np.arange(120) < 50
    truth = 0.7602499389  # of two normal distributions that lie one deviation apart
    held = 0
    for _ in range(300):
        low, high = auroc_interval(random.normal(positive * 1.0, 1.0), positive)
        held += low <= truth <= high
    assert 0.91 < held / 300 < 0.985
