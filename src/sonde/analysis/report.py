"""Reports of several runs: what can be said of runs that are compared, and of the cells of a grid
of settings. Knows reports and judged runs, nothing of files or of how runs were made.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sonde.analysis.comparison.report import comparison_report
from sonde.analysis.differences.facts import facts_of_runs, flipped, with_change
from sonde.analysis.differences.numbers import Differences
from sonde.analysis.differences.report import Verdict, cares, in_front, verdict
from sonde.analysis.joins import align
from sonde.analysis.reliability.report import with_reliability
from sonde.analysis.runs import Compared, Reading
from sonde.analysis.sides.lines import shared_headlines
from sonde.analysis.sides.report import with_sides
from sonde.core.reports import DotPlot, Estimate, Headline, Metric, Report, Table
from sonde.reporting.build.figures import dots
from sonde.reporting.build.parts import shown
from sonde.reporting.build.tables import Field, table
from sonde.reporting.catalogue import metric_of

if TYPE_CHECKING:
    from polars import DataFrame

NARROW = 3
"""Numbers that a terminal shows of every cell; a page shows all."""

NO_WORD = r"[^\w-]+"

Cell = tuple[Mapping[str, Any], Report]
"""The settings of a cell, and its report."""
Cells = Sequence[Cell]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """Runs compared: the verdict, the report, and every fact that all of them were asked.

    `facts`: relation, fact, subject, gold, and of each run `answer NAME`, `right NAME` (the share
    of its prompts) and `confidence NAME`; of two runs also the `change` from first to second.
    """

    names: tuple[str, ...]
    verdict: Verdict
    report: Report
    facts: DataFrame

    @property
    def flipped(self) -> DataFrame:
        """The facts that some of the runs know and others do not."""
        return flipped(self.facts, self.names)

    def __repr__(self) -> str:
        return f"<Comparison: {self.verdict}>"

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


def compare(runs: Sequence[Compared], reading: Reading | None = None) -> Comparison:
    """Everything that can be said about runs on what all of them were asked: who is better, on
    what, the runs side by side, MONITOR where all of them measured it, and what their own reports
    share."""
    reading, care, aligned = reading or Reading(), tuple(cares(runs)), align(runs)
    side_by_side = with_reliability(comparison_report(aligned, reading), runs, reading)
    of = Differences(aligned=aligned, seed=reading.seed)
    decided, facts = verdict(of, care), facts_of_runs(of.aligned)
    return Comparison(
        names=tuple(of.names),
        verdict=decided,
        report=with_sides(in_front(of, decided, facts, side_by_side), runs),
        facts=with_change(facts, *of.names) if len(of.names) == 2 else facts,
    )


def sweep_report(title: str, cells: Cells) -> Report:
    """Every headline that all cells have, a row per cell."""
    shared = shared_headlines([report for _, report in cells])
    metrics = _metrics(shared, cells[0][1])
    columns = [metric.detail(i >= NARROW) for i, metric in enumerate(metrics)]
    reports = {label(values): report for values, report in cells}
    places = {name: f"cell.{re.sub(NO_WORD, '-', name)}" for name in reports}
    estimates = {
        metric.at(places[name]): report.estimates[metric.id]
        for metric in metrics
        for name, report in reports.items()
    }
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
        tables=(_table(cells, columns),),
        figures=tuple(_figure(headline, reports) for headline in shared[:1]),
        findings=shown(*(_spread(metric, reports) for metric in metrics[:1])),
        notes=tuple(dict.fromkeys(note for _, report in cells for note in report.notes)),
    )


def _table(cells: Cells, columns: Sequence[Metric]) -> Table:
    """A row per cell: its settings, a column each, and its numbers."""
    settings = [Field[Cell](name, partial(_setting, name)) for name in cells[0][0]]

    def look(row: Cell, metric: Metric) -> Estimate:
        return row[1].estimates[metric.id]

    return table(cells, [*settings, *columns], look, id="cells", title="Every cell")


def _setting(name: str, cell: Cell) -> str:
    return str(cell[0][name])


def _metrics(headlines: Sequence[Headline], report: Report) -> list[Metric]:
    """The metrics of headlines, under the short labels of tables where these tell them apart."""
    found = [metric_of(headline.estimate, report.metrics) for headline in headlines]
    times = Counter(metric.label for metric in found if metric)
    return [
        replace(metric, id=headline.estimate, unit=headline.kind)
        if metric and times[metric.label] == 1
        else Metric(headline.estimate, headline.label, headline.kind)
        for headline, metric in zip(headlines, found, strict=True)
    ]


def label(values: Mapping[str, Any]) -> str:
    """A cell in words.

    >>> label({"shots": 5, "style": "qa"})
    'shots=5, style=qa'
    """
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _figure(headline: Headline, reports: Mapping[str, Report]) -> DotPlot:
    names = {"model": headline.estimate}
    if headline.control:
        names[headline.control_label or "control"] = headline.control
    estimates = {
        f"{id}.{name}": report.estimates.get(id, Estimate.not_measured())
        for id in names.values()
        for name, report in reports.items()
    }
    return dots(
        estimates,
        {name: name for name in reports},
        {series: Metric(id, "") for series, id in names.items()},
        id="cells",
        title=f"{headline.label}, cell by cell",
        axis=headline.label,
    )


def _spread(metric: Metric, reports: Mapping[str, Report]) -> str:
    """Between which values a number lies; which cell is best is not said, as nothing tests it."""
    values = {name: report.estimates[metric.id].value for name, report in reports.items()}
    measured = {name: value for name, value in values.items() if value is not None}
    if len(set(measured.values())) < 2:
        return ""
    low, high = min(measured, key=measured.__getitem__), max(measured, key=measured.__getitem__)
    words = f"{{:{'.1%' if metric.unit == 'percent' else '.3f'}}}".format
    return (
        f"{metric.label} lies between {words(measured[low])} ({low}) and {words(measured[high])} "
        f"({high}); whether two cells differ is for a paired test to say (sonde compare)."
    )
