"""The parts of a report that every multi-prompt probe shares."""

from __future__ import annotations

import numpy as np
import pytest

from sonde.core.facts import Template
from sonde.core.reports import Bars, Curves, Estimate, Histogram, Strip
from sonde.metrics.judged import Grid
from sonde.reporting.build.multi_prompt.sections import Sections, sections
from tests.worlds import relation

RELATIONS = tuple(relation(id, label="l") for id in ("A", "B", "C"))
TEMPLATES = tuple(Template(id=f"t{i}", text=f"[X] {i} [Y]") for i in range(4))


def grid(rows: list[tuple[int, int, int, int, int, float]], relations: list[int]) -> Grid:
    """Rows of (pair, template, name, right, answer, confidence); templates 0, 1 are A's, 2 B's."""
    columns = np.array(rows, dtype=np.float64).reshape(-1, 6).T
    pair, template, name, right, answer = columns[:5].astype(np.int64)
    return Grid(
        pair=pair,
        template=template,
        name=name,
        right=right.astype(np.bool_),
        answer=answer,
        confidence=columns[5],
        relations=np.array(relations, dtype=np.int64),
        template_relations=np.array([0, 0, 1, 2]),
    )


NAN = float("nan")
ROWS = [
    (0, 0, 0, 1, 7, 0.9),
    (0, 1, 0, 0, 8, 0.7),
    (1, 0, 0, 1, 7, NAN),
    (1, 1, 0, 1, 7, 0.5),
    (2, 2, 0, 0, 9, 0.3),
]


def made(**changes: object) -> Sections:
    given = grid(ROWS, [0, 0, 1])
    chosen = {"relations": RELATIONS, "templates": TEMPLATES, "draws": 100, **changes}
    return sections(given, **chosen)  # type: ignore[arg-type]


def test_a_relation_has_the_numbers_of_its_own_rows() -> None:
    found = made().estimates
    assert found["acc_at_1"].value == pytest.approx((0.5 + 1 + 0) / 3)
    assert found["acc_at_1.relation.A"].value == 0.75
    assert found["acc_at_1.relation.B"].value == 0
    assert found["template_accuracy.min"].value == pytest.approx((0.5 * 2 + 0) / 3)
    assert found["template_accuracy.max"].value == pytest.approx((1 * 2 + 0) / 3)
    assert found["consist.relation.A"].value == 0.5


def test_what_was_not_measured_is_never_zero() -> None:
    found = made().estimates
    nothing = Estimate.not_measured()
    assert found["consist.relation.B"] == found["fluctuation.relation.range.relation.B"] == nothing
    of_c = {name: e for name, e in found.items() if name.endswith(".relation.C")}
    assert of_c and all(estimate == nothing for estimate in of_c.values())
    assert {name.removesuffix(".relation.C") for name in of_c} == {
        name for name in found if ".relation." not in name.replace("fluctuation.relation.", "")
    }


def test_rows_without_a_confidence_are_left_out_of_the_calibration() -> None:
    found = made()
    assert found.counts["prompts"] == 5 and found.counts["prompts_with_confidence"] == 4
    assert found.estimates["overconf"].value == pytest.approx(2.4 / 4 - 2 / 4)


def test_a_control_stands_beside_the_accuracy_where_one_is_given() -> None:
    with_control = made(majority=np.array([True, False, True]))
    assert with_control.headlines[0].control == "control.majority.acc_at_1"
    assert with_control.estimates["above_control.acc_at_1"].value == pytest.approx(0.5 - 2 / 3)
    assert made().headlines[0].control == ""
    assert not any("control" in name for name in made().estimates)


def test_agreement_may_be_judged_by_another_rule() -> None:
    seen = []

    def rule(part: Grid) -> Estimate:
        seen.append(sorted(part.answer.tolist()))
        return Estimate(value=0.25, low=0.25, high=0.25, n=1)

    assert made(consist=rule).estimates["consist"].value == 0.25
    assert sorted(seen) == [[7, 7, 7, 8], [7, 7, 7, 8, 9], [9]]


def test_figures_show_what_was_measured() -> None:
    histogram, curves, strip, bars = made().figures
    assert isinstance(histogram, Histogram) and sum(histogram.counts) == 100
    assert [name for name, _ in histogram.marks] == ["lowest", "mean", "highest"]
    middles = np.add(histogram.edges[1:], histogram.edges[:-1]) / 2
    assert middles == pytest.approx([1 / 3, 2 / 3])  # three pairs; one of A's is always right
    assert isinstance(curves, Curves) and sum(curves.curves[0].sizes) == 4
    assert isinstance(strip, Strip) and strip.labels == ("A l", "B l")
    assert strip.values == ((1.0, 0.5), (0.0,))
    assert isinstance(bars, Bars) and bars.labels == ("all pairs", "A l", "B l")


def test_an_empty_grid_gives_no_figure_and_no_number() -> None:
    empty = sections(grid([], []), relations=RELATIONS, templates=TEMPLATES, draws=10)
    assert all(estimate.value is None for estimate in empty.estimates.values())
    assert empty.figures == ()
    assert set(made().estimates) == set(empty.estimates)
