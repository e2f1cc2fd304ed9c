"""Whether an estimator's score can be read as the probability that a fact is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import numpy as np

from sonde.core.reports import Estimate
from sonde.lab.evaluation.asked import Asked
from sonde.lab.evaluation.measured import MANY, MISSING, Measured, mean
from sonde.lab.worlds.truth import Bools, Floats, Truth
from sonde.metrics.calibration import calibration as calibrated
from sonde.metrics.calibration import expected_calibration_error
from sonde.stats.intervals import Z


def calibration(asked: Asked) -> Iterator[tuple[str, Measured]]:
    """By each truth: `gap` (mean score less share known), `ece` over ten bins, and `brier`."""
    score = asked.verdicts.score
    every = np.ones(len(score), dtype=np.bool_)
    for truth in get_args(Truth):
        known = asked.true(truth).astype(np.float64)
        yield f"gap.{truth}", mean(score, asked.relation, every, minus=known)
        yield f"ece.{truth}", _ece(asked, truth)
        yield f"brier.{truth}", mean((score - known) ** 2, asked.relation, every)


def _ece(asked: Asked, truth: Truth) -> Measured:
    score, known = asked.verdicts.score, asked.true(truth)
    if not len(score):
        return MISSING

    value = expected_calibration_error(score, known)

    def estimate() -> Estimate:
        if len(score) > MANY:
            reach = Z * _spread(score, known)
            return Estimate(
                value=value, low=max(value - reach, 0.0), high=value + reach, n=len(score)
            )
        found = calibrated(score, known, np.arange(len(score)))
        return Estimate.not_measured() if found is None else found.ece

    return Measured(value=value, estimate=estimate)


def _spread(score: Floats, known: Bools) -> float:
    """Standard error of the error over ten bins, whose gaps keep their signs; for many facts."""
    gaps = (score - known)[np.argsort(score, kind="stable")]
    return float(np.sqrt(sum(part.var() * len(part) for part in np.array_split(gaps, 10)))) / len(
        gaps
    )
