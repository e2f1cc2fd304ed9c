"""Figures that show several runs in one. Knows what was found, nothing of how it is computed."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.analysis.comparison.between import Between
from sonde.analysis.comparison.numbers import Numbers
from sonde.analysis.comparison.ranks import Agreement
from sonde.analysis.comparison.sharing import Sharing
from sonde.analysis.comparison.tables import relation_name
from sonde.analysis.runs import Aligned
from sonde.core.reports import Estimate, Estimates, Figure, HeatMap
from sonde.reporting.build.figures import bars, calibration, heat
from sonde.reporting.build.multi_prompt.metrics import COVERAGE
from sonde.reporting.build.parts import shown

Matrix = Sequence[Sequence[Estimate]]


def figures(
    aligned: Aligned,
    estimates: Estimates,
    found: Sequence[Numbers],
    shared: Sharing,
    agreed: Agreement,
    compared: Between,
) -> tuple[Figure, ...]:
    """Those with something to show: relations by run, who is like whom, confidence, reach."""
    names = [run.name for run in aligned.runs]
    order = compared.relations.runs
    ordered = [names[i] for i in order]

    def by_family(matrix: Matrix) -> list[list[Estimate]]:
        return [[matrix[a][b] for b in order] for a in order]

    bins = {name: numbers.bins for name, numbers in zip(names, found, strict=True)}
    return shown(
        (
            _accuracies(aligned, compared),
            heat(
                ordered,
                ordered,
                by_family(compared.correlation.runs),
                id="correlation",
                title="Which runs find the same relations easy: Pearson's r of their accuracies",
                unit="number",
                low=-1.0,
            ),
            _group_correlation(aligned, compared),
            heat(
                ordered,
                ordered,
                by_family(compared.subsumption.rates),
                id="subsumption",
                title="Subsumption η: what the run of the row knows that the run of the column "
                "knows too",
                note="Per relation, then averaged over the relations in which the row's run knows "
                "anything; the sharing rate pools all relations.",
            ),
            heat(
                names,
                names,
                shared.rates,
                id="sharing",
                title="Sharing rate: what the run of the row knows that the run of the column "
                "knows too",
                note="Of the pairs that the row's run gets right under a template, the share that "
                "the column's run gets right under the same template.",
            ),
            heat(
                names,
                names,
                agreed.tau,
                id="rank-agreement",
                title="Agreement on the order of templates: Kendall's τ-b, mean over relations",
                unit="number",
                low=-1.0,
                note="1: both runs rank the templates of each relation alike; 0: by chance; -1: "
                "reversed.",
            ),
            calibration(bins),
            bars(
                estimates,
                {name: f"run.{name}" for name in names},
                {metric.label: metric for metric in COVERAGE},
                id="coverage",
                title="Coverage: pairs answered right",
                axis="share of pairs",
                note="Average: a prompt chosen at random. Maximum: each relation's best template. "
                "Oracle: any prompt. Whiskers are 95 % intervals.",
            ),
        )
    )


def _accuracies(aligned: Aligned, compared: Between) -> HeatMap:
    """Relations from the best known to the least, runs by family and accuracy."""
    best, order = compared.relations.best_first, compared.relations.runs
    return heat(
        (relation_name(aligned.first.relations[r]) for r in best),
        (aligned.runs[i].name for i in order),
        ((compared.relations.accuracies[i][r] for i in order) for r in best),
        id="accuracy",
        title="Accuracy of each run in each relation",
        note="Relations by their mean over runs, the best known first. Runs of one family stand "
        "together; families by their model of about 7 billion parameters, where sizes are known, "
        "else by their best; the best run of a family first.",
    )


def _group_correlation(aligned: Aligned, compared: Between) -> HeatMap | None:
    """The correlation of runs averaged over groups, where some group has two runs."""
    groups = [run.group for run in aligned.runs]
    order = list(dict.fromkeys(groups[i] for i in compared.relations.runs))
    if not 1 < len(order) < len(groups):
        return None
    means = compared.correlation.groups
    return heat(
        order,
        order,
        ((means.get((min(a, b), max(a, b))) for b in order) for a in order),
        id="group-correlation",
        title="The same within and between groups: mean over pairs of different runs",
        unit="number",
        low=-1.0,
        note="A group of one run has no correlation within.",
    )
