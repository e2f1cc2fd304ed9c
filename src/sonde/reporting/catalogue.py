"""Metrics by the names of their estimates, and how documents list them. Knows no probe.

A probe defines its metrics in its own folder (`probes/lama/report.py`, a tuple `METRICS`), and its
report carries those it used: `Report(metrics=…)`. Tables and headlines are built from the same
objects (`sonde.reporting.build`), JSON and the page take them from the report, and
`python -m tests.docs.refresh` writes them into the documents.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from sonde.core.reports import Better, Metric
from sonde.metrics.estimates import FACTS, RELATIONS

OVER = {RELATIONS: "mean over relations", FACTS: "mean over facts"}
"""What estimates average over, by the end of their names."""

UNITS = {"percent": "share", "points": "difference", "number": "number", "count": "count"}


def shares(
    *rows: tuple[str, str, str, Better], differences: Collection[str] = ()
) -> tuple[Metric, ...]:
    """Metrics that are shares: id, label, sentence and which way is better of each. Those whose ids
    are among `differences` are differences of shares, in points.

    >>> [metric.help for metric in shares(("ties", "ties", "share of ties", "lower"))]
    ['share of ties; lower is better']
    """
    return tuple(
        Metric(id, label, "points" if id in differences else "percent", sentence, better=better)
        for id, label, sentence, better in rows
    )


def metric_of(name: str, metrics: Iterable[Metric]) -> Metric | None:
    """The metric of an estimate: the one with the longest id that the name begins with.

    >>> P1 = Metric("p_at_1", "P@1")
    >>> metric_of("p_at_1.relation.P36", [P1]) is P1, metric_of("p_at_10", [P1])
    (True, None)
    """
    found = [m for m in metrics if name == m.id or name.startswith(f"{m.id}.")]
    return max(found, key=lambda metric: len(metric.id), default=None)


def used(metrics: Iterable[Metric], names: Iterable[str]) -> tuple[Metric, ...]:
    """Those of the metrics that some estimates are of."""
    metrics = tuple(metrics)
    measured = {metric_of(name, metrics) for name in names}
    return tuple(metric for metric in metrics if metric in measured)


def documented(metrics: Iterable[Metric]) -> Iterator[str]:
    """The lines of a document's table of metrics; words in braces become capitals.

    >>> list(documented([Metric("p_at_{k}", "P@{k}", "percent", "right among the first {k}")]))[-1]
    '| `p_at_K` | P@K | share | right among the first K | higher |'
    """
    yield "| estimate | label | unit | meaning | better |"
    yield "| --- | --- | --- | --- | --- |"
    for metric in metrics:
        cells = (f"`{metric.id}`", metric.label, UNITS[metric.unit], metric.sentence, metric.better)
        line = f"| {' | '.join(cell or '–' for cell in cells)} |"
        yield re.sub(r"\{(\w+)\}", lambda word: word[1].upper(), line)
