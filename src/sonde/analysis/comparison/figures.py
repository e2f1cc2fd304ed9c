"""Figures that show several runs in one. A figure with nothing to show is None."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.analysis.comparison.numbers import Numbers
from sonde.core.reports import Bars, Curve, Curves, Estimate, HeatMap, Series

COVERAGES = ("average", "average_best_name", "maximum", "oracle")

Matrix = Sequence[Sequence[Estimate]]


def sharing_map(names: Sequence[str], rates: Matrix) -> HeatMap:
    """The sharing rates; the row is the denominator."""
    return HeatMap(
        id="sharing",
        title="Sharing rate: what the run of the row knows that the run of the column knows too",
        rows=tuple(names),
        columns=tuple(names),
        values=_values(rates),
        note="Of the pairs that the row's run gets right under a template, the share that the "
        "column's run gets right under the same template.",
    )


def rank_map(names: Sequence[str], tau: Matrix) -> HeatMap | None:
    """The agreement of runs on which templates are good."""
    if all(value is None for row in _values(tau) for value in row):
        return None
    return HeatMap(
        id="rank-agreement",
        title="Agreement on the order of templates: Kendall's τ-b, mean over relations",
        rows=tuple(names),
        columns=tuple(names),
        values=_values(tau),
        low=-1.0,
        high=1.0,
        kind="number",
        note="1: both runs rank the templates of each relation alike; 0: by chance; -1: reversed.",
    )


def calibration_curves(names: Sequence[str], found: Sequence[Numbers]) -> Curves | None:
    """Accuracy against confidence, a curve for each run whose confidence was measured."""
    curves = tuple(
        Curve(
            name=name,
            x=tuple(b.confidence for b in numbers.bins),
            y=tuple(b.accuracy for b in numbers.bins),
            sizes=tuple(b.n for b in numbers.bins),
        )
        for name, numbers in zip(names, found, strict=True)
        if numbers.bins
    )
    if not curves:
        return None
    return Curves(
        id="calibration",
        title="Accuracy against confidence",
        x_axis="mean confidence of the bin",
        y_axis="accuracy of the bin",
        curves=curves,
        diagonal=True,
        note="Ten bins of equally many prompts. On the diagonal confidence can be trusted; below "
        "it a model is too sure.",
    )


def coverage_bars(names: Sequence[str], found: Sequence[Numbers]) -> Bars:
    """Pairs that each run answers right by one prompt, by the best templates, by any prompt."""
    return Bars(
        id="coverage",
        title="Coverage: pairs answered right",
        axis="share of pairs",
        labels=tuple(names),
        series=tuple(
            Series(
                name=kind.replace("_", " "),
                values=tuple(numbers.estimates[f"coverage.{kind}"] for numbers in found),
            )
            for kind in COVERAGES
        ),
        note="Average: a prompt chosen at random. Maximum: each relation's best template. Oracle: "
        "any prompt. Whiskers are 95 % intervals.",
    )


def _values(matrix: Matrix) -> tuple[tuple[float | None, ...], ...]:
    return tuple(tuple(estimate.value for estimate in row) for row in matrix)
