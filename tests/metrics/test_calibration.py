"""Calibration: the identity, the bins, and intervals that know which prompts belong together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.reports import Estimate
from sonde.metrics.calibration import (
    Calibration,
    calibration,
    expected_calibration_error,
    overconf_by,
    overconf_by_template,
)
from sonde.metrics.judged import Bools, Floats, Ints
from tests.grids import measured, one_relation


class Answers(NamedTuple):
    """One entry per prompt."""

    confidence: Floats
    right: Bools
    pair: Ints


SHARES = st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(0, 1, allow_subnormal=False)
ANSWERS = st.lists(
    st.tuples(SHARES, st.booleans(), st.integers(0, 9)), min_size=1, max_size=40
).map(lambda rows: made(*zip(*rows, strict=True)))


def made(confidence: object, right: object, pair: object) -> Answers:
    return Answers(
        np.array(confidence, dtype=np.float64), np.array(right, dtype=np.bool_), np.array(pair)
    )


def calibrated(given: Answers, bins: int = 10) -> Calibration:
    found = calibration(*given, bins=bins)
    assert found is not None
    return found


@given(ANSWERS, st.integers(1, 12))
def test_overconfidence_is_mean_confidence_less_accuracy(of: Answers, bins: int) -> None:
    found = calibrated(of, bins)
    expected = of.confidence.mean() - of.right.mean()
    assert found.overconf.value == pytest.approx(expected, abs=1e-12)
    weighted = sum(b.n * (b.confidence - b.accuracy) for b in found.bins) / len(of.right)
    assert weighted == pytest.approx(expected, abs=1e-12)


@given(ANSWERS, st.integers(1, 12))
def test_the_error_alone_is_that_of_the_calibration(of: Answers, bins: int) -> None:
    alone = expected_calibration_error(of.confidence, of.right, bins)
    assert alone == pytest.approx(calibrated(of, bins).ece.value, abs=1e-12)


@given(ANSWERS, st.integers(1, 12))
def test_bins_are_equal_in_size_and_sorted_by_confidence(of: Answers, bins: int) -> None:
    found = calibrated(of, bins).bins
    sizes = [b.n for b in found]
    assert sum(sizes) == len(of.right)
    assert max(sizes) - min(sizes) <= 1
    assert len(found) == min(bins, len(of.right))
    edges = [edge for b in found for edge in (b.low, b.high)]
    assert edges == sorted(edges)
    assert all(b.low - 1e-12 <= b.confidence <= b.high + 1e-12 for b in found)
    assert all(0 <= b.accuracy <= 1 + 1e-12 for b in found)


@given(ANSWERS)
def test_the_absolute_gap_is_at_least_the_signed_one(of: Answers) -> None:
    found = calibrated(of)
    for estimate, lowest in ((found.overconf, -1), (found.ece, 0)):
        low, value, high = measured(estimate)
        assert lowest - 1e-12 <= low <= value <= high <= 1 + 1e-12
    assert measured(found.ece)[1] >= abs(measured(found.overconf)[1]) - 1e-12
    gaps = [b.n * abs(b.confidence - b.accuracy) for b in found.bins]
    assert found.ece.value == pytest.approx(sum(gaps) / len(of.right), abs=1e-12)


@given(ANSWERS, st.integers(0, 9))
def test_the_order_of_prompts_does_not_matter(of: Answers, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(of.right))
    one, other = (
        calibrated(of),
        calibrated(Answers(of.confidence[order], of.right[order], of.pair[order])),
    )
    assert one.overconf.value == pytest.approx(other.overconf.value, abs=1e-12)
    assert one.ece.value == pytest.approx(other.ece.value, abs=1e-12)
    for a, b in zip(one.bins, other.bins, strict=True):
        assert (a.low, a.high, a.n) == (b.low, b.high, b.n)
        assert a.accuracy == pytest.approx(b.accuracy, abs=1e-12)
    assert one.overconf.low == pytest.approx(other.overconf.low, abs=1e-9)
    assert one.overconf.high == pytest.approx(other.overconf.high, abs=1e-9)


def test_a_model_that_is_as_right_as_it_is_sure_has_no_gap() -> None:
    of = made([0.0] * 10 + [1.0] * 10, [False] * 10 + [True] * 10, range(20))
    found = calibrated(of, 2)
    assert found.overconf.value == found.ece.value == 0


def test_gaps_that_cancel_show_in_the_absolute_error_alone() -> None:
    of = made([0.0] * 10 + [1.0] * 10, [True] * 10 + [False] * 10, range(20))
    found = calibrated(of, 2)
    assert (found.overconf.value, found.ece.value) == (0.0, 1.0)


def test_chance_gaps_do_not_push_the_interval_off_the_value() -> None:
    rng = np.random.default_rng(0)
    confidence = rng.random(300)
    found = calibrated(Answers(confidence, rng.random(300) < confidence, np.arange(300)), bins=50)
    low, value, high = measured(found.ece)
    assert low < 0.9 * value < 1.1 * value < high


def test_unmeasured_confidence_is_left_out() -> None:
    found = calibrated(made([0.5, np.nan], [True, True], [0, 1]))
    assert found.overconf.n == 1
    assert calibration(*made([np.nan], [True], [0])) is None
    assert calibration(*made([], [], [])) is None


def test_equal_confidence_does_not_make_the_interval_narrow() -> None:
    right = np.arange(100) % 2 == 0
    found = calibrated(Answers(np.full(100, 0.5), right, np.arange(100)))
    assert found.overconf.value == 0
    assert measured(found.overconf) == pytest.approx((-0.098, 0, 0.098), abs=0.02)


def test_prompts_of_one_pair_are_no_independent_evidence() -> None:
    right, pair = np.repeat(np.arange(20) % 2 == 0, 30), np.repeat(np.arange(20), 30)
    alone = calibrated(Answers(np.full(600, 0.5), right, np.arange(600)))
    together = calibrated(Answers(np.full(600, 0.5), right, pair))
    assert measured(together.overconf)[0] < 2 * measured(alone.overconf)[0]


def test_groups_have_the_overconfidence_of_their_own_prompts() -> None:
    of = made([0.9, 0.7, 0.2, 0.4, np.nan], [True, False, False, True, True], [0, 1, 0, 1, 2])
    groups = np.array([3, 3, 1, 3, 1])
    found = overconf_by(groups, *of)
    assert [(group, n) for group, _, n in found] == [(1, 1), (3, 3)]
    assert [e.value for _, e, _ in found] == pytest.approx([0.2, 2.0 / 3 - 2 / 3])
    assert [group for group, _, _ in overconf_by(groups, *of, floor=2)] == [3]
    assert overconf_by(groups[:0], *made([], [], [])) == []


def test_the_interval_of_a_group_knows_its_pairs() -> None:
    rng = np.random.default_rng(0)
    hits, width = 0, 0.0
    for _ in range(300):
        chance = rng.random(30)
        right = rng.random((30, 5)) < chance[:, None]
        pair = np.repeat(np.arange(30), 5)
        ((_, found, _),) = overconf_by(pair * 0, np.full(150, 0.7), right.ravel(), pair)
        low, _, high = measured(found)
        hits += low <= 0.7 - 0.5 <= high
        width += (high - low) / 300
    assert 274 <= hits <= 297
    assert width < 0.3


def test_a_group_of_one_pair_says_nothing_of_others() -> None:
    ((_, found, _),) = overconf_by(np.zeros(3, np.int64), *made([0.5] * 3, [True] * 3, [0] * 3))
    assert (found.value, found.low, found.high) == (-0.5, -1, 1)


def test_overconf_by_template_leaves_out_what_has_too_few_one_token_answers() -> None:
    # template 0: sure 0.8 twice, one right: 0.3; template 1: 0.4 and 0.6, both right: -0.5;
    # template 2: sure once only
    grid = one_relation([[[0], [0], [0]], [[1], [0], [0]]])
    sure = np.array([0.8, 0.4, 0.9, 0.8, 0.6, np.nan])
    found = overconf_by_template(grid, sure, floor=2, seed=0)
    short = {name.rpartition(".")[2]: estimate for name, estimate in found.items()}
    assert {k: e.value for k, e in short.items()} == pytest.approx(
        {"mean": -0.1, "stdev": np.std([0.3, -0.5], ddof=1), "max": 0.3, "min": -0.5}
    )
    assert [short[k].n for k in ("mean", "stdev", "max", "min")] == [2, 2, 2, 2]
    with_all = overconf_by_template(grid, sure, floor=1, seed=0)
    assert with_all["overconf_by_template.mean"].n == 3
    none = overconf_by_template(grid, sure, floor=3, seed=0)
    assert set(none.values()) == {Estimate.not_measured()}


def test_one_template_has_no_standard_deviation() -> None:
    grid, sure = one_relation([[[0]], [[1]]]), np.array([0.8, 0.8])
    found = overconf_by_template(grid, sure, floor=1, seed=0)
    assert found["overconf_by_template.mean"].value == pytest.approx(0.3)
    assert found["overconf_by_template.stdev"] == Estimate.not_measured()
