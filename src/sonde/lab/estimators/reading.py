"""From a run's judged prompts to what they say of each fact: score, decision, counts, chance.

Prompts are judged by the probe that put them (`run.judge`). Knows nothing of how they were put, nor
of what is true. Chance is exact: the same answers held against the objects of every other fact of
the relation.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import polars
from polars import DataFrame, Expr, col

from sonde.core.facts import Dataset
from sonde.metrics.distance import Monitored, Monitors, combined
from sonde.metrics.grid import Bools, Floats
from sonde.prompting.matching import PLAIN, cleaned, normal, within
from sonde.runs.run import Run

STAYS = 0.5
"""MONITOR's distance up to which an answer counts as known: its probability moves less than it
stays."""

DIGITS = 10
"""Of a log-probability: scores that differ by less are equal, in whichever order they were added up
and whatever the last digit of a machine's exp."""

AVERAGE, LIKELY, LIKELIEST = col("right").mean(), col("likely").mean(), col("likely").max()
"""Scores: the share of a fact's prompts answered right, how likely its object is on average, or in
the prompt where it is likeliest."""


def read_judged(
    run: Run, score: Expr = LIKELY, *, any: bool = False, best: bool = False, first: bool = False
) -> DataFrame:
    """What the probe's own judgements say of each fact: known if most of its prompts are right.

    any: one right prompt is enough. best: only the template that answers most facts of the relation
    counts. first: a fact's first object alone is right.
    """
    dataset = run.dataset()
    judged = run.judge(dataset=dataset)
    written = judged.way == "written"
    prompts = judged.frame().with_columns(
        mass=polars.lit(0.0), number=judged.grid.template, usual=judged.grid.name == 0
    )
    if judged.way == "filled":
        prompts = prompts.drop("mass").join(_masses(run), on="fact", how="left")
    # among the answers allowed; where these have no probability at all, the object has none
    share = (col("gold") - col("mass")).fill_nan(-np.inf).clip(upper_bound=0.0)
    prompts = prompts.with_columns(likely=share.round(DIGITS).exp())
    if best:
        prompts = _in_best_template(prompts.filter("usual"))
    return read_prompts(prompts, right_names(dataset, first=first), score, any, written)


def read_prompts(
    prompts: DataFrame, names: DataFrame, score: Expr, any: bool = False, written: bool = False
) -> DataFrame:
    """A row for each fact: fact, score, decision, counts, chance.

    prompts: a row each, with relation, pair, fact, answer, right, and what `score` is made of.
    names: relation, fact and each name that is right for it. written: answers are texts.
    """
    counts = col("right").any().cast(float) if any else AVERAGE
    facts = prompts.group_by("pair", "fact").agg(score=score, counts=counts).sort("pair")
    return facts.join(
        by_chance(prompts, names, any=any, written=written), on="fact", maintain_order="left"
    ).select("fact", "score", (col("counts") > 0.5).alias("decision"), "counts", "chance")


def by_chance(
    prompts: DataFrame, names: DataFrame, *, any: bool = False, written: bool = False
) -> DataFrame:
    """For each fact, how often its answers would be right for another fact of its relation.

    The mean over the other facts of the share of its prompts whose answer gives an object of the
    other fact, or of whether any does; 0 for a fact that stands alone. A tie for the first place,
    which probes count as wrong, is not looked for.
    """
    said = prompts.group_by("relation", "fact", "answer").len("times")
    facts = said.group_by("relation", "fact").agg(prompts=col("times").sum())
    others = facts.with_columns(others=polars.len().over("relation") - 1)
    names = names.join(facts, on="fact", how="semi")
    hits = (_written(said, names) if written else names.rename({"name": "answer"})).unique()
    of_others = said.join(hits, on=["relation", "answer"], suffix="_hit").filter(
        col("fact") != col("fact_hit")
    )
    shares = of_others.group_by("fact", "fact_hit").agg(col("times").sum())
    share = polars.len() if any else (col("times") / col("prompts")).sum()
    sums = shares.join(others, on="fact").group_by("fact").agg(sum=share)
    chance = (col("sum") / col("others")).fill_null(0.0)
    return others.join(sums, on="fact", how="left").select("fact", chance=chance)


