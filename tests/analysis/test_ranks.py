"""Agreement on templates: Kendall's τ-b per relation, and the templates that are judged apart."""

from __future__ import annotations

import pytest
from hypothesis import given

from sonde.analysis.comparison.couples import TemplateOrder
from sonde.analysis.joins import align
from sonde.analysis.runs import Compared
from sonde.core.reports import Estimate
from tests.analysis.world import matrix, run, several
from tests.grids import grid


def taus(*runs: Compared) -> list[list[Estimate]]:
    found = dict(TemplateOrder(align(runs)).agreement())
    return matrix(found, "rank_agreement.runs.{}.and.{}", *(run.name for run in runs))


# three templates, two pairs: accuracies 1, ½, 0 and the other way round
RISING = run("rising", [[[0], [0], [1]], [[0], [1], [1]]])
FALLING = run("falling", [[[1], [0], [0]], [[1], [1], [0]]])
EVEN = run("even", [[[0], [0], [0]], [[1], [1], [1]]])


def test_runs_that_order_templates_alike_agree_fully_and_reversed_ones_not_at_all() -> None:
    found = taus(RISING, FALLING)
    assert [[e.value for e in row] for row in found] == [[1, -1], [-1, 1]]


def test_a_run_that_tells_no_templates_apart_is_not_measured() -> None:
    found = taus(RISING, EVEN)
    assert found[0][1].value is None and found[1][1].value is None and found[0][0].value == 1
    means = dict(TemplateOrder(align([RISING, EVEN])).agreement())
    assert means["rank_agreement.mean"].value is None


def test_relations_count_the_same_whatever_their_size() -> None:
    def both(name: str, second: tuple[bool, bool]) -> Compared:
        """Relation 0: template 0 better than 1. Relation 1: as given."""
        rows = [(0, 0, 0, True, 0), (0, 1, 0, False, 1)]
        rows += [
            (pair, 2 + i, 0, ok, int(not ok)) for pair in (1, 2) for i, ok in enumerate(second)
        ]
        return run(name, grid(rows, [0, 1, 1], [0, 0, 1, 1]))

    runs = [both("a", (True, False)), both("b", (False, True)), both("c", (True, True))]
    tau = taus(*runs)
    assert (tau[0][1].value, tau[0][1].n) == (0, 2), "1 in one relation, -1 in the other"
    assert (tau[0][2].value, tau[0][2].n) == (1, 1), "c says nothing about the second"


def test_templates_whose_ranks_differ_most_come_first() -> None:
    found = TemplateOrder(align([RISING, FALLING, EVEN])).ranked()
    assert [t.template for t in found] == [0, 2, 1]
    assert found[0].ranks.tolist() == [1, 3, 2] and found[0].of == 3
    assert len(set(found[2].ranks)) == 1


@given(several())
def test_agreement_is_symmetric_and_within_bounds(runs: list[Compared]) -> None:
    tau = taus(*runs)
    for a, row in enumerate(tau):
        for b, estimate in enumerate(row):
            assert estimate.value == pytest.approx(tau[b][a].value)
            if estimate.value is not None:
                assert -1 - 1e-9 <= estimate.value <= 1 + 1e-9
                assert a != b or estimate.value == pytest.approx(1)
