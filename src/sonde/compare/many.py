"""Several conditions: who leads, what they share, how alike they are. Tasks are never pooled."""

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product

import numpy as np
import polars as pl
from polars import col

from sonde.compare.conditions import Aligned
from sonde.compare.pairwise import CORRECT, KNOWN, fact_values
from sonde.evaluation.estimate import Metric
from sonde.evaluation.stats import kendall_tau_b, pearson

MATRIX = {"row": pl.String, "column": pl.String, "value": pl.Float64, "n": pl.UInt32}


def tasks(aligned: Aligned) -> dict[str, list[str]]:
    """The names of the conditions of each task, such as "fill"."""
    by_task: dict[str, list[str]] = {}
    for name, condition in aligned.conditions.items():
        by_task.setdefault(condition.task, []).append(name)
    return by_task


def _matrix(
    names: Sequence[str], value: Callable[[str, str], tuple[float, int] | None]
) -> pl.DataFrame:
    """`value(row, column)` of all pairs, with how many things it averages; None is not measured."""
    cells = ((a, b, value(a, b)) for a, b in product(names, repeat=2))
    return pl.DataFrame([(a, b, *v) for a, b, v in cells if v], MATRIX, orient="row")


def _per_key(
    aligned: Aligned, names: Sequence[str], key: list[str], share: pl.Expr
) -> pl.DataFrame:
    """A row per key that all conditions have (with an underscore), a column of `share` for each."""
    under = [f"_{name}" for name in key]
    frames = (
        aligned.conditions[name].results.table([*key, "correct"])
        .group_by(col(key).name.prefix("_")).agg(share.alias(name)) for name in names
    )  # fmt: skip
    return reduce(lambda a, b: a.join(b, on=under), frames).collect()


def _known(aligned: Aligned, names: Sequence[str], by_template: bool) -> pl.DataFrame:
    """What each condition knows: a row per fact, or per fact and template (if the answer for some
    alias is correct)."""
    if by_template:
        return _per_key(aligned, names, ["relation", "fact_no", "text"], col("correct").any())
    return _per_key(aligned, names, ["relation", "fact_no"], col("correct").mean() > KNOWN)


def sharing(
    aligned: Aligned, names: Sequence[str], *, by_template: bool = False
) -> dict[str, pl.DataFrame]:
    """Two matrices: "sharing", the share of what the row knows that the column knows too, and
    "subsumption", η: the same per relation, averaged over the relations where the row knows any.
    """
    cells = _known(aligned, names, by_template)

    def shares(a: str, b: str) -> pl.DataFrame:
        return cells.filter(col(a)).group_by("_relation").agg(both=col(b).sum(), n=pl.len())

    def pooled(a: str, b: str) -> tuple[float, int] | None:
        both, n = (int(shares(a, b)[name].sum()) for name in ("both", "n"))
        return (both / n, n) if n else None

    def averaged(a: str, b: str) -> tuple[float, int] | None:
        part = shares(a, b)
        values = (part["both"] / part["n"]).to_numpy()
        return (float(values.mean()), len(values)) if len(values) else None

    return {"sharing": _matrix(names, pooled), "subsumption": _matrix(names, averaged)}


def known_in_one(
    aligned: Aligned, names: Sequence[str], *, by_template: bool = False
) -> tuple[float, int]:
    """Of everything that some condition knows, the share that only one does, and how much it is."""
    known = _known(aligned, names, by_template).select(names).sum_horizontal()
    total = int((known > 0).sum())
    return (int((known == 1).sum()) / total if total else float("nan")), total


def relation_values(
    aligned: Aligned, names: Sequence[str], metric: Metric = CORRECT
) -> pl.DataFrame:
    """The metric of each condition in each relation: _relation, then a column per condition."""
    frames = []
    for name in names:
        rows = fact_values(aligned.conditions[name].results, metric).rows
        groups = rows.group_by(_relation=col("relation").cast(pl.String), maintain_order=True)
        frames.append(groups.agg(run=pl.lit(name), value=col("num").sum() / col("den").sum()))
    return pl.concat(frames).pivot("run", index="_relation", values="value")


def correlation(aligned: Aligned, names: Sequence[str], metric: Metric = CORRECT) -> pl.DataFrame:
    """Pearson's r between the conditions' accuracies over relations; needs three relations."""
    values = relation_values(aligned, names, metric)

    def value(a: str, b: str) -> tuple[float, int] | None:
        both = values.select(x=a, y=b).drop_nulls().to_numpy().round(12)
        r = pearson(both[:, 0], both[:, 1])
        return (r[0], len(both)) if r else None

    return _matrix(names, value)


def rank_agreement(aligned: Aligned, names: Sequence[str]) -> pl.DataFrame:
    """Kendall's τ-b between the conditions' template accuracies, averaged over relations."""
    values = _per_key(aligned, names, ["relation", "text"], col("correct").mean())
    parts = values.partition_by("_relation")

    def value(a: str, b: str) -> tuple[float, int] | None:
        taus = [kendall_tau_b(part[a].to_numpy(), part[b].to_numpy()) for part in parts]
        measured = [tau for tau in taus if tau is not None]
        return (float(np.mean(measured)), len(measured)) if measured else None

    return _matrix(names, value)
