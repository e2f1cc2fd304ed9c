"""A run beside its controls: what is called clear, and what a test says of it."""

from __future__ import annotations

from sonde.analysis.controls import Beside, paired
from sonde.analysis.joins import align
from tests.analysis.world import asked


def beside(model: list[int], control: list[int]) -> Beside:
    return paired(align([asked("model", [model]), asked("majority", [control])]), {}, 0)


def test_a_model_is_clearly_above_a_control_only_where_the_test_beside_it_says_so() -> None:
    # three won and none lost: p is 0.25, so the interval reaches 0
    few = beside([1] * 5 + [0], [1] * 2 + [0] * 4)
    assert few.estimates["controls.majority.above.mean_over_relations"].low == 0
    assert few.findings[0].startswith(
        "The model is not distinguishable from the control majority (+50.0"
    )
    assert few.tables[0].rows[0][-1] == "0 of 1"
    many = beside([1] * 12, [0] * 12)
    assert many.findings[0].startswith("The model is clearly above the control majority")
    assert many.tables[0].rows[0][-1] == "1 of 1"


def test_facts_of_one_subject_are_one_piece_of_evidence() -> None:
    runs = align([asked("model", [[1] * 12]), asked("majority", [[0] * 12])])
    subjects = {f"f{i}": f"Q{i % 2}" for i in range(12)}
    found = paired(runs, subjects, 0).estimates["controls.majority.p_value.mean_over_relations"]
    assert found.value is not None and found.value > 0.4
