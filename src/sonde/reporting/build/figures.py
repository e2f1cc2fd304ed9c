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
    Estimate,
    Estimates,
    HeatMap,
    Histogram,
    Metric,
    Series,
    Strip,
    Unit,
)
from sonde.metrics.calibration import Bin
from sonde.metrics.judged import Floats
from sonde.reporting.build.tables import titled

LEAST = 10  # answers of a bin whose accuracy is drawn
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
    return dots(estimates, places, series, id=id, title=title, axis=axis, note=note)


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
        kind=_scale(next(iter(series.values()), Metric("", "")).unit),
        axis=axis,
        labels=tuple(places),
        series=_series(estimates, series, places.values()),
        note=note,
    )


def dots(
    estimates: Estimates,
    places: Mapping[str, str],
    series: Named,
    *,
    id: str,
    title: str,
    axis: str,
    note: str = WHISKERS,
) -> DotPlot:
    """A row of dots for each place: its label, and how the names of its estimates end."""
    return DotPlot(
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
    return "percent" if unit in ("percent", "points") else "number"


def calibration(
    bins: Mapping[str, Sequence[Bin]],
    *,
    confidence: str = "confidence of the bin",
    what: str = "prompts",
) -> Curves:
    """Accuracy against confidence, a curve for each name; below the diagonal one is too sure."""
    curves = tuple(
        Curve(
            name=name,
            x=tuple(b.confidence for b in own),
            y=tuple(b.accuracy for b in own),
            sizes=tuple(b.n for b in own),
        )
        for name, own in bins.items()
        if own
    )
    return Curves(
        id="calibration",
        title="Accuracy against confidence",
        x_axis=f"mean {confidence}",
        y_axis="accuracy of the bin",
        curves=curves,
        diagonal=True,
        least=LEAST,
        note=f"Ten bins of equally many {what}. On the diagonal confidence can be trusted; below "
        f"it {'the' if len(bins) == 1 else 'a'} model is too sure.",
    )


def heat(
    rows: Iterable[str],
    columns: Iterable[str],
    values: Iterable[Iterable[Estimate | float | None]],
    *,
    id: str,
    title: str,
    unit: Unit = "percent",
    low: float = 0.0,
    high: float = 1.0,
    note: str = "",
) -> HeatMap:
    """A value for each row and column, from `low` to `high`; of estimates the values alone."""
    return HeatMap(
        id=id,
        title=title,
        kind=_scale(unit),
        rows=tuple(rows),
        columns=tuple(columns),
        values=tuple(
            tuple(cell.value if isinstance(cell, Estimate) else cell for cell in row)
            for row in values
        ),
        low=low,
        high=high,
        note=note,
    )


def curve(
    name: str,
    points: Iterable[tuple[float, Estimate]],
    *,
    joined: bool = True,
    sized: bool = False,
) -> Curve:
    """Estimates at their places, with their intervals; those not measured are left out."""
    kept = [(x, y) for x, y in points if y.value is not None]
    return Curve(
        name=name,
        x=tuple(x for x, _ in kept),
        y=tuple(y.value or 0.0 for _, y in kept),
        sizes=tuple(y.n for _, y in kept) if sized else (),
        low=tuple(y.ends[0] for _, y in kept),
        high=tuple(y.ends[1] for _, y in kept),
        joined=joined,
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
