"""Several conditions: who leads, what they share, how alike they are. Tasks are never pooled."""

from collections.abc import Sequence
from itertools import combinations_with_replacement, product

import numpy as np
import polars as pl
from polars import col

from sonde.compare.conditions import Aligned
from sonde.compare.pairwise import CORRECT, KNOWN, fact_values
from sonde.evaluation.estimate import Metric
from sonde.evaluation.stats import kendall_tau_b, pearson

MATRIX = {
    "row": pl.String,
    "column": pl.String,
    "value": pl.Float64,
    "n": pl.UInt32,
}
FEWEST = 3  # relations that a correlation needs: through two points there is always a line


def tasks(aligned: Aligned) -> dict[str, list[str]]:
    """The names of the conditions of each task, such as "fill"."""
    by_task: dict[str, list[str]] = {}
    for name, condition in aligned.conditions.items():
        by_task.setdefault(condition.task, []).append(name)
    return by_task


def _cells(aligned: Aligned, names: Sequence[str], by_template: bool) -> pl.DataFrame:
    """What each condition knows: a row per fact, a Boolean column per condition.

    `by_template`: a row per fact and template, known if the answer for some alias is correct.
    """
    key = ["fact_no", "text"] if by_template else ["fact_no"]
    table: pl.DataFrame | None = None
    for name in names:
        rows = aligned.conditions[name].results.table([*key, "correct"])
        share = col("correct").any() if by_template else col("correct").mean() > KNOWN
        cells = rows.group_by(key).agg(share.alias(name)).collect()
        table = cells if table is None else table.join(cells, on=key)
    assert table is not None
    return table.with_columns(_relation=aligned.facts["relation"].gather(table["fact_no"]))


def sharing(
    aligned: Aligned, names: Sequence[str], *, by_template: bool = False
) -> dict[str, pl.DataFrame]:
    """Two matrices: "sharing", the share of what the row knows that the column knows too, and
    "subsumption", η: the same per relation, averaged over the relations where the row knows any.
    """
    cells, lines = _cells(aligned, names, by_template), {"sharing": [], "subsumption": []}
    for a, b in product(names, repeat=2):
        known = cells.filter(a).group_by("_relation").agg(both=col(b).sum(), n=pl.len())
        if not known.is_empty():
            n, shares = int(known["n"].sum()), known["both"] / known["n"]
            lines["sharing"].append((a, b, known["both"].sum() / n, n))
            lines["subsumption"].append((a, b, shares.mean(), len(shares)))
    return {what: pl.DataFrame(some, MATRIX, orient="row") for what, some in lines.items()}


def known_in_one(
    aligned: Aligned, names: Sequence[str], *, by_template: bool = False
) -> tuple[float, int]:
    """Of everything that some condition knows, the share that only one does, and how much it is."""
    known = _cells(aligned, names, by_template).select(names).to_numpy().sum(axis=1)
    total = int((known > 0).sum())
    return (float((known == 1).sum()) / total if total else float("nan")), total


def relation_values(
    aligned: Aligned, names: Sequence[str], metric: Metric = CORRECT
) -> pl.DataFrame:
    """The metric of each condition in each relation: _relation, then a column per condition."""
    ids = aligned.facts["relation"].unique(maintain_order=True).cast(pl.String)
    table = pl.DataFrame({"_relation": ids})
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
            lines += [(x, y, r, len(both)) for x, y in {(a, b), (b, a)}]
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
            lines += [(x, y, mean, len(values)) for x, y in {(a, b), (b, a)}]
    return pl.DataFrame(lines, MATRIX, orient="row")
