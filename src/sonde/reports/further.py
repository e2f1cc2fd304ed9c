"""Estimates of any run beyond those of its probe: by columns of facts, trends, dates, languages."""

from typing import TYPE_CHECKING

import polars as pl

from sonde.core.fact_frames import DATES
from sonde.evaluation.estimate import Metric, estimate
from sonde.evaluation.groups import breakdowns, trends
from sonde.evaluation.languages import languages
from sonde.evaluation.layout import Exhibit
from sonde.evaluation.tables import Results
from sonde.evaluation.timeline import timeline
from sonde.reports.view import stored_answers

if TYPE_CHECKING:
    from sonde.runs.run import Run


def further(results: Results, run: "Run | None" = None) -> tuple[pl.DataFrame, list[Exhibit]]:
    """ESTIMATES and exhibits. Dates and languages need the dataset, so they need the run."""
    seed = run.manifest.selection["seed"] if run else 0
    grouped, groups = breakdowns(results)
    layout = results.probe.layout
    shown = {*layout.headlines, *layout.columns}
    metrics = [m for m in results.probe.metrics if isinstance(m, Metric) and m.id in shown]
    parts = [trends(results, seed)]
    if groups:
        parts.append(estimate(grouped, metrics, groups=groups, seed=seed, whole=False))
    exhibits: list[Exhibit] = []
    if run and set(DATES) & set(results.facts.columns):
        estimates, more = timeline(results, run.dataset(), seed)
        parts, exhibits = [*parts, estimates], [*exhibits, *more]
    if run and results.facts["language"].n_unique() > 1:
        estimates, more = languages(results, run.dataset(), stored_answers(run), seed)
        parts, exhibits = [*parts, estimates], [*exhibits, *more]
    return pl.concat(parts), exhibits
