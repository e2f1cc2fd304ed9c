"""What the reports of runs of one probe say side by side: headlines, tables and figures.

Works for any probe. Knows reports, nothing of files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from sonde.analysis.runs import UNKNOWN, Compared
from sonde.analysis.sides.figures import side_figures
from sonde.analysis.sides.lines import shared_headlines
from sonde.analysis.sides.sizes import against_size
from sonde.analysis.sides.tables import side_tables
from sonde.core.reports import Estimate, Figure, Report
from sonde.reporting.build.parts import shown


def with_sides(report: Report, runs: Sequence[Compared]) -> Report:
    """The report of several runs with what their own reports share, where all have one.

    What the report shows already, by its id, is not shown again.
    """
    if any(run.report is None for run in runs):
        return report
    runs = ordered(runs)
    reports = {run.name: run.report for run in runs if run.report is not None}
    tables, figures = ({part.id for part in parts} for parts in (report.tables, report.figures))
    drawn = chain(side_figures(reports), against_size(runs, reports))
    new: tuple[Figure, ...] = shown(figure for figure in drawn if figure.id not in figures)
    return replace(
        report,
        estimates={**_estimates(reports), **report.estimates},
        tables=(
            *report.tables,
            *shown(t for t in side_tables(runs, [*reports.values()]) if t.id not in tables),
        ),
        figures=(*report.figures, *new),
        notes=(*report.notes, _note(report, reports)),
    )


def ordered(runs: Sequence[Compared]) -> list[Compared]:
    """Runs of one family together, from the smallest to the largest, a base model before those made
    from it; families and other runs in the order given."""
    families = [run.lineage.family for run in runs]

    def place(numbered: tuple[int, Compared]) -> tuple[float, float, bool, int]:
        i, run = numbered
        if run.lineage.family == UNKNOWN:
            return i, 0, False, i
        size = run.lineage.size or float("inf")
        return families.index(run.lineage.family), size, run.lineage.stage != "base", i

    return [run for _, run in sorted(enumerate(runs), key=place)]


def _estimates(reports: Mapping[str, Report]) -> dict[str, Estimate]:
    """The headlines' numbers of every run by name, their controls and differences."""
    shared = shared_headlines([*reports.values()])
    names = dict.fromkeys(n for h in shared for n in (h.estimate, h.control, h.difference) if n)
    return {
        f"{name}.run.{run}": report.estimates[name]
        for name in names
        for run, report in reports.items()
        if name in report.estimates
    }


def _note(report: Report, reports: Mapping[str, Report]) -> str:
    """What the tables and figures of single runs are of."""
    shared = report.counts.get("prompts")
    judged = {run: own.judged for run, own in reports.items() if own.judged is not None}
    prompts = {run: len(of_run.grid) for run, of_run in judged.items()}
    first = (
        "Tables and figures run by run are those of each run's own report, read on the facts that "
        "all runs were asked"
    )
    if all(count == shared for count in prompts.values()):
        return f"{first}: all of them in the same prompts."
    counted = ", ".join(f"{run} {count:,}" for run, count in prompts.items())
    return (
        f"{first}. Each counts all of its prompts about these facts, of which {shared:,} are the "
        f"same in all runs ({counted}): where settings or vocabularies differ, so does what is "
        "averaged."
    )
