"""Every number of in-context estimation, by its name. Knows choices in columns, no tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from sonde.core.reports import Estimate, Metric
from sonde.metrics.calibration import Bin, calibration
from sonde.metrics.choices import Bools, Floats
from sonde.metrics.estimates import Resampled, Sample, spread_of
from sonde.probes.lke.metrics import (
    ABOVE,
    ACCURACY,
    BY_SEED,
    CONFIDENCE,
    MAJORITY,
    MASS,
    OVER_SEEDS,
    at_level,
)
from sonde.probes.lke.tally import Columns, Outcomes
from sonde.reporting.build.multi_prompt.metrics import ECE, OVERCONF
from sonde.reporting.catalogue import RELATIONS

Value = Callable[[Columns], Floats]
Samples = Mapping[str, Sample]
"""Values by relation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """Estimates by name, and the bins behind the calibration figure."""

    estimates: Mapping[str, Estimate]
    bins: tuple[Bin, ...]


def measure(outcomes: Outcomes, levels: tuple[float, ...], seed: int) -> Numbers:
    """Everything that is estimated from some choices."""
    columns = outcomes.columns
    estimates = {}
    for metric, value, minus in _metrics():
        estimates.update(_averaged(metric, outcomes, _per_fact(outcomes, value, minus), seed))
    for level in levels:
        accuracy, retained = at_level(level)
        at = _rows(outcomes, _right, columns.sure >= level)
        estimates.update(_averaged(accuracy, outcomes, at, seed, each="choices"))
        left = _rows(outcomes, partial(_sure, level))
        estimates.update(_averaged(retained, outcomes, left, seed, each="choices"))
    found = calibration(columns.sure, columns.right, columns.fact, seed=seed)
    unknown = Estimate.not_measured()
    estimates[OVERCONF.id] = unknown if found is None else found.overconf
    estimates[ECE.id] = unknown if found is None else found.ece
    estimates.update(_seeds(outcomes, seed))
    return Numbers(estimates=estimates, bins=() if found is None else found.bins)


def _metrics() -> Iterator[tuple[Metric, Value, Value | None]]:
    yield ACCURACY, _right, None
    yield MAJORITY, _control, None
    yield ABOVE, _right, _control
    yield MASS, lambda c: c.mass, None
    yield CONFIDENCE, lambda c: c.sure, None


def _right(columns: Columns) -> Floats:
    return columns.right.astype(np.float64)


def _control(columns: Columns) -> Floats:
    return columns.control.astype(np.float64)


def _sure(level: float, columns: Columns) -> Floats:
    return (columns.sure >= level).astype(np.float64)


def _averaged(
    metric: Metric,
    outcomes: Outcomes,
    samples: Mapping[str, Sample],
    seed: int,
    each: str = "facts",
) -> dict[str, Estimate]:
    """By relation, over relations, and over all that there is `each` one value of."""
    resampled = Resampled(samples, seed)
    return {
        metric.at(RELATIONS): resampled.mean_over_relations(),
        metric.at(f"mean_over_{each}"): resampled.mean_over_facts(),
        **{metric.at(f"relation.{r.id}"): resampled.relation(r.id) for r in outcomes.relations},
    }


def _per_fact(outcomes: Outcomes, value: Value, minus: Value | None) -> dict[str, Sample]:
    """One value per fact, its mean over the draws of examples; facts of a subject go together."""
    samples = {}
    for number, relation in enumerate(outcomes.relations):
        own = outcomes.of(number)
        facts, index = np.unique(own.fact, return_inverse=True)
        samples[relation.id] = Sample(
            values=_means(value(own), index),
            clusters=outcomes.subjects[facts],
            minus=None if minus is None else _means(minus(own), index),
        )
    return samples


def _means(values: Floats, index: np.ndarray) -> Floats:
    sums = np.bincount(index, weights=values).astype(np.float64)
    return np.asarray(sums / np.bincount(index), dtype=np.float64)


def _rows(outcomes: Outcomes, value: Value, kept: Bools | None = None) -> dict[str, Sample]:
    """One value per choice, of the choices kept."""
    samples = {}
    columns = outcomes.columns if kept is None else outcomes.columns.where(kept)
    owners = outcomes.relation[columns.fact]
    for number, relation in enumerate(outcomes.relations):
        own = columns.where(owners == number)
        clusters = outcomes.subjects[own.fact]
        samples[relation.id] = Sample(values=value(own), clusters=clusters)
    return samples


def _seeds(outcomes: Outcomes, seed: int) -> dict[str, Estimate]:
    """The accuracy with each draw of examples, and how far these lie apart."""
    by_draw = []
    for turn in range(len(outcomes.seeds)):
        samples = _rows(outcomes, _right, outcomes.columns.turn == turn)
        by_draw.append(Resampled(samples, seed))
    overs = {RELATIONS: [draw.mean_over_relations() for draw in by_draw]}
    for relation in outcomes.relations:
        overs[f"relation.{relation.id}"] = [draw.relation(relation.id) for draw in by_draw]
    estimates = {}
    for over, values in overs.items():
        for number, estimate in zip(outcomes.seeds, values, strict=True):
            estimates[BY_SEED.of(s=number).at(over)] = estimate
        measured = [estimate.value for estimate in values if estimate.value is not None]
        estimates[OVER_SEEDS.at(over)] = spread_of(measured)
    return estimates
