"""Splitting counts draws as independent draws do, and by name alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest

from sonde.engine.sampling import cumulative, draw_name, split, uniforms

WEIGHTS = st.lists(st.sampled_from([0.0, 1e-12, 0.1, 1.0, 3.0]), min_size=1, max_size=20).filter(
    any
)
PATHS = st.lists(st.integers(0, 300_000), max_size=5)
NAME = draw_name(0, "fact")


@given(weights=WEIGHTS, path=PATHS, count=st.integers(0, 50))
def test_counts_sum_to_the_draws_and_fall_on_tokens_with_weight(
    weights: list[float], path: list[int], count: int
) -> None:
    counts = split(cumulative(np.array(weights)), uniforms(NAME, path, count))
    assert sum(counts.values()) == count
    assert all(weights[token] > 0 for token in counts)
    assert list(counts) == sorted(counts)


@given(weights=WEIGHTS, order=st.permutations(range(12)))
def test_the_order_of_draws_never_matters(weights: list[float], order: list[int]) -> None:
    running, draws = cumulative(np.array(weights)), uniforms(NAME, [], 12)
    assert split(running, draws) == split(running, draws[order])


@pytest.mark.parametrize("extreme", [0.0, np.nextafter(1.0, 0.0), 1.0])
def test_the_outermost_draws_fall_on_the_outermost_tokens_with_weight(extreme: float) -> None:
    running = cumulative(np.array([0.0, 0.3, 0.7 / 3, 0.7 / 3, 0.0], dtype=np.float32))
    assert split(running, np.array([extreme])) == {1 if extreme < 0.5 else 3: 1}


@given(path=PATHS, other=PATHS)
def test_draws_are_named_by_seed_prompt_and_path(path: list[int], other: list[int]) -> None:
    first = uniforms(NAME, path, 8)
    assert np.array_equal(first, uniforms(NAME, path, 8))
    assert np.array_equal(first, uniforms(NAME, path, 20)[:8])
    assert path == other or not np.array_equal(first, uniforms(NAME, other, 8))
    for name in (draw_name(1, "fact"), draw_name(0, "fact", ""), draw_name(0, "other")):
        assert not np.array_equal(first, uniforms(name, path, 8))


def test_named_numbers_are_uniform_and_those_of_neighbours_unrelated() -> None:
    table = np.array([uniforms(NAME, [token], 20) for token in range(500)])
    assert kstest(table.ravel(), "uniform").pvalue > 0.001
    assert kstest(table[:, 0], "uniform").pvalue > 0.001
    assert abs(np.corrcoef(table[:-1, 0], table[1:, 0])[0, 1]) < 0.15


def test_one_split_follows_the_probabilities() -> None:
    weights = np.array([0.4, 0.05, 0.0, 0.3, 0.2, 0.05])
    counts = split(cumulative(weights), uniforms(NAME, [], 20_000))
    drawn = np.array([counts.get(token, 0) for token in range(len(weights))])
    some = weights > 0
    assert chisquare(drawn[some], 20_000 * weights[some]).pvalue > 0.001
    assert drawn[~some].sum() == 0


def test_the_running_sum_keeps_small_weights_apart() -> None:
    weights = np.full(200_000, 5e-6, dtype=np.float32)
    running = cumulative(weights)
    assert running[-1] == pytest.approx(1.0, abs=1e-6)
    assert (np.diff(running) > 0).all()
