"""Subsumption: η(a|b) per relation, then averaged over the relations in which a knows anything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from sonde.analysis.comparison.couples import sharing
from sonde.analysis.joins import align
from sonde.analysis.runs import Compared
from sonde.core.reports import Estimate
from sonde.metrics import accuracy
from tests.analysis.world import asked, matrix, run, several
from tests.grids import measured, plainly_shared


def eta(*runs: Compared) -> list[list[Estimate]]:
    found = dict(sharing(align(runs)))
    return matrix(found, "subsumption.runs.{}.in.{}", *(run.name for run in runs))


SMALL = asked("small", [[1, 1, 0, 0], [1, 0], [0, 0]])
LARGE = asked("large", [[1, 0, 1, 1], [1, 1], [1, 0]])
NOTHING = asked("nothing", [[0, 0, 0, 0], [0, 0], [0, 0]])


def test_the_rate_is_averaged_over_relations_that_the_first_run_knows_something_of() -> None:
    found = eta(SMALL, LARGE)
    # small knows 2 of which large knows 1, then 1 of 1, then nothing
    assert found[0][1].value == pytest.approx((1 / 2 + 1 / 1) / 2)
    assert found[0][1].n == 2
    # large knows 3 (small 1), 2 (1), 1 (0)
    assert found[1][0].value == pytest.approx((1 / 3 + 1 / 2 + 0) / 3)
    assert found[1][0].n == 3


def test_it_differs_from_the_sharing_rate_which_pools_relations() -> None:
    both = align([SMALL, LARGE])
    assert dict(sharing(both))["sharing.runs.small.in.large"].value == pytest.approx(2 / 3)
    assert eta(SMALL, LARGE)[0][1].value == pytest.approx(3 / 4)


def test_what_is_known_under_another_template_is_not_shared() -> None:
    first, second = run("first", [[[0], [1]]]), run("second", [[[1], [0]]])
    assert [[e.value for e in row] for row in eta(first, second)] == [
        [1, 0], [0, 1],
    ]  # fmt: skip


def test_a_run_that_knows_nothing_is_not_measured_but_can_be_measured_against() -> None:
    found = eta(SMALL, NOTHING)
    assert found[1][0].value is None and found[1][1].value is None
    assert found[0][1].value == 0


def test_all_shared_of_a_few_pairs_is_not_a_certainty() -> None:
    one, two = asked("one", [[1, 1, 1], [0, 0]]), asked("two", [[1, 1, 1], [1, 1]])
    rate = eta(one, two)[0][1]
    assert rate.value == rate.high == 1
    # Wilson's interval of 3 of 3
    assert rate.low == pytest.approx(0.4385, abs=1e-4)
    itself = eta(one, two)[0][0]
    assert (itself.value, itself.low) == (1, None), "what a run shares with itself is no estimate"


@given(several())
def test_rates_are_shares_and_agree_with_the_plain_count(runs: list[Compared]) -> None:
    aligned = align(runs)
    first = aligned.first
    cells = [accuracy.known(r.judged.grid) for r in aligned.runs]
    owners = first.grid.relations[cells[0][1]]
    for a, row in enumerate(eta(*runs)):
        for b, rate in enumerate(row):
            literal = [
                plainly_shared(cells[a][2][owners == r], cells[b][2][owners == r])
                for r in range(len(first.relations))
            ]
            there = [x for x in literal if x is not None]
            assert rate.n == len(there)
            if not there:
                assert rate.value is None
                continue
            low, value, high = measured(rate)
            assert value == pytest.approx(sum(there) / len(there))
            assert 0 <= low <= value <= high <= 1
            assert a != b or value == 1


@given(several())
def test_the_order_of_runs_only_moves_rows_and_columns(runs: list[Compared]) -> None:
    assert np.array_equal(np.array(eta(*runs))[::-1, ::-1], np.array(eta(*runs[::-1])))
