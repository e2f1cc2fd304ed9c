"""Several conditions: who leads, what they share, how alike they are. Tasks are never pooled."""

from collections.abc import Sequence
from itertools import combinations_with_replacement, product

import numpy as np
import polars as pl
from polars import col

from sonde.compare.conditions import Aligned
from sonde.compare.pairwise import CORRECT, KNOWN, fact_values
from sonde.evaluation.estimate import Metric
from sonde.evaluation.stats import (
    LEVEL,
    Floats,
    generator,
    kendall_tau_b,
    pearson,
    resampled_sums,
    wilson,
)

MATRIX = {
    "row": pl.String,
    "column": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "n": pl.UInt32,
}
FEWEST = 3  # relations that a correlation needs: through two points there is always a line


def tasks(aligned: Aligned) -> dict[str, list[str]]:
    """The names of the conditions of each task, such as "fill"."""
    by_task: dict[str, list[str]] = {}
    for name, condition in aligned.conditions.items():
        by_task.setdefault(condition.task, []).append(name)
    return by_task


def _cells(aligned: Aligned, names: Sequence[str]) -> pl.DataFrame:
    """What each condition knows: a row per fact and template, a Boolean column per condition.

    Without shared prompts, a row per fact: known if most of its prompts are correct.
    """
    key = ["fact_no", "text"] if aligned.same_prompts else ["fact_no"]
    table: pl.DataFrame | None = None
    for name in names:
        rows = aligned.conditions[name].results.table([*key, "correct"])
        share = col("correct").any() if aligned.same_prompts else col("correct").mean() > KNOWN
        cells = rows.group_by(key).agg(share.alias(name)).collect()
        table = cells if table is None else table.join(cells, on=key)
    assert table is not None
    relation = aligned.facts["relation"].gather(table["fact_no"]).to_physical()
    cluster = aligned.facts["cluster"].gather(table["fact_no"])
    return table.with_columns(_relation=relation, _cluster=cluster).sort("fact_no")


def _relations(aligned: Aligned) -> list[str]:
    return aligned.facts["relation"].unique(maintain_order=True).cast(pl.String).to_list()


def sharing(aligned: Aligned, names: Sequence[str], seed: int = 0) -> dict[str, pl.DataFrame]:
    """Two matrices: "sharing", the share of what the row knows that the column knows too, and
    "subsumption", η: the same per relation, averaged over the relations where the row knows any.
    """
    cells, width = _cells(aligned, names), len(names)
    known = cells.select(names).to_numpy().astype(float)
    relations = cells["_relation"].to_numpy()
    categories = _relations(aligned)
    pooled, sums, measured = (np.zeros((1, 1, 1)) for _ in range(3))
    for relation in np.unique(relations).tolist():
        rows = relations == relation
        counts = (known[rows][:, :, None] * known[rows][:, None, :]).reshape(-1, width * width)
        _, index = np.unique(cells["_cluster"].to_numpy()[rows], return_inverse=True)
        clusters = np.zeros((index.max() + 1, width * width))
        np.add.at(clusters, index, counts)
        stream = generator(seed, f"sharing:{categories[relation]}")
        drawn = np.vstack([clusters.sum(axis=0), resampled_sums(clusters, stream)])
        drawn = drawn.reshape(-1, width, width)
        whole = drawn.diagonal(axis1=1, axis2=2)[:, :, None]
        share = np.divide(drawn, whole, out=np.zeros_like(drawn), where=whole > 0)
        pooled, sums, measured = pooled + drawn, sums + share, measured + (whole > 0)
    whole = pooled.diagonal(axis1=1, axis2=2)[:, :, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        rates, means = pooled / whole, sums / measured
    n = {"sharing": whole[0, :, 0], "subsumption": measured[0, :, 0]}
    return {
        what: _matrix(names, values, n[what])
        for what, values in (("sharing", rates), ("subsumption", means))
    }


def _matrix(names: Sequence[str], values: Floats, n: Floats) -> pl.DataFrame:
    lines = []
    for i, j in product(range(len(names)), repeat=2):
        column = values[:, i, j]
        if not np.isnan(column[0]):
            ends = np.nanquantile(column[1:], (LEVEL / 2, 1 - LEVEL / 2)).tolist()
            if ends[1] - ends[0] <= 1e-12 and 0 <= column[0] <= 1:
                ends = list(map(float, wilson(column[0] * n[i], n[i])))
            ends = [None, None] if i == j else ends
            lines.append((names[i], names[j], float(column[0]), *ends, int(n[i])))
    return pl.DataFrame(lines, MATRIX, orient="row")


def known_in_one(aligned: Aligned, names: Sequence[str]) -> tuple[float, int]:
    """Of everything that some condition knows, the share that only one does, and how much it is."""
    known = _cells(aligned, names).select(names).to_numpy().sum(axis=1)
    total = int((known > 0).sum())
    return (float((known == 1).sum()) / total if total else float("nan")), total


def relation_values(
    aligned: Aligned, names: Sequence[str], metric: Metric = CORRECT
) -> pl.DataFrame:
    """The metric of each condition in each relation: _relation, then a column per condition."""
    table = pl.DataFrame({"_relation": _relations(aligned)})
    for name in names:
        values = fact_values(aligned.conditions[name].results, metric).rows
        values = values.group_by(col("relation").cast(pl.String).alias("_relation")).agg(
            (col("num").sum() / col("den").sum()).alias(name)
        )
        table = table.join(values, on="_relation", how="left", maintain_order="left")
    return table


def correlation(aligned: Aligned, names: Sequence[str], metric: Metric = CORRECT) -> pl.DataFrame:
    """Pearson's r between the conditions' accuracies over relations; needs three relations."""
    values = relation_values(aligned, names, metric)
    lines = []
    for a, b in combinations_with_replacement(names, 2):
        both = values.select(x=a, y=b).drop_nulls().to_numpy()
        if len(both) >= FEWEST and (both.std(axis=0) > 1e-12).all():
            r, _ = pearson(both[:, 0], both[:, 1]) or (None, None)
            lines += [(x, y, r, None, None, len(both)) for x, y in {(a, b), (b, a)}]
    return pl.DataFrame(lines, MATRIX, orient="row")


def rank_agreement(aligned: Aligned, names: Sequence[str]) -> pl.DataFrame:
    """Kendall's τ-b between the conditions' template accuracies, averaged over relations."""
    tables = {}
    for name in names:
        rows = aligned.conditions[name].results.table(["relation", "text", "correct"])
        tables[name] = rows.group_by("relation", "text").agg(col("correct").mean()).collect()
    lines = []
    for a, b in combinations_with_replacement(names, 2):
        both = tables[a].join(tables[b], on=("relation", "text"))
        values = []
        for part in both.partition_by("relation"):
            tau = kendall_tau_b(part["correct"].to_numpy(), part["correct_right"].to_numpy())
            if tau is not None:
                values.append(tau)
        if values:
            mean = float(np.mean(values))
            lines += [(x, y, mean, None, None, len(values)) for x, y in {(a, b), (b, a)}]
    return pl.DataFrame(lines, MATRIX, orient="row")
