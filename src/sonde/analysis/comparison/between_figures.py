"""Figures that set models side by side. A figure with nothing to show is None."""

from __future__ import annotations

from sonde.analysis.comparison.between import Between
from sonde.analysis.comparison.between_tables import relation_name
from sonde.analysis.runs import Aligned
from sonde.core.reports import HeatMap


def accuracy_map(aligned: Aligned, found: Between) -> HeatMap:
    """Relations from the best known to the least, runs by family and accuracy."""
    relations, order = aligned.first.relations, found.relations.runs
    return HeatMap(
        id="accuracy",
        title="Accuracy of each run in each relation",
        rows=tuple(relation_name(relations[r]) for r in found.relations.best_first),
        columns=tuple(aligned.runs[i].name for i in order),
        values=tuple(
            tuple(found.relations.accuracies[i][r].value for i in order)
            for r in found.relations.best_first
        ),
        note="Relations by their mean over runs, the best known first. Runs of one family stand "
        "together; families by their model of about 7 billion parameters, where sizes are known, "
        "else by their best; the best run of a family first.",
    )


def correlation_map(aligned: Aligned, found: Between) -> HeatMap | None:
    """Which runs find the same relations easy."""
    order = found.relations.runs
    names = tuple(aligned.runs[i].name for i in order)
    values = tuple(tuple(found.correlation.runs[a][b].value for b in order) for a in order)
    if all(value is None for row in values for value in row):
        return None
    return HeatMap(
        id="correlation",
        title="Which runs find the same relations easy: Pearson's r of their accuracies",
        rows=names,
        columns=names,
        values=values,
        low=-1.0,
        high=1.0,
        kind="number",
    )


def group_correlation_map(aligned: Aligned, found: Between) -> HeatMap | None:
    """The same averaged over groups, where some group has two runs."""
    groups = [run.group for run in aligned.runs]
    order = list(dict.fromkeys(groups[i] for i in found.relations.runs))
    if not 1 < len(order) < len(groups):
        return None
    means = found.correlation.groups
    values = tuple(
        tuple(e.value if (e := means.get((min(a, b), max(a, b)))) else None for b in order)
        for a in order
    )
    if all(value is None for row in values for value in row):
        return None
    return HeatMap(
        id="group-correlation",
        title="The same within and between groups: mean over pairs of different runs",
        rows=tuple(order),
        columns=tuple(order),
        values=values,
        low=-1.0,
        high=1.0,
        kind="number",
        note="A group of one run has no correlation within.",
    )


def subsumption_map(aligned: Aligned, found: Between) -> HeatMap:
    """η of every two runs; the row is the denominator."""
    order = found.relations.runs
    names = tuple(aligned.runs[i].name for i in order)
    rates = found.subsumption.rates
    return HeatMap(
        id="subsumption",
        title="Subsumption η: what the run of the row knows that the run of the column knows too",
        rows=names,
        columns=names,
        values=tuple(tuple(rates[a][b].value for b in order) for a in order),
        note="Per relation, then averaged over the relations in which the row's run knows "
        "anything; the sharing rate pools all relations.",
    )
