"""The estimates of any run: its probe's, by columns of facts, trends, dates, languages."""

from typing import TYPE_CHECKING

import polars as pl

from sonde.core.fact_frames import DATES
from sonde.evaluation.estimate import Group, estimate
from sonde.evaluation.groups import add_breakdown_columns, estimate_trends
from sonde.evaluation.languages import compare_languages
from sonde.evaluation.layout import Exhibit
from sonde.evaluation.tables import Results
from sonde.evaluation.timeline import estimate_by_year
from sonde.reports.view import stored_answers

if TYPE_CHECKING:
    from sonde.runs.run import Run


def estimate_with_breakdowns(results: Results, seed: int = 0) -> pl.DataFrame:
    """What the probe declares, and its headlines by columns of the facts, in one pass."""
    probe = results.probe
    grouped, columns = add_breakdown_columns(results)
    shown = (*probe.layout.headlines, *probe.layout.columns)
    groups = [*probe.groups, *(Group(group.by, shown) for group in columns)]
    return estimate(grouped, probe.metrics, groups=groups, contrasts=probe.contrasts, seed=seed)


def estimate_trends_years_and_languages(
    results: Results, run: "Run | None" = None
) -> tuple[pl.DataFrame, list[Exhibit]]:
    """Trends, dates and languages, with exhibits. The last two need the dataset, so the run."""
    seed = run.manifest.selection["seed"] if run else 0
    parts, exhibits = [estimate_trends(results, seed)], list[Exhibit]()
    if run and set(DATES) & set(results.facts.columns):
        estimates, more = estimate_by_year(results, run.dataset(), seed)
        parts.append(estimates)
        exhibits += more
    if run and results.facts["language"].n_unique() > 1:
        estimates, more = compare_languages(results, run.dataset(), stored_answers(run), seed)
        parts.append(estimates)
        exhibits += more
    return pl.concat(parts), exhibits
