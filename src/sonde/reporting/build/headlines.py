"""Headline numbers from metrics. Knows estimates by name, no probe."""

from __future__ import annotations

from sonde.core.reports import Headline, Metric
from sonde.reporting.catalogue import OVER

COMMONEST = "always the commonest object"


def headline(
    metric: Metric,
    over: str = "",
    *,
    label: str = "",
    control: Metric | None = None,
    above: Metric | None = None,
    control_label: str = COMMONEST,
) -> Headline:
    """A number that belongs at the top, with its control and how far it is above it."""
    words = OVER.get(over, over)
    return Headline(
        label=label or (f"{metric.label}, {words}" if words else metric.label),
        estimate=metric.at(over),
        control=control.at(over) if control else "",
        control_label=control_label if control else "",
        difference=above.at(over) if above else "",
        kind=metric.unit,
        best=0.0 if metric.better in ("lower", "nearer 0") else 1.0,
    )
