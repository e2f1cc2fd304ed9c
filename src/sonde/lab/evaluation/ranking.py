"""Whether an estimator's score sets known facts above the others: AUROC against both truths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from sonde.core.reports import Estimate
from sonde.lab.evaluation.asked import Asked
from sonde.lab.evaluation.measured import MISSING, Measured
from sonde.lab.worlds.truth import Truth
from sonde.stats.ranking import auroc, auroc_interval


def ranking(asked: Asked) -> Iterator[tuple[str, Measured]]:
    """`auroc.taught` and `auroc.stored`: over all facts that were asked."""
    for truth in get_args(Truth):
        yield f"auroc.{truth}", _auroc(asked, truth)


def _auroc(asked: Asked, truth: Truth) -> Measured:
    score, positive = asked.verdicts.score, asked.true(truth)
    value = auroc(score, positive)
    if value is None:
        return MISSING

    def estimate() -> Estimate:
        low, high = auroc_interval(score, positive)
        return Estimate(value=value, low=low, high=high, n=len(score))

    return Measured(value=value, estimate=estimate)
