"""Figures that every multi-prompt probe has. Knows numbers and names, nothing of prompts.

A figure with nothing to show is None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

import numpy as np

from sonde.core.facts import Relation, Template
from sonde.core.reports import Bars, Curve, Curves, Estimate, Histogram, Series, Strip
from sonde.metrics.accuracy import Fluctuation
from sonde.metrics.calibration import Bin
from sonde.metrics.grid import Floats, Ints

BINS = 40
COVERAGES = ("average", "average_best_name", "maximum", "oracle")


def fluctuation_histogram(drawn: Fluctuation | None, draw: str) -> Histogram | None:
    """How the accuracy spreads over the draws, with its ends and its mean marked."""
    if drawn is None:
        return None
    values = drawn.draws
    low, mean, high = float(values.min()), float(values.mean()), float(values.max())
    counts, edges = np.histogram(values, _edges(low, high, drawn.range.n))
    what = (
        "one template per relation and one name per pair"
        if draw == "relation"
        else "one prompt per pair"
    )
    return Histogram(
        id="fluctuation",
        title=f"Accuracy over {len(values):,} draws of {what}",
        axis="accuracy of a draw",
        edges=tuple(map(float, edges)),
        counts=tuple(map(int, counts)),
        marks=(("lowest", low), ("mean", mean), ("highest", high)),
        note=f"Range {100 * (high - low):.1f} points; standard deviation "
        f"{100 * float(values.std()):.2f} points, {100 * drawn.closed_form:.2f} in closed form.",
    )


def _edges(low: float, high: float, pairs: int) -> Floats:
    """Edges between the accuracies that so many pairs can have, the same number in each bin."""
    first, last = round(low * pairs), round(high * pairs)
    step = max(1, ceil((last - first + 1) / BINS))
    bins = ceil((last - first + 1) / step)
    edges = (first - 0.5 + step * np.arange(bins + 1)) / pairs
    return np.asarray(np.clip(edges, 0.0, 1.0), dtype=np.float64)  # no accuracy lies outside


def calibration_curve(bins: Sequence[Bin], name: str = "model") -> Curves | None:
    """Accuracy against confidence; below the diagonal a model is too sure."""
    if not bins:
        return None
    curve = Curve(
        name=name,
        x=tuple(b.confidence for b in bins),
        y=tuple(b.accuracy for b in bins),
        sizes=tuple(b.n for b in bins),
    )
    return Curves(
        id="calibration",
        title="Accuracy against confidence",
        x_axis="mean confidence of the bin",
        y_axis="accuracy of the bin",
        curves=(curve,),
        diagonal=True,
        note="Ten bins of equally many prompts. On the diagonal confidence can be trusted; below "
        "it the model is too sure.",
    )


def template_strip(
    asked: Sequence[tuple[Relation, int]],
    templates: Sequence[Template],
    accuracies: Floats,
    owners: Ints,
) -> Strip | None:
    """The accuracy of each template, one row a relation, those with the widest spread first."""
    measured = ~np.isnan(accuracies)
    rows = []
    for relation, number in asked:
        own = np.flatnonzero((owners == number) & measured)
        if len(own):
            spread = float(accuracies[own].max() - accuracies[own].min())
            rows.append((-spread, f"{relation.id} {relation.label}", own))
    if not rows:
        return None
    rows.sort(key=lambda row: row[:2])
    return Strip(
        id="templates",
        title="Accuracy of every template",
        axis="accuracy of the template",
        labels=tuple(label for _, label, _ in rows),
        values=tuple(tuple(map(float, accuracies[own])) for _, _, own in rows),
        names=tuple(tuple(templates[t].text for t in own.tolist()) for _, _, own in rows),
        groups=tuple(tuple(templates[t].source for t in own.tolist()) for _, _, own in rows),
        note="Relations whose templates differ the most stand first.",
    )


def coverage_bars(
    asked: Sequence[tuple[Relation, int]], estimates: Mapping[str, Estimate]
) -> Bars | None:
    """Pairs answered right by one prompt, by the best templates, by any prompt."""
    if not asked:
        return None
    ends = ["", *(f".relation.{relation.id}" for relation, _ in asked)]
    if len(asked) == 1:
        ends = [""]
    labels = ("all pairs", *(f"{r.id} {r.label}" for r, _ in asked))[: len(ends)]
    return Bars(
        id="coverage",
        title="Coverage: pairs answered right",
        axis="share of pairs",
        labels=labels,
        series=tuple(
            Series(
                name=name.replace("_", " "),
                values=tuple(estimates[f"coverage.{name}{end}"] for end in ends),
            )
            for name in COVERAGES
        ),
        note="Average: a prompt chosen at random. Maximum: each relation's best template. Oracle: "
        "any prompt. Whiskers are 95 % intervals.",
    )
