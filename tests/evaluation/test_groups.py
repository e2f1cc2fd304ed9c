"""Breakdowns by columns of facts, and trends with their numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from sonde.core.facts import Dataset
from sonde.evaluation import metrics as m
from sonde.evaluation.estimate import estimate
from sonde.evaluation.groups import (
    add_breakdown_columns,
    estimate_trends,
    label_quantile_bins,
    pool_rare_values,
    quantile_edges,
    rank_correlation,
)
from sonde.probes.bear import Bear
from tests.probes.shares import by_fact, results
from tests.worlds import dataset_of, fact, relation


def table(
    numbers: Sequence[float | None] = (), genres: Sequence[str] = (), tags: Sequence[str] = ()
) -> Dataset:
    """Facts n0, n1, … of P1 and P2 with these numbers and genres; P1 has the tags."""
    facts = []
    for n, number in enumerate(numbers or [None] * len(genres)):
        known: Mapping[str, float] = {} if number is None else {"views": number}
        details = {"genre": genres[n]} if genres else {}
        made = fact(f"P{1 + n % 2}", f"s{n}", "x" if n % 3 else "y", id=f"n{n}")
        facts.append(replace(made, numbers=known, details=details))
    first = replace(relation("P1", "[X] is [Y]."), tags=tuple(tags))
    return dataset_of(facts, first, relation("P2", "[X] has [Y]."))


def known(*numbers: int) -> dict[str, str]:
    """Right answers of some facts."""
    return {f"n{n}": "x" if n % 3 else "y" for n in numbers}


def test_numbers_are_grouped_in_bins_of_equal_size_in_their_order() -> None:
    data = table([float(n) for n in range(40)])
    grouped, groups = add_breakdown_columns(results(Bear(), data, by_fact(**known(*range(20, 40)))))
    assert [group.by for group in groups] == [("numbers.views",)]
    found = estimate(grouped, [m.accuracy()], groups=groups, over=("facts",))
    found = found.filter(pl.col("group_by").list.len() == 1, of="value")
    assert [group for (group,) in found["group"]] == ["0 – 9", "10 – 19", "20 – 29", "30 – 39"]
    assert found["value"].to_list() == [0, 0, 1, 1] and found["n"].to_list() == [10] * 4


def test_bins_are_of_the_facts_that_are_scored() -> None:
    numbers = pl.Series([float(n) for n in range(30)])
    scored = pl.Series([n < 20 for n in range(30)])
    labels = label_quantile_bins(numbers, scored)
    assert labels is not None
    assert labels.to_list() == ["0 – 9"] * 10 + ["10 – 19"] * 10 + [None] * 10
    assert label_quantile_bins(numbers, pl.Series([n < 19 for n in range(30)])) is None


def test_a_bin_of_one_number_has_it_as_its_name_and_no_two_are_named_alike() -> None:
    numbers = pl.Series([1.0] * 10 + [1e6 + 0.25] * 10 + [1e6 + 0.5] * 10)
    labels = label_quantile_bins(numbers, pl.Series([True] * 30))
    assert labels is not None
    assert labels.unique(maintain_order=True).to_list() == ["1", "1e+06", "1e+06 (2)"]


@given(st.lists(st.integers(0, 6).map(float), max_size=80))
def test_bins_are_never_too_small_and_equal_numbers_never_separated(numbers: list[float]) -> None:
    edges = quantile_edges(np.array(numbers))
    if len(edges) < 3:
        return
    sizes = np.bincount(np.searchsorted(edges[1:-1], numbers, side="right"))
    assert (
        sizes.min() >= 10
        and len(sizes) <= 5
        and (edges[0], edges[-1]) == (min(numbers), max(numbers))
    )


def test_groups_of_fewer_than_five_facts_become_other() -> None:
    data = table(genres=["pop"] * 5 + ["rock"] * 6 + ["jazz", "folk", "folk"])
    grouped, groups = add_breakdown_columns(results(Bear(), data, by_fact()))
    assert [group.by for group in groups] == [("details.genre",)]
    values = grouped.facts["details.genre"]
    assert dict(values.value_counts().iter_rows()) == {"pop": 5, "rock": 6, "other": 3}


def test_a_column_without_two_groups_is_no_breakdown() -> None:
    assert add_breakdown_columns(results(Bear(), table(genres=["pop"] * 9), by_fact()))[1] == ()
    rare = table(genres=[f"g{n}" for n in range(9)])
    assert add_breakdown_columns(results(Bear(), rare, by_fact()))[1] == ()


def test_a_relation_counts_for_each_of_its_tags() -> None:
    data = table(genres=["pop"] * 12, tags=("arts", "time"))
    grouped, groups = add_breakdown_columns(results(Bear(), data, by_fact(**known(0, 2, 4))))
    assert [group.by for group in groups] == [("relation_tags",)]
    found = estimate(grouped, [m.accuracy()], groups=groups, over=("relations",))
    found = found.filter(pl.col("group_by").list.len() == 1, of="value")
    shares = {group: value for (group,), value in found.select("group", "value").iter_rows()}
    assert shares == {"arts": 0.5, "time": 0.5, "no tag": 0.0}


def test_lists_and_nulls_are_grouped_as_they_are() -> None:
    values = pl.Series([["a", "b"], ["a"], [], None] * 5, dtype=pl.List(pl.String))
    lists = pool_rare_values(values, pl.Series([True] * 20))
    assert lists is not None
    assert [sorted(v) if v is not None else None for v in lists.to_list()[:4]] == [
        ["a", "b"],
        ["a"],
        ["no tag"],
        None,
    ]


def test_a_trend_is_the_rank_correlation_over_all_facts_and_within_relations() -> None:
    rng = np.random.default_rng(0)
    relations = np.repeat([0, 1], 40)
    numbers = rng.permutation(80) + 100.0 * relations
    values = (rng.random(80) < 0.2 + 0.6 * relations).astype(float)
    clusters = np.arange(80)
    overall = rank_correlation(numbers, values, np.zeros(80, int), clusters)
    within = rank_correlation(numbers, values, relations, clusters)
    assert overall is not None and within is not None
    assert overall[0] == pytest.approx(spearmanr(numbers, values).statistic)
    assert overall[3] < 0.01
    assert within[3] > 0.05, "the relations differ, not the facts in them"
    assert within[1] <= 0 <= within[2]


def test_a_trend_without_any_difference_is_not_measured() -> None:
    assert rank_correlation(np.arange(30.0), np.ones(30), np.zeros(30, int), np.arange(30)) is None


def test_a_p_never_contradicts_its_interval() -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        values = (rng.random(40) < 0.5).astype(float)
        numbers = rng.random(40) + 0.4 * values
        estimate = rank_correlation(numbers, values, np.zeros(40, int), np.arange(40) // 2, seed)
        assert estimate is not None
        _, low, high, p = estimate
        assert (low > 1e-9 or high < -1e-9) == (p < 0.05)


def test_a_trend_that_is_none_is_found_in_one_of_twenty_data_sets() -> None:
    strata, clusters = np.zeros(40, int), np.arange(40) // 2
    significant = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        numbers = rng.random(20).repeat(2)
        values = (rng.random(20) < 0.3).astype(float).repeat(2)
        estimate = rank_correlation(numbers, values, strata, clusters, seed)
        significant += estimate is not None and estimate[3] < 0.05
    assert significant <= 20


def test_trends_are_estimates_by_number() -> None:
    data = table([10.0**n for n in np.linspace(0, 4, 60)])
    frame = estimate_trends(results(Bear(), data, by_fact(**known(*range(30, 60)))))
    assert frame["metric"].to_list() == ["trend", "trend_within"]
    assert frame["group_by"].to_list() == [["number"]] * 2
    assert frame["group"].to_list() == [["views"]] * 2
    assert frame["value"].min() > 0.2 and set(frame["n"]) == {60}  # type: ignore[operator]
    # neither p nor the interval is corrected for the number of trends
    assert frame["p"].max() < 0.05 and frame["low"].min() > 0  # type: ignore[operator]
    assert frame["p_adjusted"].null_count() == 2
    assert estimate_trends(results(Bear(), table([1.0] * 40), by_fact())).is_empty()
