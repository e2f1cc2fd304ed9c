"""Breakdowns of any run: columns of facts as groups, and trends of accuracy with their numbers."""

from collections.abc import Iterator
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import polars as pl
from polars import col

from sonde.evaluation.estimate import Group, Metric
from sonde.evaluation.stats import (
    DRAWS,
    LEVEL,
    Bools,
    Floats,
    Ints,
    generator,
    holm,
    ranks,
    resampled_sums,
)
from sonde.evaluation.tables import ESTIMATES, LEFT, Results

BINS, BIN_SIZE = 5, 10  # most bins, fewest facts of a bin
GROUP_SIZE, GROUPS = 5, 30  # smaller groups, and those beyond the largest, become "other"
OTHER, NO_TAG = "other", "no tag"
DECADES = 2  # powers of ten from which on positive numbers are compared by their logarithm
PERMUTATIONS = 2000
CELLS = 2_000_000  # permuted at once
SLOPE = 2  # its place among the trends

TRENDS = (
    Metric(
        "trend", label="trend", unit="number", better="",
        help="rank correlation (Spearman) of a number with accuracy, over all facts",
    ),
    Metric(
        "trend_within", label="trend within relations", unit="number", better="",
        help="the same, among facts of one relation",
    ),
    Metric(
        "slope", label="slope", unit="points", better="",
        help="rise of accuracy within relations with each power of ten of a number or, if it does "
        "not span several, with each standard deviation",
    ),
)  # fmt: skip


def breakdowns(results: Results) -> tuple[Results, tuple[Group, ...]]:
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
        column = bins if facts[name].dtype.is_numeric() else texts
        if (values := column(facts[name], scored)) is not None:
            columns.append(values.alias(name))
            groups.append(Group((name,)))
    return replace(results, facts=facts.with_columns(columns)), tuple(groups)


