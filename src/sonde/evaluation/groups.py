"""Breakdowns of any run: columns of facts as groups, and trends of accuracy with their numbers."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from polars import col

from sonde.evaluation.estimate import Group, Metric
from sonde.evaluation.stats import Floats, Ints, random_generator, ranks, sign_flip_test
from sonde.evaluation.tables import ESTIMATES, LEFT, Results

BINS, BIN_SIZE = 5, 10  # most bins, fewest facts of a bin
GROUP_SIZE, GROUPS = 5, 30  # smaller groups, and those beyond the largest, become "other"
OTHER, NO_TAG = "other", "no tag"

TRENDS = (
    Metric(
        "trend", label="trend", unit="number", better="",
        help="rank correlation (Spearman) of a number with accuracy, over all facts",
    ),
    Metric(
        "trend_within", label="trend within relations", unit="number", better="",
        help="the same, among facts of one relation",
    ),
)  # fmt: skip


def add_breakdown_columns(results: Results) -> tuple[Results, tuple[Group, ...]]:
    """Results whose facts have columns to group by, and those that have several groups.

    These are kind, tags, and a user's columns: numbers in quantile bins, rare texts as "other".
    """
    facts = results.facts
    scored = facts["fact_no"].is_in(results.rows["fact_no"].unique().implode())
    user = (name for name in facts.columns if name.startswith(("details.", "numbers.")))
    columns, groups = [], []
    for name in ("kind", "relation_tags", "tags", *user):
        if (name,) in results.probe.groups or name in results.probe.groups:
            continue
        column = label_quantile_bins if facts[name].dtype.is_numeric() else pool_rare_values
        if (values := column(facts[name], scored)) is not None:
            columns.append(values.alias(name))
            groups.append(Group((name,)))
    return replace(results, facts=facts.with_columns(columns)), tuple(groups)


def label_quantile_bins(numbers: pl.Series, scored: pl.Series) -> pl.Series | None:
    """Numbers as labels of their quantile bins, in order."""
    known = (scored & numbers.is_finite()).fill_null(False)
    edges = quantile_edges(numbers.filter(known).to_numpy())
    if len(edges) < 3:
        return None
    place = pl.Series(np.searchsorted(edges[1:-1], numbers.to_numpy(), side="right"))
    place = place.set(~known, None)
    labels: list[str] = []
    for n in range(len(edges) - 1):
        part = numbers.filter(place == n).to_numpy()
        ends = (f"{x:,.0f}" if x == round(x) else f"{x:,.4g}" for x in (part.min(), part.max()))
        label = " – ".join(dict.fromkeys(ends))
        labels.append(f"{label} ({n})" if label in labels else label)
    return pl.Series(labels, dtype=pl.Enum(labels)).gather(place)


def quantile_edges(numbers: Floats) -> Floats:
    """The ends of bins with about equally many facts; none if there are too few for two.

    Equal numbers are never separated. A bin that is too small is merged with the next.

    >>> quantile_edges(np.arange(1.0, 21.0)).tolist()
    [1.0, 11.0, 20.0]
    """
    numbers = np.sort(numbers)
    n, size = min(BINS, len(numbers) // BIN_SIZE), len(numbers)
    inner = np.unique(numbers[[size * k // n for k in range(1, n)]])
    starts = [0]
    for start in np.searchsorted(numbers, inner).tolist():
        if min(start - starts[-1], size - start) >= BIN_SIZE:
            starts.append(start)
    return numbers[[*starts, -1]] if len(starts) > 1 else np.zeros(0)


def pool_rare_values(values: pl.Series, scored: pl.Series) -> pl.Series | None:
    """Texts, or lists of them, in which rare ones and those beyond the largest are "other"."""
    lists = values.dtype == pl.List
    table = pl.DataFrame({"value": values})
    if lists:
        none = pl.when(col("value").list.len() == 0).then([NO_TAG])
        table = table.with_columns(value=none.otherwise("value"))
    names = table.filter(scored)["value"]
    sizes = (names.explode() if lists else names).drop_nulls().value_counts(name="n")
    large = (
        sizes.filter(col("n") >= GROUP_SIZE).sort(-col("n").cast(pl.Int64), "value").head(GROUPS)
    )
    groups = {*large["value"], *([OTHER] if large.height < sizes.height else [])}
    if len(groups) < 2 or groups <= {OTHER, NO_TAG}:
        return None
    name = pl.element() if lists else col("value")
    common = pl.when(name.is_in(large["value"].implode())).then(name)
    label = common.when(name.is_not_null()).then(pl.lit(OTHER))
    labels = col("value").list.eval(label).list.unique(maintain_order=True) if lists else label
    return table.select(labels).to_series()


def estimate_trends(results: Results, seed: int = 0) -> pl.DataFrame:
    """Whether accuracy rises with each number of the facts, as ESTIMATES: `TRENDS` by "number".

    Facts without the number do not count. Neither p nor the interval is corrected for the number of
    trends, so that they agree.
    """
    accuracy = results.table(["fact_no", "correct"]).group_by("fact_no").agg(col("correct").mean())
    facts = accuracy.drop_nulls().sort("fact_no").collect()
    lines: list[tuple[Any, ...]] = []
    for name in (name for name in results.facts.columns if name.startswith("numbers.")):
        part = results.facts.select("fact_no", "relation", "cluster", number=name)
        part = facts.join(part, on="fact_no", **LEFT).filter(col("number").is_finite())
        columns = (part[name].to_physical().to_numpy() for name in part.columns[1:])
        correct, relations, clusters, numbers = columns
        if len(quantile_edges(numbers)) < 3:
            continue
        sizes = part.height, part["cluster"].n_unique()
        key = "value", "facts", None, None, ["number"], [name.removeprefix("numbers.")]
        for metric, strata in zip(TRENDS, (np.zeros_like(relations), relations), strict=True):
            if estimate := rank_correlation(numbers, correct, strata, clusters, seed):
                lines.append((metric.id, *key, *estimate, None, *sizes))
    return pl.DataFrame(lines, schema=ESTIMATES, orient="row")


class RankCorrelation(NamedTuple):
    value: float
    low: float
    high: float
    p: float


def rank_correlation(
    numbers: Floats, values: Floats, strata: Ints, clusters: Ints, seed: int = 0
) -> RankCorrelation | None:
    """Spearman's rank correlation within strata, with its interval and p; None if nothing varies.

    It is Σ xy / Σ (x² + y²)/2 over ranks of unit variance, a ratio of sums over clusters, so that
    the sign-flip test of differences applies.
    """
    x, y = np.zeros(len(numbers)), np.zeros(len(numbers))
    for stratum in np.unique(strata):
        at = strata == stratum
        for ranked, column in ((x, numbers), (y, values)):
            ranked[at] = (ranks(column[at]) - (at.sum() + 1) / 2) / at.sum()
    if not (x.any() and y.any()):
        return None
    x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
    _, index = np.unique(clusters, return_inverse=True)
    sums: Any = (np.bincount(index, column) for column in (x * y, (x * x + y * y) / 2))
    products, squares = sums
    low, high, p = sign_flip_test(products, squares, random_generator(seed, "trend"))
    return RankCorrelation(float(products.sum()), max(low, -1.0), min(high, 1.0), p)
