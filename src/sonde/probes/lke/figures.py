"""Figures of in-context estimation. Knows estimates and choices, nothing of prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from sonde.core.reports import Curve, Curves, DotPlot, Estimate, Figure, Histogram, Series, Strip
from sonde.metrics.calibration import Bin
from sonde.metrics.choices import accuracy_at_over
from sonde.probes.lke.numbers import CONTROL
from sonde.probes.lke.tally import Outcomes

GRID = (*(i / 20 for i in range(20)), 0.99)
Estimates = Mapping[str, Estimate]


def figures(estimates: Estimates, bins: Sequence[Bin], outcomes: Outcomes) -> tuple[Figure, ...]:
    """Those figures that have something to show."""
    return tuple(_figures(estimates, bins, outcomes)) if len(outcomes.columns) else ()


def _figures(estimates: Estimates, bins: Sequence[Bin], outcomes: Outcomes) -> Iterator[Figure]:
    yield _by_relation(estimates, outcomes)
    yield _accuracy_at(outcomes)
    yield _calibration(bins)
    yield _confidence(outcomes)
    if len(outcomes.seeds) > 1:
        yield _seeds(estimates, outcomes)


def _by_relation(estimates: Estimates, outcomes: Outcomes) -> DotPlot:
    def value(id: str) -> float:
        return estimates[f"accuracy.relation.{id}"].value or 0.0

    ordered = sorted(outcomes.relations, key=lambda r: (-value(r.id), r.id))
    return DotPlot(
        id="accuracy-by-relation",
        title="Accuracy of every relation beside the majority control",
        axis="accuracy",
        labels=tuple(f"{r.id} {r.label}" for r in ordered),
        series=tuple(
            Series(name=name, values=tuple(estimates[f"{metric}.relation.{r.id}"] for r in ordered))
            for name, metric in (("model", "accuracy"), ("majority control", CONTROL))
        ),
        note="Whiskers are 95 % intervals.",
    )


def _accuracy_at(outcomes: Outcomes) -> Curves:
    columns = outcomes.columns
    owners = outcomes.relation[columns.fact]
    points = [accuracy_at_over(columns.sure, columns.right, owners, level) for level in GRID]
    right = [(p.level, p.accuracy) for p in points if p.accuracy is not None]
    return Curves(
        id="accuracy-at-k",
        title="Accuracy@K: accuracy where the model is at least K sure",
        x_axis="K, the least probability of the chosen option",
        y_axis="share",
        curves=(
            Curve(name="accuracy", x=tuple(k for k, _ in right), y=tuple(a for _, a in right)),
            Curve(
                name="share of choices left", x=GRID, y=tuple(point.retained for point in points)
            ),
        ),
        note="Means over relations; the accuracy over those of which a choice is left. Where few "
        "are left it is uncertain; the table gives intervals.",
    )


def _calibration(bins: Sequence[Bin]) -> Curves:
    return Curves(
        id="calibration",
        title="Accuracy against confidence",
        x_axis="mean probability of the chosen option in the bin",
        y_axis="accuracy of the bin",
        curves=(
            Curve(
                name="model",
                x=tuple(b.confidence for b in bins),
                y=tuple(b.accuracy for b in bins),
                sizes=tuple(b.n for b in bins),
            ),
        ),
        diagonal=True,
        note="Ten bins of equally many choices. On the diagonal confidence can be trusted; below "
        "it the model is too sure.",
    )


def _confidence(outcomes: Outcomes) -> Histogram:
    counts, edges = np.histogram(outcomes.columns.sure, bins=20, range=(0.0, 1.0))
    return Histogram(
        id="confidence",
        title="How sure the model is of what it chooses",
        axis="probability of the chosen option",
        edges=tuple(map(float, edges)),
        counts=tuple(map(int, counts)),
    )


def _seeds(estimates: Estimates, outcomes: Outcomes) -> Strip:
    def values(id: str) -> tuple[tuple[float, str], ...]:
        found = [(estimates[f"accuracy.seed.{s}.relation.{id}"].value, s) for s in outcomes.seeds]
        return tuple((value, f"seed {seed}") for value, seed in found if value is not None)

    asked = [r for r in outcomes.relations if values(r.id)]
    return Strip(
        id="seeds",
        title="Accuracy with every draw of the examples",
        axis="accuracy with one draw",
        labels=tuple(f"{r.id} {r.label}" for r in asked),
        values=tuple(tuple(value for value, _ in values(r.id)) for r in asked),
        names=tuple(tuple(name for _, name in values(r.id)) for r in asked),
        note="One dot a seed. The facts and their options stay the same.",
    )
