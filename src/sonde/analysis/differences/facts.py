"""Facts under comparison: what they are about, what each run answers, which of them flipped.

Knows datasets and judged prompts, nothing of files or of tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars
from polars import col

from sonde.analysis.runs import KNOWN, Aligned
from sonde.core.facts import Dataset, commonest_objects
from sonde.metrics.judged import Judged

if TYPE_CHECKING:
    from polars import DataFrame

GAINED, LOST, MORE, LESS = "gained", "lost", "more often right", "less often right"


def facts_of_pairs(dataset: Dataset, pairs: Sequence[str]) -> DataFrame:
    """What the pairs of a run are about, a row each.

    fact (its id), relation, subject, date, cluster (the same for pairs of one subject), gold (list:
    the usual names of what is right), tags, details, and whether the commonest answer of the
    relation is right. Facts that are no pair of their own belong to that of their subject.
    """
    frames = [_asked(dataset, relation.id) for relation in dataset.asked_relations()]
    own = col("fact").is_in(list(pairs))
    owner = col("fact").filter(own).first().over("relation", "subject_id")
    cluster = polars.concat_str("relation", "subject_id", separator=":")
    return (
        polars.concat(frames)
        .with_columns(cluster=cluster, fact=polars.when(own).then("fact").otherwise(owner))
        .drop_nulls("fact")
        .group_by("fact", maintain_order=True)
        .agg(
            col("relation", "subject", "date", "cluster", "tags", "details").first(),
            col("gold").explode().unique(maintain_order=True),
            col("commonest").any(),
        )
    )


def _asked(dataset: Dataset, relation: str) -> DataFrame:
    """The facts of a relation that are asked about, with the usual names of their objects."""
    commonest = [name for name, _ in commonest_objects(dataset.split_frame(relation))[:1]]
    gold = col("object_names").list.eval(polars.element().list.first())
    return dataset.asked_frame(relation).select(
        *("fact", "relation", "subject", "subject_id", "date", "tags", "details"),
        gold.alias("gold"),
        polars.any_horizontal(gold.list.contains(name) for name in commonest or [""])
        .fill_null(False)
        .alias("commonest"),
    )


def facts_of_runs(aligned: Aligned) -> DataFrame:
    """Every fact that all runs were asked, a row each: relation, fact, subject, gold, and of each
    run its answer, the share of prompts that are right and the mean confidence.

    Columns of a run end with its name: `answer A`, `right A`, `confidence A`. The answer is the
    commonest over the prompts, of several the first by name.
    """
    first, about = aligned.first, aligned.runs[0].facts
    told = {} if about is None else {row["fact"]: row for row in about.iter_rows(named=True)}
    rows = [told.get(id, {"subject": None, "gold": []}) for id in first.pairs]
    columns = {
        "relation": [first.relations[r].id for r in first.grid.relations.tolist()],
        "fact": first.pairs,
        "subject": [own[0] for own in first.names] or [row["subject"] for row in rows],
        "gold": first.objects or [", ".join(row["gold"]) or None for row in rows],
    }
    frame = polars.DataFrame(columns, schema=dict.fromkeys(columns, polars.String))
    return frame.hstack([c for run in aligned.runs for c in _answered(run.name, run.judged)])


def _answered(name: str, judged: Judged) -> list[polars.Series]:
    """What a run says of every pair, in their order."""
    grid = judged.grid
    prompts = polars.DataFrame(
        {
            "pair": grid.pair,
            "answer": polars.Series(judged.answers, dtype=polars.String).gather(grid.answer),
            "right": grid.right,
            "confidence": grid.confidence,
        },
        nan_to_null=True,
    )
    counts = prompts.group_by("pair", "answer").len()
    commonest = counts.sort("pair", "len", "answer", descending=[False, True, False])
    means = prompts.group_by("pair").agg(col("right", "confidence").mean()).sort("pair")
    columns = {
        "answer": commonest.unique("pair", keep="first", maintain_order=True)["answer"],
        **means.select("right", "confidence").to_dict(),
    }
    return [column.alias(f"{title} {name}") for title, column in columns.items()]


def with_change(facts: DataFrame, first: str, second: str) -> DataFrame:
    """Facts of two runs with what became of each from the first to the second: gained or lost where
    it is known in one of them alone, more or less often right, or nothing."""
    before, after = col(f"right {first}"), col(f"right {second}")
    change = (
        polars.when((before <= KNOWN) & (after > KNOWN))
        .then(polars.lit(GAINED))
        .when((before > KNOWN) & (after <= KNOWN))
        .then(polars.lit(LOST))
        .when(after > before)
        .then(polars.lit(MORE))
        .when(after < before)
        .then(polars.lit(LESS))
    )
    return facts.with_columns(change=change)


def flipped(facts: DataFrame, names: Sequence[str]) -> DataFrame:
    """The facts that some runs know and others do not; those of which most prompts differ first."""
    shares = [col(f"right {name}") for name in names]
    known = [share > KNOWN for share in shares]
    apart = polars.max_horizontal(shares) - polars.min_horizontal(shares)
    kept = facts.filter(polars.any_horizontal(known) & ~polars.all_horizontal(known))
    return kept.sort(apart, descending=True, maintain_order=True)
