"""The report of a sweep: the headline numbers of every cell of a grid of settings, side by side.

Knows reports, nothing of how their runs were made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sonde.core.reports import DotPlot, Estimate, Headline, Metric, Report, Series
from sonde.reporting.build.parts import shown
from sonde.reporting.build.tables import by_place

NARROW = 2
"""Numbers that a terminal shows of every cell; a page shows all."""

Cells = Sequence[tuple[Mapping[str, Any], Report]]
"""The settings of each cell, and its report."""


def sweep_report(title: str, cells: Cells) -> Report:
    """Every headline that all cells have, a row per cell."""
    labels = [label(values) for values, _ in cells]
    shared = [h for h in cells[0][1].headlines if all(h.estimate in r.estimates for _, r in cells)]
    metrics = [Metric(h.estimate, h.label, h.kind) for h in shared]
    columns = [metric if i < NARROW else metric.detail() for i, metric in enumerate(metrics)]
    places = {name: f"cell.{_slug(name)}" for name in labels}
    estimates = {
        metric.at(places[name]): report.estimates[metric.id]
        for metric in metrics
        for name, (_, report) in zip(labels, cells, strict=True)
    }
    notes = [note for _, report in cells for note in report.notes]
    return Report(
        title=title,
        summary=f"{len(cells)} runs, one for each cell of {', '.join(cells[0][0])}.",
        metrics=tuple(metrics),
        estimates=estimates,
        headlines=tuple(
            Headline(label=f"{h.label}: {name}", estimate=f"{h.estimate}.{place}", kind=h.kind)
            for h in shared[:1]
            for name, place in places.items()
        ),
        tables=(
            by_place(estimates, places, columns, head="settings", id="cells", title="Every cell"),
        ),
        figures=tuple(_figure(h, labels, cells) for h in shared[:1]),
        findings=shown(_spread(m, labels, cells) for m in metrics[:1]),
        notes=tuple(dict.fromkeys(notes)),
    )


def label(values: Mapping[str, Any]) -> str:
    """A cell in words.

    >>> label({"shots": 5, "style": "qa"})
    'shots=5, style=qa'
    """
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _slug(name: str) -> str:
    return re.sub(r"[^\w-]+", "-", name)


def _figure(headline: Headline, labels: Sequence[str], cells: Cells) -> DotPlot:
    names = {"model": headline.estimate}
    if headline.control:
        names[headline.control_label or "control"] = headline.control
    series = tuple(
        Series(name=name, values=tuple(_found(report, estimate) for _, report in cells))
        for name, estimate in names.items()
    )
    return DotPlot(
        id="cells",
        title=f"{headline.label}, cell by cell",
        axis=headline.label,
        labels=tuple(labels),
        series=series,
        note="Whiskers are 95 % intervals.",
    )


def _found(report: Report, name: str) -> Estimate:
    return report.estimates.get(name, Estimate.not_measured())


def _spread(metric: Metric, labels: Sequence[str], cells: Cells) -> str:
    """Between which values a number lies; which cell is best is not said, as nothing tests it."""
    values = {
        name: report.estimates[metric.id].value
        for name, (_, report) in zip(labels, cells, strict=True)
    }
    known = {name: value for name, value in values.items() if value is not None}
    if len(set(known.values())) < 2:
        return ""
    low, high = min(known, key=lambda n: known[n]), max(known, key=lambda n: known[n])
    words = f"{{:{'.1%' if metric.unit == 'percent' else '.3f'}}}".format
    return (
        f"{metric.label} lies between {words(known[low])} ({low}) and {words(known[high])} "
        f"({high}); whether two cells differ is for a paired test to say (sonde analyse)."
    )
