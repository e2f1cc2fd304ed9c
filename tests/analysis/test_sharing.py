"""The sharing rate: whose knowledge is the denominator, groups of runs, what one alone knows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from sonde.analysis.comparison.couples import sharing
from sonde.analysis.joins import align
from sonde.analysis.runs import Compared
from sonde.core.reports import Estimate
from sonde.metrics import accuracy
from tests.analysis.world import matrix, run, several
from tests.grids import measured, plainly_shared

ALL = run("all", [[[0], [0]], [[0], [0]]], group="big")
HALF = run("half", [[[0], [0]], [[1], [1]]], group="big")
ONE = run("one", [[[1], [0]], [[1], [1]]], group="small")
NONE = run("none", [[[1], [1]], [[1], [1]]], group="small")


def found(*runs: Compared) -> dict[str, Estimate]:
    return dict(sharing(align(runs)))


def rates(*runs: Compared) -> list[list[Estimate]]:
    return matrix(found(*runs), "sharing.runs.{}.in.{}", *(run.name for run in runs))


def values(*runs: Compared) -> list[list[float | None]]:
    return [[e.value for e in row] for row in rates(*runs)]


def test_the_row_is_the_denominator() -> None:
    assert values(ALL, HALF, ONE) == [[1, 0.5, 0.25], [1, 1, 0.5], [1, 1, 1]]


def test_the_same_pair_under_another_template_is_not_shared() -> None:
    other = run("other", [[[0], [1]], [[1], [1]]])
    assert values(ONE, other) == [[1, 0], [0, 1]]


def test_a_pair_is_known_under_a_template_if_any_name_is_right() -> None:
    first = run("first name", [[[0, 1]]])
    second = run("second name", [[[1, 0]]])
    assert values(first, second) == [[1, 1], [1, 1]]


def test_a_run_that_knows_nothing_has_no_rate_but_can_be_measured_against() -> None:
    assert values(ALL, NONE) == [[1, 0], [None, None]]


def test_groups_average_the_rates_of_different_runs() -> None:
    means = found(ALL, HALF, ONE)
    within, between = means["sharing.within"], means["sharing.between"]
    assert within.value == pytest.approx((0.5 + 1) / 2) and within.n == 2
    assert between.value == pytest.approx((0.25 + 0.5 + 1 + 1) / 4) and between.n == 4
    assert means["sharing.mean"].value == pytest.approx((0.5 + 1 + 0.25 + 0.5 + 1 + 1) / 6)
    assert means["sharing.groups.big.in.small"].value == pytest.approx((0.25 + 0.5) / 2)
    assert means["sharing.groups.small.in.big"].value == 1
    assert "sharing.groups.small.in.small" not in means, "a group of one run has nothing within"


def test_rates_that_were_not_measured_are_left_out_of_means() -> None:
    mean = found(ALL, NONE)["sharing.mean"]
    assert (mean.value, mean.n) == (0, 1)


def test_what_one_run_alone_knows() -> None:
    estimates = found(ALL, HALF, ONE)
    assert [estimates[f"known_alone.run.{n}"].value for n in ("all", "half", "one")] == [0.5, 0, 0]
    assert (estimates["known_in_one_run"].value, estimates["known_in_one_run"].n) == (0.5, 4)


def test_runs_that_all_know_nothing_are_not_measured() -> None:
    estimates = found(NONE, run("nobody", [[[1], [1]], [[1], [1]]]))
    for name in ("known_in_one_run", "sharing.mean", "sharing.within"):
        assert estimates[name].value is None


@given(several())
def test_rates_are_shares_and_agree_with_the_plain_count(runs: list[Compared]) -> None:
    known = [accuracy.known(r.judged.grid)[2] for r in runs]
    for a, row in enumerate(rates(*runs)):
        for b, rate in enumerate(row):
            assert rate.value == plainly_shared(known[a], known[b])
            if rate.value is not None:
                low, value, high = measured(rate)
                assert 0 <= low <= value <= high <= 1
                assert low < high if a != b else rate.value == 1
                assert rate.n == known[a].sum()


@given(several())
def test_the_order_of_runs_only_moves_rows_and_columns(runs: list[Compared]) -> None:
    one, other = found(*runs), found(*runs[::-1])
    assert np.array_equal(np.array(rates(*runs))[::-1, ::-1], np.array(rates(*runs[::-1])))
    for name in ("known_in_one_run", *(f"known_alone.run.{r.name}" for r in runs)):
        assert one[name] == other[name]
