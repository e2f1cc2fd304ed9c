"""Figures that show several runs in one. Knows what was found, nothing of how it is computed."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.analysis.comparison.compare import Comparison
from sonde.analysis.runs import relation_name
from sonde.core.reports import Estimates, Figure, HeatMap
from sonde.reporting.build.figures import bars, calibration, heat
from sonde.reporting.build.multi_prompt.metrics import COVERAGE
from sonde.reporting.build.parts import shown

COUPLES = {
    "correlation": "Which runs find the same relations easy: Pearson's r of their accuracies",
    "subsumption": "Subsumption η: what the run of the row knows that the run of the column knows "
    "too",
    "sharing": "Sharing rate: what the run of the row knows that the run of the column knows too",
    "rank-agreement": "Agreement on the order of templates: Kendall's τ-b, mean over relations",
}
NOTES = {
    "subsumption": "Per relation, then averaged over the relations in which the row's run knows "
    "anything; the sharing rate pools all relations.",
    "sharing": "Of the pairs that the row's run gets right under a template, the share that the "
    "column's run gets right under the same template.",
    "rank-agreement": "1: both runs rank the templates of each relation alike; 0: by chance; -1: "
    "reversed.",
}


def figures(of: Comparison, estimates: Estimates) -> tuple[Figure, ...]:
    """Those with something to show: relations by run, who is like whom, confidence, reach."""
    by_family = [of.names[i] for i in of.relations.runs]

    def couples(id: str, word: str, names: Sequence[str]) -> HeatMap:
        name = id.replace("-", "_")
        return heat(
            names,
            names,
            (
                (estimates[f"{name}.runs.{row}.{word}.{column}"] for column in names)
                for row in names
            ),
            id=id,
            title=COUPLES[id],
            unit="number" if word == "and" else "percent",
            low=-1.0 if word == "and" else 0.0,
            note=NOTES.get(id, ""),
        )

    return shown(
        (
            _accuracies(of),
            couples("correlation", "and", by_family),
            _group_correlation(of),
            couples("subsumption", "in", by_family),
            couples("sharing", "in", of.names),
            couples("rank-agreement", "and", of.names),
            calibration({n: numbers.bins for n, numbers in zip(of.names, of.numbers, strict=True)}),
            bars(
                estimates,
                {name: f"run.{name}" for name in of.names},
                {metric.label: metric for metric in COVERAGE},
                id="coverage",
                title="Coverage: pairs answered right",
                axis="share of pairs",
                note="Average: a prompt chosen at random. Maximum: each relation's best template. "
                "Oracle: any prompt. Whiskers are 95 % intervals.",
            ),
        )
    )


def _accuracies(of: Comparison) -> HeatMap:
    """Relations from the best known to the least, runs by family and accuracy."""
    best, order = of.relations.best_first, of.relations.runs
    return heat(
        (relation_name(of.aligned.first.relations[r]) for r in best),
        (of.names[i] for i in order),
        ((of.relations.accuracies[i][r] for i in order) for r in best),
        id="accuracy",
        title="Accuracy of each run in each relation",
        note="Relations by their mean over runs, the best known first. Runs of one family stand "
        "together; families by their model of about 7 billion parameters, where sizes are known, "
        "else by their best; the best run of a family first.",
    )


def _group_correlation(of: Comparison) -> HeatMap | None:
    """The correlation of runs averaged over groups, where some group has two runs."""
    groups = [run.group for run in of.aligned.runs]
    order = list(dict.fromkeys(groups[i] for i in of.relations.runs))
    if not 1 < len(order) < len(groups):
        return None
    means = of.correlation.groups
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
