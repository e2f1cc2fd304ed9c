"""Pearson's correlation between runs over relations, and its means within and between groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.analysis.comparison.couples import correlation
from sonde.core.reports import Estimate
from tests.analysis.world import matrix

ACCURACIES = np.array([[0.1, 0.5, 0.9], [0.2, 0.4, 0.6], [0.9, 0.5, 0.1], [0.1, 0.1, 0.7]])
GROUPS = ["up", "up", "down", "up"]


def between(accuracies: np.ndarray, groups: list[str]) -> dict[str, Estimate]:
    """The correlations of runs r0, r1, … of these groups."""
    return dict(correlation(accuracies, {f"r{i}": group for i, group in enumerate(groups)}))


def every_two(found: dict[str, Estimate], runs: int) -> list[list[Estimate]]:
    return matrix(found, "correlation.runs.{}.and.{}", *(f"r{i}" for i in range(runs)))


def pearson(a: np.ndarray, b: np.ndarray) -> float:
    """The textbook's formula."""
    x, y = a - a.mean(), b - b.mean()
    return float((x @ y) / np.sqrt((x @ x) * (y @ y)))


def test_correlations_are_those_of_the_textbook() -> None:
    found = every_two(between(ACCURACIES, GROUPS), 4)
    for a, row in enumerate(found):
        for b, estimate in enumerate(row):
            assert estimate.value == pytest.approx(pearson(ACCURACIES[a], ACCURACIES[b]))
            assert estimate.n == 3
    assert found[0][1].value == pytest.approx(1) and found[0][2].value == pytest.approx(-1)


def test_means_within_and_between_groups_are_over_pairs_of_different_runs() -> None:
    found = between(ACCURACIES, GROUPS)
    r = {(a, b): pearson(ACCURACIES[a], ACCURACIES[b]) for a in range(4) for b in range(4) if a < b}
    mean = found["correlation.mean"]
    assert mean.value == pytest.approx(sum(r.values()) / 6) and mean.n == 6
    within = (r[0, 1] + r[0, 3] + r[1, 3]) / 3
    across = (r[0, 2] + r[1, 2] + r[2, 3]) / 3
    groups = {n: e for n, e in found.items() if n.startswith("correlation.groups")}
    assert len(groups) == 2, "down is one run only"
    for name in ("within", "groups.up.and.up"):
        estimate = found[f"correlation.{name}"]
        assert estimate.value == pytest.approx(within) and estimate.n == 3
    for name in ("between", "groups.down.and.up"):
        estimate = found[f"correlation.{name}"]
        assert estimate.value == pytest.approx(across) and estimate.n == 3


def test_a_run_that_is_equally_good_at_everything_is_not_measured() -> None:
    flat = np.array([[0.5, 0.5, 0.5], *ACCURACIES[:2]])
    found = between(flat, ["a", "b", "b"])
    assert [e.value for e in every_two(found, 3)[0]] == [None, None, None]
    assert found["correlation.between"].value is None
    assert found["correlation.within"].value == pytest.approx(1)
    assert found["correlation.mean"].value == pytest.approx(1) and found["correlation.mean"].n == 1


@pytest.mark.parametrize("relations", [1, 2])
def test_fewer_than_three_relations_are_not_measured(relations: int) -> None:
    found = between(ACCURACIES[:, :relations], GROUPS)
    assert all(estimate.value is None for estimate in found.values())


def test_intervals_hold_their_value_and_narrow_with_more_relations() -> None:
    rng = np.random.default_rng(0)
    base = rng.random(400)
    both = np.stack([base, base + rng.normal(0, 0.3, 400)])

    def width(relations: int) -> float:
        estimate = between(both[:, :relations], ["a", "b"])["correlation.runs.r0.and.r1"]
        assert estimate.low is not None and estimate.high is not None
        assert estimate.value is not None
        assert -1 <= estimate.low <= estimate.value <= estimate.high <= 1
        return estimate.high - estimate.low

    assert width(400) < width(40) < width(6)


@given(
    st.lists(
        st.lists(st.integers(0, 4).map(lambda k: k / 4), min_size=4, max_size=4),
        min_size=2,
        max_size=4,
    )
)
def test_correlations_are_symmetric_bounded_and_the_same_in_any_order(
    rows: list[list[float]],
) -> None:
    groups = ["g" if i % 2 else "h" for i in range(len(rows))]
    one, other = between(np.array(rows), groups), between(np.array(rows[::-1]), groups[::-1])
    first, mirrors = every_two(one, len(rows)), every_two(other, len(rows))
    for a, row in enumerate(first):
        for b, estimate in enumerate(row):
            assert estimate == first[b][a]
            mirrored = mirrors[len(rows) - 1 - a][len(rows) - 1 - b]
            assert estimate.value == pytest.approx(mirrored.value)
            if estimate.value is not None:
                assert -1 <= estimate.value <= 1
                assert a != b or estimate.value == pytest.approx(1)
    assert one["correlation.mean"].value == pytest.approx(other["correlation.mean"].value)
    assert set(one) == set(other)