def bins(numbers: pl.Series, scored: pl.Series) -> pl.Series | None:
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

    Equal numbers are never separated. A bin that is too small is merged with the smaller of its
    neighbors.

    >>> quantile_edges(np.arange(1.0, 21.0)).tolist()
    [1.0, 11.0, 20.0]
    """
    numbers = np.sort(numbers)
    n = min(BINS, len(numbers) // BIN_SIZE)
    inner = np.unique(numbers[[len(numbers) * k // n for k in range(1, n)]])
    while len(inner):
        place = np.searchsorted(inner, numbers, side="right")
        sizes = np.bincount(place, minlength=len(inner) + 1)
        least = int(sizes.argmin())
        if sizes[least] >= BIN_SIZE:
            return np.array([numbers[0], *inner, numbers[-1]])
        before, after = np.array([inf, *sizes, inf])[[least, least + 2]]
        inner = np.delete(inner, least - 1 if before <= after else least)
    return inner


def texts(values: pl.Series, scored: pl.Series) -> pl.Series | None:
    """Texts, or lists of them, as lists; rare ones and those beyond the largest become "other"."""
    table = pl.DataFrame({"scored": scored, "value": values}).with_row_index("row")
    if values.dtype == pl.List:
        none = pl.when(col("value").list.len() == 0).then([NO_TAG])
        table = table.with_columns(value=none.otherwise("value")).explode("value")
    table = table.drop_nulls("value")
    sizes = table.filter("scored").group_by("value").len().sort(-col("len").cast(pl.Int64), "value")
    large = sizes.head(GROUPS).filter(col("len") >= GROUP_SIZE)["value"].implode()
    value = pl.when(col("value").is_in(large)).then("value").otherwise(pl.lit(OTHER))
    table = table.with_columns(value=value)
    groups = {*table.filter("scored")["value"]}
    if len(groups) < 2 or groups <= {OTHER, NO_TAG}:
        return None
    lists = table.group_by("row").agg(col("value").unique(maintain_order=True))
    rows = pl.DataFrame({"value": values}).with_row_index("row").select("row")
    return rows.join(lists, on="row", **LEFT)["value"]


def trends(results: Results, seed: int = 0) -> pl.DataFrame:
    """Whether accuracy rises with each number of the facts, as ESTIMATES: `TRENDS` by "number".

    Facts without the number are not counted. p_adjusted is corrected for all trends (Holm).
    """
    accuracy = results.table(["fact_no", "correct"]).group_by("fact_no").agg(col("correct").mean())
    facts = accuracy.drop_nulls().sort("fact_no").collect()
    lines: list[tuple[Any, ...]] = []
    for name in (name for name in results.facts.columns if name.startswith("numbers.")):
        part = results.facts.select("fact_no", "relation", "cluster", number=name)
        part = facts.join(part, on="fact_no", **LEFT).filter(col("number").is_finite())
        numbers, correct, relations, clusters = (
            part[column].to_physical().to_numpy()
            for column in ("number", "correct", "relation", "cluster")
        )
        if len(quantile_edges(numbers)) < 3:
            continue
        sizes = part.height, part["cluster"].n_unique()
        key = "value", "facts", None, None, ["number"], [name.removeprefix("numbers.")]
        estimates = trend(numbers, correct, relations, clusters, seed)
        for metric, line in zip(TRENDS, estimates, strict=True):
            if line[0] is not None:
                lines.append((metric.id, *key, *line, None, *sizes))
    frame = pl.DataFrame(lines, schema=ESTIMATES, orient="row")
    return frame.with_columns(p_adjusted=pl.Series(holm(frame["p"].to_list()), dtype=pl.Float64))


def trend(
    numbers: Floats, values: Floats, relations: Ints, clusters: Ints, seed: int = 0
) -> Iterator[tuple[float | None, ...]]:
    """Value, low, high and p: over all facts, within relations, and of the slope within relations.

    Clusters are resampled within their relation. Where few values differ, such draws are too sure
    of a trend, so p is that of a permutation test, and the interval contains 0 unless p < 0.05.
    """
    decades = numbers.min() > 0 and numbers.max() / numbers.min() >= 10**DECADES
    scaled = np.log10(numbers) if decades else numbers / (numbers.std() or 1.0)
    inner = np.empty((2, len(numbers)))
    parts = [relations == relation for relation in np.unique(relations)]
    for at in parts:
        inner[:, at] = ranks(numbers[at]) / at.sum(), ranks(values[at]) / at.sum()
    pairs: Any = ((ranks(numbers), ranks(values)), inner, (scaled, values))
    for n, (first, second) in enumerate(pairs):
        # far from 0, sums of squares lose digits
        x, y = first - first.mean(), second - second.mean()
        table = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)
        moments = np.empty((len(parts), 1 + DRAWS, 6))
        for at, sums in zip(parts, moments, strict=True):
            _, index = np.unique(clusters[at], return_inverse=True)
            columns = np.zeros((index.max() + 1, 6))
            np.add.at(columns, index, table[at])
            rng = generator(seed, f"trend:{relations[at][0]}")
            sums[:] = np.vstack([columns.sum(axis=0), resampled_sums(columns, rng, DRAWS)])
        # over all facts, relations are one
        moments = moments if n else moments.sum(axis=0, keepdims=True)
        size, a, b, aa, bb, ab = np.moveaxis(moments, -1, 0)
        squares = np.stack([aa - a * a / size, bb - b * b / size, ab - a * b / size])
        aa, bb, ab = np.where(np.abs(squares) < 1e-9, 0.0, squares).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn = ab / (aa if n == SLOPE else np.sqrt(aa * bb))
        value = float(drawn[0])
        if not np.isfinite(value):
            yield None, None, None, None
            continue
        strata = relations if n else np.zeros_like(relations)
        p = permuted(first, second, strata, clusters, generator(seed, "trend:permuted"))
        # a draw in which nothing varies has no trend
        drawn = np.nan_to_num(drawn[1:], posinf=0.0, neginf=0.0)
        ends = np.quantile(drawn, (LEVEL / 2, 1 - LEVEL / 2)).tolist()
        ends += [value, value if p < LEVEL else 0.0]
        yield value, min(ends), max(ends), p


def permuted(
    first: Floats, second: Floats, strata: Ints, clusters: Ints, rng: np.random.Generator
) -> float:
    """The p of a permutation test that two columns go together within strata, two-sided.

    Clusters of a stratum with equally many facts exchange what the first column has, in order.
    """
    _, index = np.unique(strata, return_inverse=True)
    second = second - (np.bincount(index, second) / np.bincount(index))[index]
    order = np.argsort(clusters, kind="stable")
    _, starts, sizes = np.unique(clusters[order], return_index=True, return_counts=True)
    kinds = np.column_stack([strata[order[starts]], sizes])
    sums = np.zeros(1 + PERMUTATIONS)  # the first as it is
    for kind in np.unique(kinds, axis=0):
        chosen: Bools = (kinds == kind).all(axis=1)
        rows = order[starts[chosen][:, None] + np.arange(kind[1])]
        a, b = first[rows], second[rows]
        sums[0] += (a * b).sum()
        step = max(1, CELLS // len(rows))
        for start in range(0, PERMUTATIONS, step):
            n = min(step, PERMUTATIONS - start)
            places = rng.permuted(np.tile(np.arange(len(rows)), (n, 1)), axis=1)
            block = slice(1 + start, 1 + start + n)
            for each in range(kind[1]):
                sums[block] += a[:, each][places] @ b[:, each]
    rounding = 1e-9 * float(np.abs(first) @ np.abs(second))  # sums in another order
    return float((np.abs(sums) >= abs(sums[0]) - rounding).mean())
