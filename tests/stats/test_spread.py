"""The spread of repeated measurements."""

from __future__ import annotations

import numpy as np

from sonde.stats.intervals import deviation


def test_equal_measurements_have_no_spread() -> None:
    assert deviation([0.5, 0.5, 0.5]) == (0.0, 0.0, 0.0)


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(2000):
        _, low, high = deviation(rng.normal(0, 1, 5).tolist())
        held += low <= 1 <= high
    assert 0.93 < held / 2000 < 0.97
