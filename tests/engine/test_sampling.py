"""Splitting counts draws as independent draws do, and by name alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest

from sonde.engine.sampling import cumulative, draw_name, many_uniforms, philox, split, uniforms

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


WORDS = st.integers(0, 2**64 - 1)


@given(keys=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5), count=st.integers(1, 4))
def test_words_of_many_keys_are_those_numpy_gives_for_each(
    keys: list[tuple[int, int]], count: int
) -> None:
    counters = np.full(len(keys), count, dtype=np.uint64)
    found = philox(np.array(keys, dtype=np.uint64), counters)
    for (low, high), words in zip(keys, found, strict=True):
        expected = np.random.Philox(key=(high << 64) + low).random_raw(4 * count)
        assert np.array_equal(words, expected[-4:])


@given(places=st.lists(st.tuples(PATHS, st.integers(0, 9)), max_size=6))
def test_draws_of_many_places_are_those_of_each(places: list[tuple[list[int], int]]) -> None:
    names = [draw_name(number, "fact") for number in range(len(places))]
    paths = [np.array(path, dtype="<i8").tobytes() for path, _ in places]
    found = many_uniforms(names, paths, np.array([count for _, count in places], dtype=np.int64))
    each = [uniforms(name, *place) for name, place in zip(names, places, strict=True)]
    assert np.array_equal(found, np.concatenate([[], *each]))


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
