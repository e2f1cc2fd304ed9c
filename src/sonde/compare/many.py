"""How alike several conditions are: matrices of what they know and of their accuracies."""

from collections.abc import Callable, Mapping
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from polars import col

from sonde.compare.conditions import Aligned
from sonde.compare.pairwise import KNOWN
from sonde.evaluation.layout import Exhibit
from sonde.evaluation.stats import kendall_tau_b, pearson


def _per_key(aligned: Aligned, key: list[str], share: pl.Expr) -> pl.DataFrame:
    """A row per key that all conditions have (with an underscore), a column of `share` for each."""
    frames = (
        c.results.table([*key, "correct"])
        .group_by(col(key).name.prefix("_")).agg(share.alias(c.name)) for c in aligned.every
    )  # fmt: skip
    return reduce(lambda a, b: a.join(b, on=[f"_{name}" for name in key]), frames).collect()


def _known(aligned: Aligned, by_template: bool = False) -> pl.DataFrame:
    """What each condition knows: a row per fact, or per fact and template (if the answer for some
    alias is correct)."""
    if by_template:
        return _per_key(aligned, ["relation", "fact_no", "text"], col("correct").any())
    return _per_key(aligned, ["relation", "fact_no"], col("correct").mean() > KNOWN)


def known_in_one(aligned: Aligned, by_template: bool = False) -> tuple[float, int]:
    """Of everything that some condition knows, the share that only one does, and how much it is."""
    known = _known(aligned, by_template).select(aligned.names).sum_horizontal()
    total = int((known > 0).sum())
    return (int((known == 1).sum()) / total if total else float("nan")), total


def _matrix(aligned: Aligned, value: Callable[[str, str], Any]) -> pl.DataFrame:
    """`value(row, column)` of all pairs; None is not measured."""
    cells = [(a, b, value(a, b)) for a, b in product(aligned.names, repeat=2)]
    schema = {"y": pl.String, "x": pl.String, "color": pl.Float64}
    return pl.DataFrame(cells, schema, orient="row").drop_nulls()


def sharing(aligned: Aligned, by_template: bool = False) -> pl.DataFrame:
    """Of what the row knows, the share that the column knows too."""
    cells = _known(aligned, by_template)
    return _matrix(aligned, lambda a, b: cells.filter(col(a))[b].mean())


def subsumption(aligned: Aligned) -> pl.DataFrame:
    """η: the same per relation, averaged over the relations where the row knows any."""
    cells = _known(aligned)
    share = {
        a: cells.filter(col(a)).group_by("_relation").agg(pl.mean(*aligned.names))
        for a in aligned.names
    }
    return _matrix(aligned, lambda a, b: share[a][b].mean())


def correlation(aligned: Aligned) -> pl.DataFrame:
    """Pearson's r between the conditions' accuracies over relations; needs three relations."""
    facts = _per_key(aligned, ["relation", "fact_no"], col("correct").mean())
    values = facts.group_by("_relation").agg(pl.mean(*aligned.names).round(12))

    def value(a: str, b: str) -> float | None:
        r = pearson(values[a].to_numpy(), values[b].to_numpy())
        return r[0] if r else None

    return _matrix(aligned, value)


def rank_agreement(aligned: Aligned) -> pl.DataFrame:
    """Kendall's τ-b between the conditions' template accuracies, averaged over relations."""
    values = _per_key(aligned, ["relation", "text"], col("correct").mean())
    parts = values.partition_by("_relation")

    def value(a: str, b: str) -> float | None:
        taus = [kendall_tau_b(part[a].to_numpy(), part[b].to_numpy()) for part in parts]
        measured = [tau for tau in taus if tau is not None]
        return float(np.mean(measured)) if measured else None

    return _matrix(aligned, value)


MATRICES: Mapping[str, tuple[str, str, Callable[..., pl.DataFrame]]] = {
    "sharing": ("percent", "Share of the row's known facts that the column's run knows, too",
                sharing),
    "subsumption": ("percent", "The same per relation, averaged over relations (η)", subsumption),
    "correlation": ("number", "Pearson's r between accuracies over relations", correlation),
    "rank_agreement": ("number", "Kendall's τ-b between template accuracies", rank_agreement),
}  # fmt: skip


def heat(aligned: Aligned, kind: str, **options: bool) -> Exhibit:
    """A matrix as a figure; empty if no two conditions can be compared so."""
    unit, title, compute = MATRICES[kind]
    frame = compute(aligned, **options)
    frame = frame if (frame["x"] != frame["y"]).any() else frame.clear()
    return Exhibit(kind, title, frame, {"color": unit}, "heat", limit=1.0)
