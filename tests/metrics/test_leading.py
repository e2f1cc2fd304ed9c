"""Who is ahead of several, and whether that could be chance."""

from __future__ import annotations

import numpy as np
import pytest

from sonde.metrics.estimates import Lead, Sample, lead, p_value
from sonde.stats.paired import mcnemar


def less(first: list[float], second: list[float], clusters: str = "") -> Sample:
    names = tuple(clusters) or tuple(map(str, range(len(first))))
    return Sample(values=np.array(first), clusters=names, minus=np.array(second))


def test_one_relation_of_right_and_wrong_is_tested_by_mcnemar() -> None:
    first, second = [1.0] * 7 + [0.0], [0.0] * 7 + [0.0]
    exact = mcnemar(np.array(first), np.array(second))
    assert p_value({"a": less(first, second)}, 0, "x") == exact
    # of one subject these are no eight facts
    assert p_value({"a": less(first, second, "xxxxxxxx")}, 0, "x") == 1.0


def test_relations_or_facts_count_the_same() -> None:
    samples = {"a": less([1.0] * 3, [0.0] * 3), "b": less([0.0] * 30, [1.0] * 15 + [0.0] * 15)}
    assert p_value(samples, 0, "x", over="relations") > 0.05
    assert p_value(samples, 0, "x", over="facts") < 0.05


def test_the_first_is_named_alone_only_where_it_is_told_from_all_others() -> None:
    values = {"one": 0.5, "two": 0.4, "three": 0.1}
    chances = {"two": 0.2, "three": 0.001}
    found = lead(values, lambda best, other: chances[other])
    assert found == Lead(best="one", value=0.5, tied=("two",))
    assert lead(values, lambda best, other: 0.01).tied == ()  # type: ignore[union-attr]
    lowest = lead(values, lambda best, other: 0.01, lowest=True)
    assert lowest is not None and lowest.best == "three"


def test_many_to_choose_from_make_a_winner_harder_to_name() -> None:
    def found(count: int) -> Lead | None:
        values = {str(i): float(i) for i in range(count)}
        return lead(values, lambda best, other: 0.02)

    two, nine = found(2), found(9)
    assert two is not None and nine is not None
    assert two.tied == () and len(nine.tied) == 8


def test_one_alone_leads_nobody() -> None:
    assert lead({"one": 0.5}, lambda best, other: 0.0) is None
    assert lead({}, lambda best, other: 0.0) is None


@pytest.mark.parametrize("lowest", [False, True])
def test_equal_values_are_tied_whatever_a_test_says(lowest: bool) -> None:
    found = lead({"one": 0.5, "two": 0.5}, lambda best, other: 0.0, lowest=lowest)
    assert found is not None and found.tied
