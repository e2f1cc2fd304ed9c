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

from sonde.evaluation.stats import random_generator
from sonde.evaluation.tables import LEFT, Results

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


def find_collapsed_relations(results: Results) -> list[Collapse]:
    """The relations whose answers collapse, the most extreme first."""
    results = results.about_objects()
    parts = [name for name in results.probe.separate if name in results.rows.columns]
    key = ["relation", *(name for name in parts if results.rows[name].n_unique() > 1)]
    table = results.table([*key, "label", "fact_no", "answer", "correct"]).drop_nulls("answer")
    rows = table.with_columns(weight=1 / pl.len().over(*key, "fact_no")).collect()
    gold = results.facts.select("fact_no", "relation", name="gold_names").explode("name")
    gold = gold.drop_nulls("name").with_columns(
        answer=col("name").list.first(), gold=1 / pl.len().over("fact_no")
    )
    # names of one object count as its usual name
    spelled = gold.explode("name").select(
        "relation", col("name").str.to_lowercase(), usual="answer"
    )
    spelled = spelled.unique(("relation", "name"), keep="first", maintain_order=True)
    answers = rows.group_by(*key, "answer", maintain_order=True).agg(
        col("label").first(), col("weight").sum(), hits=col("correct").sum()
    )
    answers = answers.with_columns(col("answer").cast(pl.String)).join(
        spelled,
        left_on=("relation", col("answer").str.to_lowercase()),
        right_on=("relation", "name"),
        **LEFT,
    )
    answered = rows.select(*key, "fact_no").unique(maintain_order=True)
    wanted = answered.join(
        gold.select("fact_no", "answer", "gold"), on="fact_no", maintain_order="left"
    )
    answers = answers.with_columns(answer=pl.coalesce("usual", "answer"))
    merged = pl.concat([answers, wanted], how="diagonal").group_by(
        *key, "answer", maintain_order=True
    )
    shares = merged.agg(
        col("label").first(), col("weight", "gold").sum().round(9), col("hits").sum()
    )
    shares = shares.sort("weight", "answer", descending=[True, False], maintain_order=True)
    collapsed = []
    for values, part in shares.group_by(key, maintain_order=True):
        n = round(part["weight"].sum())
        share, expected = (part[name].to_numpy() / n for name in ("weight", "gold"))
        if n < ENOUGH or not expected.any():
            continue
        size, excess = _excess_shares(share[None, :2], expected[None, :2])
        covered = share[: size[0]].sum()
        if covered <= COVERED or excess[0] < EXCESS:
            continue
        if _p_of_excess(excess[0], n, expected[expected > 0]) >= LEVEL:
            continue
        top = part.head(int(size[0]))
        if "" in top["answer"]:
            continue  # there is a warning of empty answers
        label = ", ".join(map(str, (part["label"].drop_nulls()[0] or values[0], *values[1:])))
        collapsed.append(
            Collapse(
                relation=str(values[0]),
                label=label,
                names=tuple(top["answer"]),
                share=float(covered),
                gold=float(top["gold"].sum() / n),
                n=n,
                hits=int(top["hits"].sum()),
                correct=int(part["hits"].sum()),
            )
        )
    return sorted(collapsed, key=lambda c: c.gold - c.share)


Floats = NDArray[np.float64]


def _excess_shares(share: Floats, gold: Floats) -> tuple[NDArray[np.int64], Floats]:
    """How many of the one or two most frequent answers to name, and how far they exceed their share
    of gold answers; a row per draw."""
    excess = np.cumsum(share - gold, axis=1)
    if share.shape[1] > 1:
        excess[share[:, 1] < SECOND, 1] = -1
    best = excess.argmax(axis=1)
    return best + 1, excess[np.arange(len(best)), best]


def _p_of_excess(observed: float, n: int, gold: Floats) -> float:
    """How often answers drawn from the gold distribution exceed it as much as was observed."""
    # rare gold answers are drawn together: they do not dominate, and thousands of them take time
    gold = -np.sort(-gold / gold.sum())[:FREQUENT]
    counts = random_generator(0, "collapse").multinomial(n, np.append(gold, 0.0), size=DRAWS)[
        :, :-1
    ]
    top = np.argsort(-counts, axis=1, kind="stable")[:, :2]
    _, excess = _excess_shares(np.take_along_axis(counts, top, axis=1) / n, gold[top])
    return float((excess >= observed - 1e-9).mean())