def right_names(dataset: Dataset, *, first: bool = False) -> DataFrame:
    """What is right for each fact that is asked about: relation, fact, name, a row for each name.

    `first`: the usual name of its first object alone.
    """
    rows = [
        (relation.id, fact.id, name)
        for relation in dataset.asked_relations()
        for fact in dataset.asked(relation.id)
        for entity in fact.objects[: 1 if first else None]
        for name in entity.names[: 1 if first else None]
    ]
    return DataFrame(rows, schema=["relation", "fact", "name"], orient="row")


def _written(said: DataFrame, names: DataFrame) -> DataFrame:
    """Which facts each written answer, in lower case as the probe keeps it, holds a name of."""
    answers = said.select("relation", "answer").unique()
    pairs = answers.join(names.select("relation", "name").unique(), on="relation")
    right = [
        within(normal(name, PLAIN), answer)
        for name, answer in pairs.select("name", "answer").iter_rows()
    ]
    held = pairs.filter(polars.Series(right, dtype=polars.Boolean))
    return held.join(names, on=["relation", "name"]).select("relation", "fact", "answer")


def _masses(run: Run) -> DataFrame:
    """The probability of all allowed answers together, as a logarithm, by fact; where many prompts
    ask, the last's: only LAMA allows fewer answers than there are tokens, and it asks once."""
    blocks = (block for block in run.answers() if block.kind == "filled")
    masses = [
        b.frame.select("fact", mass=polars.lit(b.filled.mass, polars.Float64)) for b in blocks
    ]
    return polars.concat(masses).unique("fact", keep="last")


def _in_best_template(prompts: DataFrame) -> DataFrame:
    """The prompts in the template of each relation with the highest accuracy; the first of some."""
    accuracy = prompts.group_by("relation", "number").agg(col("right").mean()).sort("number")
    best = accuracy.sort("right", descending=True, maintain_order=True)
    return prompts.join(
        best.unique("relation", keep="first"), on=["relation", "number"], how="semi"
    )


def read_anchor(run: Run) -> DataFrame:
    """MONITOR's anchor: how likely the object is after its own name, and whether it is answered.

    What stands for chance is how often a wrong name is answered after itself: the anchor holds the
    object's name, so that of another object must stand there to compare.
    """
    monitored = _monitored(run)
    valid = monitored.valid[monitored.rule]
    return _monitor_frame(monitored, monitored.anchors(), valid)


def read_distance(run: Run) -> DataFrame:
    """How little the object's probability moves: 1 less MONITOR's distance; 0 without an anchor.

    What stands for chance is how often a wrong name is answered after itself and in more than half
    of the bare questions: the probabilities of wrong names are not asked for.
    """
    monitored = _monitored(run)
    distance = combined(monitored.pfd(), monitored.ird(), monitored.alphas)
    kept = monitored.counted()
    score = np.clip(np.where(kept, 1 - distance, 0.0), 0.0, 1.0)
    known = kept & (np.nan_to_num(distance, nan=1.0) <= STAYS)
    return _monitor_frame(monitored, score, known, bare=True)


def _monitored(run: Run) -> Monitored:
    return cast(Monitors, run.probe()).monitored(run.dataset(), run.answers())


def _monitor_frame(
    monitored: Monitored, score: Floats, known: Bools, *, bare: bool = False
) -> DataFrame:
    """Chance is how often a wrong name is answered after itself; `bare`: and mostly without it."""
    chances = []
    for wrong, said, framed in zip(monitored.wrong, monitored.said, monitored.framed, strict=True):
        questions, misled = said[1 : 1 + len(framed)], said[1 + len(framed) :]
        held = [
            cleaned(name) == text and (not bare or questions.count(text) > len(questions) / 2)
            for name, text in zip(wrong, misled, strict=True)
        ]
        chances.append(sum(held) / max(1, len(held)))
    return DataFrame(
        {
            "fact": [fact.id for fact in monitored.facts],
            "score": score,
            "decision": known,
            "counts": known.astype(np.float64),
            "chance": np.array(chances, dtype=np.float64),
        }
    )
