"""Relations where one or two answers dominate.

One or two answers dominate a relation if they cover more than `COVERED` of its facts, `EXCESS` more
than their share of gold answers, and answers drawn from the gold distribution rarely do as much.
Fewer than `ENOUGH` facts allow no such statement.
"""

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars import col

from sonde.evaluation.stats import generator
from sonde.evaluation.tables import Results

COVERED, EXCESS, ENOUGH = 0.4, 0.2, 10
SECOND = 0.2  # share from which on the second answer counts
DRAWS, LEVEL, FREQUENT = 400, 0.07, 30


class Collapse(NamedTuple):
    """A relation that few answers dominate: shares of its facts; `hits` of `correct` prompts have
    one of these answers."""

    relation: str
    label: str
    names: tuple[str, ...]
    share: float
    gold: float
    n: int
    hits: int
    correct: int


def collapses(results: Results) -> list[Collapse]:
    """The relations whose answers collapse, the most extreme first."""
    results = results.about_objects()
    parts = [name for name in results.probe.separate if name in results.rows.columns]
    key = ["relation", *(name for name in parts if results.rows[name].n_unique() > 1)]
    rows = results.table([*key, "label", "fact_no", "answer", "correct"]).drop_nulls("answer")
    names = results.facts.lazy().select("fact_no", "relation", names="gold_names").explode("names")
    names = names.drop_nulls("names").with_columns(usual=col("names").list.first())
    spelled = names.explode("names").select(
        "relation", "usual", name=col("names").str.to_lowercase()
    )
    rows = rows.with_columns(col("answer").cast(pl.String)).with_columns(
        name=col("answer").str.to_lowercase(), weight=1 / pl.len().over(*key, "fact_no")
    )
    spelled = spelled.unique(("relation", "name"), keep="first", maintain_order=True)
    answers = rows.join(spelled, on=("relation", "name"), how="left", maintain_order="left")
    graded = answers.with_columns(answer=pl.coalesce("usual", "answer")).collect()
    gold = names.with_columns(weight=1 / pl.len().over("fact_no")).collect()
    collapsed = []
    for values, part in graded.group_by(key, maintain_order=True):
        n = part["fact_no"].n_unique()
        if n < ENOUGH:
            continue
        right = gold.filter(col("fact_no").is_in(part["fact_no"].unique().implode()))
        wanted = {
            name: w / n
            for name, w in right.group_by("usual", maintain_order=True)
            .agg(col("weight").sum())
            .iter_rows()
        }
        shares = (
            part.group_by("answer")
            .agg(col("weight").sum() / n)
            .sort("weight", "answer", descending=[True, False])
        )
        if not wanted:
            continue
        top = shares.head(2)
        share, expected = (
            top["weight"].to_numpy(),
            np.array([wanted.get(name, 0.0) for name in top["answer"]]),
        )
        size, excess = _excess(share[None], expected[None])
        covered = share[: size[0]].sum()
        if (
            covered <= COVERED
            or excess[0] < EXCESS
            or _p(excess[0], n, np.array([*wanted.values()])) >= LEVEL
        ):
            continue
        chosen = top["answer"].head(int(size[0])).to_list()
        hits = part.filter(col("correct"), col("answer").is_in(chosen)).height
        label = ", ".join(map(str, (part["label"][0] or values[0], *values[1:])))
        collapsed.append(
            Collapse(
                str(values[0]),
                label,
                tuple(chosen),
                float(covered),
                float(expected[: size[0]].sum()),
                n,
                hits,
                int(part["correct"].sum()),
            )
        )
    return sorted(collapsed, key=lambda c: c.gold - c.share)


Floats = NDArray[np.float64]


def _excess(share: Floats, gold: Floats) -> tuple[NDArray[np.int64], Floats]:
    """How many of the one or two most frequent answers to name, and how far they exceed their share
    of gold answers; a row per draw."""
    excess = np.cumsum(share - gold, axis=1)
    if share.shape[1] > 1:
        excess[share[:, 1] < SECOND, 1] = -1
    best = excess.argmax(axis=1)
    return best + 1, excess[np.arange(len(best)), best]


def _p(observed: float, n: int, gold: Floats) -> float:
    """How often answers drawn from the gold distribution exceed it as much as was observed."""
    # rare gold answers are drawn together: they do not dominate, and thousands of them take time
    gold = -np.sort(-gold / gold.sum())[:FREQUENT]
    counts = generator(0, "collapse").multinomial(n, np.append(gold, 0.0), size=DRAWS)[:, :-1]
    top = np.argsort(-counts, axis=1, kind="stable")[:, :2]
    _, excess = _excess(np.take_along_axis(counts, top, axis=1) / n, gold[top])
    return float((excess >= observed - 1e-9).mean())
