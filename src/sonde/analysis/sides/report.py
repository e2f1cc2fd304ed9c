"""What the reports of runs of one probe say side by side: headlines, tables, figures, model sizes.

Works for any probe. Knows reports and where models come from, nothing of files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from sonde.analysis.runs import BILLION, UNKNOWN, Compared, families, family_names, relation_name
from sonde.analysis.sides.figures import side_figures
from sonde.analysis.sides.lines import shared_headlines
from sonde.analysis.sides.tables import side_tables
from sonde.core.reports import Curves, Estimate, Figure, Headline, Report
from sonde.metrics.estimates import RELATIONS
from sonde.reporting.build.figures import WHISKERS, curve
from sonde.reporting.build.parts import shown

FEW_RELATIONS = 12
"""Curves that can be told apart in a figure."""

Points = list[tuple[float, Estimate]]
"""A number at the size of each model of a family, in billions of parameters."""


def against_size(runs: Sequence[Compared], reports: Mapping[str, Report]) -> Iterator[Curves]:
    """The first headline that all reports have, where a family has models of two sizes."""
    headlines, lines = shared_headlines([*reports.values()]), families(runs)
    if not headlines or not lines:
        return
    first = headlines[0]
    named = dict(zip(family_names([*lines]), lines.values(), strict=True))
    overall = {name: _points(own, reports, first.estimate) for name, own in named.items()}
    yield _figure(first, "", f"{first.label}, against size", overall, f"A family each. {WHISKERS}")
    for name, members in named.items():
        of_relations = {
            relation_name(relation): _points(members, reports, _in_relation(first, relation.id))
            for relation in members[0].judged.relations
        }
        most = sorted(of_relations, key=lambda label: -_moved(of_relations[label]))[:FEW_RELATIONS]
        left = len(of_relations) - len(most)
        yield _figure(
            first,
            f"-relations-{name}",
            f"{first.label.partition(',')[0]} in each relation, against size: {name}",
            {label: of_relations[label] for label in of_relations if label in most},
            f"{WHISKERS}{f' {left:,} relations that move less are left out.' if left else ''}",
        )


def _in_relation(headline: Headline, id: str) -> str:
    """The name of a headline's number in one relation."""
    return f"{headline.estimate.removesuffix(f'.{RELATIONS}')}.relation.{id}"


def _points(members: Sequence[Compared], reports: Mapping[str, Report], name: str) -> Points:
    missing = Estimate.not_measured()
    return [
        ((run.lineage.size or 0) / BILLION, reports[run.name].estimates.get(name, missing))
        for run in members
    ]


def _moved(points: Points) -> float:
    """How far a number goes up or down from the smallest to the largest model."""
    values = [estimate.value for _, estimate in points if estimate.value is not None]
    return abs(values[-1] - values[0]) if values else 0.0


def _figure(
    headline: Headline, after: str, title: str, lines: Mapping[str, Points], note: str
) -> Curves:
    return Curves(
        id=f"scaling{after}",
        title=title,
        kind="percent" if headline.kind == "percent" else "number",
        x_axis="parameters in billions",
        y_axis=headline.label,
        x_kind="number",
        curves=tuple(curve(name, points) for name, points in lines.items()),
        note=note,
    )


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
    new: tuple[Figure, ...] = shown(*(figure for figure in drawn if figure.id not in figures))
    return replace(
        report,
        estimates={**_estimates(reports), **report.estimates},
        tables=(
            *report.tables,
            *shown(*(t for t in side_tables(runs, [*reports.values()]) if t.id not in tables)),
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
