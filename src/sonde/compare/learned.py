"""OptiPrompt's controls: how much of a run's accuracy may be learned from training facts.

A fact is easy if a model that knows nothing but the training facts answers it; the others are hard.
The majority is the most common object of a relation's training facts. Gains are paired: a run minus
its reference on the same facts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl
from polars import col

from sonde.compare.conditions import Condition, align
from sonde.core.errors import UsageError
from sonde.core.facts import commonest_objects
from sonde.core.train_test_overlap import training
from sonde.evaluation.estimate import Metric

TRUE = col("correct").cast(pl.Float64)
MAJORITY = col("answers_majority").cast(pl.Float64)
REFERENCE = col("reference").mean()
METRICS = (
    Metric("accuracy", num=TRUE.mean(), baseline=REFERENCE, label="accuracy"),
    Metric("accuracy.uhn", num=TRUE.mean(), where=~col("guessable"), baseline=REFERENCE,
           label="UHN accuracy"),
    Metric("easy.accuracy", num=TRUE.mean(), where=col("easy"), baseline=REFERENCE,
           label="accuracy on easy facts"),
    Metric("hard.accuracy", num=TRUE.mean(), where=~col("easy"), baseline=REFERENCE,
           label="accuracy on hard facts"),
    Metric("majority.answered", num=MAJORITY.mean(), label="answers with the majority object"),
    Metric("majority.correct", num=(TRUE * MAJORITY).mean(),
           label="correct with the majority object"),
    Metric("other.correct", num=(TRUE * (1 - MAJORITY)).mean(), label="correct with other objects"),
    Metric("easy.share", num=col("easy").cast(pl.Float64).mean(), label="easy facts"),
    Metric("majority.test", num=col("has_majority").cast(pl.Float64).mean(),
           label="facts with the majority object"),
    Metric("majority.train", num=col("train_share").mean(),
           label="training facts with the majority object"),
)  # fmt: skip


def with_learning(
    every: Mapping[str, Condition], easy: Sequence[str] = ()
) -> tuple[dict[str, Condition], str]:
    """Runs of lama on the facts that they share, with `METRICS`, and a sentence on easy facts.

    `easy` names the runs whose correct answers make a fact easy; without it naive Bayes and random
    models that were fine-tuned.
    """
    easy = list(easy) or [name for name, c in every.items() if _knows_training_only(c)]
    if unknown := [name for name in easy if name not in every]:
        raise UsageError(f"no run is called {unknown[0]!r}; runs: {', '.join(every)}")
    aligned = align(every)
    relation, names = col("relation").cast(pl.String), col("gold_names").list
    counts = _training_objects(every, aligned.facts["relation"].unique().cast(pl.String).to_list())
    top = {r: next(iter(c)) for r, c in counts.items()}
    shares = {r: max(c.values()) / sum(c.values()) for r, c in counts.items()}
    easy_facts = pl.lit(None, pl.Boolean)
    if easy:
        rows = pl.concat([aligned.conditions[n].results.rows["fact_no", "correct"] for n in easy])
        easy_facts = col("fact_no").is_in(rows.filter("correct")["fact_no"].implode())
    facts = aligned.facts.with_columns(
        train_majority=relation.replace_strict(top, default=None, return_dtype=pl.String),
        train_share=relation.replace_strict(shares, default=None, return_dtype=pl.Float64),
        easy=easy_facts,
    ).with_columns(
        has_majority=names.eval(pl.element().explode()).list.contains(col("train_majority"))
    )
    learned = {}
    for name, c in aligned.conditions.items():
        # the first run of the model, if names are METHOD@MODEL
        base = next(n for n in aligned.names if n.partition("@")[2] == name.partition("@")[2])
        reference = aligned.conditions[base].results.rows.group_by("fact_no")
        rows = c.results.rows.join(
            reference.agg(reference=TRUE.mean()), on="fact_no", maintain_order="left"
        )
        answer = rows["answer"].cast(pl.String).str.strip_chars()
        majority = answer == facts["train_majority"].gather(rows["fact_no"])
        rows = rows.with_columns(answers_majority=majority.fill_null(False))
        settings = {**c.settings, "reference": base * (base != name)}
        results = replace(c.results, facts=facts, rows=rows)
        learned[name] = replace(c, results=results, settings=settings, metrics=METRICS)
    if easy:
        return learned, f"A fact is easy if {' or '.join(easy)} answers it."
    advice = "No run decides which facts are easy: add control:naive-bayes, or use --easy."
    return learned, advice


def _knows_training_only(condition: Condition) -> bool:
    model = condition.run.manifest.model
    base = model.get("details", {}).get("base", "")
    tuned = model["name"].startswith("finetuned:") and base.startswith("random")
    return bool(tuned or model["name"] == "control:naive-bayes")


def _training_objects(
    every: Mapping[str, Condition], relations: Sequence[str]
) -> dict[str, dict[str, int]]:
    """The objects of each relation's training facts, the most common first."""
    counts: dict[str, dict[str, int]] = {}
    for run in {c.dataset: c.run for c in every.values()}.values():
        data = run.dataset()
        for relation in {r.id for r in data.relations} & set(relations):
            trained = dict(commonest_objects(training(data, relation).facts))
            if counts.setdefault(relation, trained) != trained:
                raise UsageError(
                    f"{run.path} has other training facts of {relation} than the runs before it; "
                    "make all runs from the same dataset"
                )
    return {relation: objects for relation, objects in counts.items() if objects}
