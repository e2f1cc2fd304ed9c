"""Accuracy over many prompts, by pair and by template."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.reports import Estimate
from sonde.metrics.accuracy import manual_rank, one_word_rate, template_accuracies
from sonde.metrics.judged import Grid
from tests.grids import acc_at_1, grid, grids, measured, one_relation, shuffled, template_summary


def rows(of: Grid) -> list[tuple[int, int, int, bool]]:
    columns = (of.pair, of.template, of.name, of.right)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


@given(grids())
def test_accuracy_is_the_mean_over_pairs_of_their_share_right(of: Grid) -> None:
    found = acc_at_1(of)
    pairs = sorted({pair for pair, *_ in rows(of)})
    if not pairs:
        assert found.value is None
        return
    shares = [mean([float(r) for p, _, _, r in rows(of) if p == pair]) for pair in pairs]
    assert found.value == pytest.approx(mean(shares))
    assert found.n == len(pairs)
    low, value, high = measured(found)
    assert 0 <= low <= value <= high <= 1


@given(grids())
def test_a_template_counts_every_pair_once_whatever_its_names(of: Grid) -> None:
    for template, found in enumerate(template_accuracies(of)):
        cells: dict[int, list[float]] = {}
        for pair, under, _, right in rows(of):
            if under == template:
                cells.setdefault(pair, []).append(float(right))
        expected = mean([mean(cell) for cell in cells.values()]) if cells else np.nan
        assert found == pytest.approx(expected, nan_ok=True)


@given(grids())
def test_the_summary_is_of_the_template_accuracies(of: Grid) -> None:
    accuracies = template_accuracies(of)
    if np.isnan(accuracies).all():
        assert all(e.value is None for e in template_summary(of))
        return
    worst, best, average = (estimate.value for estimate in template_summary(of))
    assert average == pytest.approx(np.nanmean(accuracies))
    assert worst is not None and best is not None and worst <= best
    if (of.relations == of.relations[0]).all() and complete(of):
        assert (worst, best) == pytest.approx((np.nanmin(accuracies), np.nanmax(accuracies)))


def complete(of: Grid) -> bool:
    """Whether every pair was asked under every template."""
    asked = {(pair, template) for pair, template, _, _ in rows(of)}
    return len(asked) == len(of.relations) * len(of.template_relations)


def test_the_worst_template_is_that_of_each_relation() -> None:
    of = Grid(
        pair=np.array([0, 0, 1, 1, 2, 2]),
        template=np.array([0, 1, 0, 1, 2, 3]),
        name=np.zeros(6, dtype=np.int64),
        right=np.array([True, False, True, False, True, True]),
        answer=np.arange(6),
        confidence=np.full(6, np.nan),
        relations=np.array([0, 0, 1]),
        template_relations=np.array([0, 0, 1, 1]),
    )
    worst, best, average = (estimate.value for estimate in template_summary(of))
    assert (worst, best, average) == pytest.approx((1 / 3, 1, 0.75))


@given(grids(), st.integers(0, 9))
def test_the_order_of_prompts_does_not_matter(of: Grid, seed: int) -> None:
    other = shuffled(of, seed)
    assert acc_at_1(of) == acc_at_1(other)
    assert template_summary(of) == template_summary(other)
    manual = np.arange(len(of.template_relations)) % 2 == 0
    assert manual_rank(of, manual) == manual_rank(other, manual)


@given(grids(complete=True))
def test_cells_hold_every_prompt_of_their_relation(of: Grid) -> None:
    made = of.blocks
    assert sum(int(block.asked.sum()) for block in made) == len(of)
    assert sum(int(block.right.sum()) for block in made) == of.right.sum()
    for block in made:
        assert (of.relations[block.pairs] == block.relation).all()
        assert (of.template_relations[block.templates] == block.relation).all()


def test_a_pair_under_a_template_of_another_relation_is_refused() -> None:
    mixed = grid([(0, 1, 0, True, 0)], relations=[0], template_relations=[0, 1])
    with pytest.raises(ValueError, match="a pair of one relation"):
        template_accuracies(mixed)


def test_manual_templates_are_ranked_within_their_relation() -> None:
    # accuracies 1, 0.5, 0.5, 0: ranks 1, 2.5, 2.5, 4
    of = one_relation([[[0], [0], [1], [1]], [[0], [1], [0], [1]]])
    found = manual_rank(of, np.array([False, True, False, True]))
    assert found.value == (2.5 + 4) / 2
    assert found.n == 2
    best = manual_rank(of, np.array([True, False, False, False]))
    assert best.value == 1


@pytest.mark.parametrize("manual", [[True, True], [False, False]])
def test_ranks_need_templates_of_both_kinds(manual: list[bool]) -> None:
    assert manual_rank(one_relation([[[0], [1]]]), np.array(manual)).value is None


def test_half_of_all_ranks_lie_above_the_middle() -> None:
    rng = np.random.default_rng(0)
    of = one_relation(rng.integers(0, 2, (30, 7, 1)).tolist())
    some = np.arange(7) < 3
    low, ours, high = measured(manual_rank(of, some))
    _, theirs, _ = measured(manual_rank(of, ~some))
    assert 3 * ours + 4 * theirs == pytest.approx(28)
    assert low < ours < high


def test_one_word_rate_counts_answers_of_exactly_one_word() -> None:
    assert one_word_rate(np.array([1, 2, 0, 1])).value == 0.5
    assert one_word_rate(np.array([], dtype=np.int64)).value is None


def test_answers_whose_words_cannot_be_counted_are_in_no_one_word_rate() -> None:
    found = one_word_rate(np.array([1, np.nan, 2, np.nan]), clusters=np.array([0, 0, 1, 1]))
    assert (found.value, found.n) == (0.5, 2)
    assert one_word_rate(np.array([np.nan, np.nan])) == Estimate.not_measured()


def test_prompts_of_one_pair_are_no_independent_evidence() -> None:
    words, pair = np.repeat(np.arange(20.0) % 2, 50), np.repeat(np.arange(20), 50)
    alone, together = measured(one_word_rate(words)), measured(one_word_rate(words, clusters=pair))
    assert together[0] < alone[0] - 0.1
