"""Figures from estimates and plain values. Knows neither probes nor what draws figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np

from sonde.core.facts import Relation
from sonde.core.reports import (
    Bars,
    Curve,
    Curves,
    DotPlot,
    Estimates,
    Histogram,
    Metric,
    Series,
    Strip,
    Unit,
)
from sonde.metrics.calibration import Bin
from sonde.metrics.grid import Floats
from sonde.reporting.build.tables import titled

WHISKERS = "Whiskers are 95 % intervals."

Named = Mapping[str, Metric]
"""Metrics by what the figure calls them."""

Dot = tuple[float, str] | tuple[float, str, str]
"""A value with its name, and the group that it is of."""


def dots_by_relation(
    estimates: Estimates,
    relations: Iterable[Relation],
    series: Named,
    *,
    id: str,
    title: str,
    axis: str,
    note: str = WHISKERS,
) -> DotPlot:
    """A row per relation that has a number, the best of the first series at the top."""
    first = next(iter(series.values()))
    sign = 1 if first.better == "lower" else -1

    def value(relation: Relation, metric: Metric) -> float | None:
        return estimates[metric.at(f"relation.{relation.id}")].value

    measured = [r for r in relations if any(value(r, m) is not None for m in series.values())]
    measured.sort(key=lambda r: (sign * (value(r, first) or 0.0), r.id))
    places = {titled(r): f"relation.{r.id}" for r in measured}
    return DotPlot(
        id=id,
        title=title,
        kind=_scale(first.unit),
        axis=axis,
        labels=tuple(places),
        series=_series(estimates, series, places.values()),
        note=note,
    )


def bars(
    estimates: Estimates,
    places: Mapping[str, str],
    series: Named,
    *,
    id: str,
    title: str,
    axis: str,
    note: str = WHISKERS,
) -> Bars:
    """Bars for each place: its label, and how the names of its estimates end."""
    return Bars(
        id=id,
        title=title,
        kind=_scale(next(iter(series.values())).unit),
        axis=axis,
        labels=tuple(places),
        series=_series(estimates, series, places.values()),
        note=note,
    )


def _series(estimates: Estimates, series: Named, overs: Iterable[str]) -> tuple[Series, ...]:
    overs = tuple(overs)
    return tuple(
        Series(name=name, values=tuple(estimates[metric.at(over)] for over in overs))
        for name, metric in series.items()
    )


def _scale(unit: Unit) -> Literal["percent", "number"]:
    return "percent" if unit == "percent" else "number"


def calibration(
    bins: Sequence[Bin],
    *,
    confidence: str = "confidence",
    what: str = "prompts",
    name: str = "model",
) -> Curves:
    """Accuracy against confidence; below the diagonal a model is too sure."""
    curve = Curve(
        name=name,
        x=tuple(b.confidence for b in bins),
        y=tuple(b.accuracy for b in bins),
        sizes=tuple(b.n for b in bins),
    )
    return Curves(
        id="calibration",
        title="Accuracy against confidence",
        x_axis=f"mean {confidence}",
        y_axis="accuracy of the bin",
        curves=(curve,),
        diagonal=True,
        note=f"Ten bins of equally many {what}. On the diagonal confidence can be trusted; below "
        "it the model is too sure.",
    )


def distribution(
    values: Floats,
    *,
    id: str,
    title: str,
    axis: str,
    unit: Unit = "percent",
    edges: Floats | int = 20,
    marks: Mapping[str, float] | None = None,
    note: str = "",
) -> Histogram:
    """How often values fall between edges: those given, or so many bins from 0 to 1."""
    counts, between = np.histogram(values, edges, (0.0, 1.0) if isinstance(edges, int) else None)
    return Histogram(
        id=id,
        title=title,
        kind=_scale(unit),
        axis=axis,
        edges=tuple(map(float, between)),
        counts=tuple(map(int, counts)),
        marks=tuple((marks or {}).items()),
        note=note,
    )


def strip(
    rows: Iterable[tuple[str, Sequence[Dot]]],
    *,
    id: str,
    title: str,
    axis: str,
    unit: Unit = "percent",
    note: str = "",
) -> Strip:
    """A row of dots for each label; rows without dots are left out."""
    kept = [(label, dots) for label, dots in rows if dots]
    grouped = any(len(dot) > 2 for _, dots in kept for dot in dots)
    return Strip(
        id=id,
        title=title,
        kind=_scale(unit),
        axis=axis,
        labels=tuple(label for label, _ in kept),
        values=tuple(tuple(float(dot[0]) for dot in dots) for _, dots in kept),
        names=tuple(tuple(dot[1] for dot in dots) for _, dots in kept),
        groups=tuple(tuple(dot[-1] for dot in dots) for _, dots in kept) if grouped else (),
        note=note,
    )
