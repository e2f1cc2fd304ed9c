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
METRICS = (
    *(
        Metric(id, num=TRUE.mean(), where=where, baseline=col("reference").mean(), label=label)
        for id, where, label in (
            ("accuracy", None, "accuracy"),
            ("accuracy.uhn", ~col("guessable"), "UHN accuracy"),
            ("easy.accuracy", col("easy"), "accuracy on easy facts"),
            ("hard.accuracy", ~col("easy"), "accuracy on hard facts"),
        )
    ),
    *(
        Metric(id, num=value.mean(), label=label)
        for id, value, label in (
            ("majority.answered", MAJORITY, "answers with the majority object"),
            ("majority.correct", TRUE * MAJORITY, "correct with the majority object"),
            ("other.correct", TRUE * (1 - MAJORITY), "correct with other objects"),
            ("easy.share", col("easy").cast(pl.Float64), "easy facts"),
            ("majority.test", col("has_majority").cast(pl.Float64),
             "facts with the majority object"),
            ("majority.train", col("train_share"), "training facts with the majority object"),
        )
    ),
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
    relation = col("relation").cast(pl.String)
    counts: dict[str, dict[str, int]] = {}
    for run in {c.dataset: c.run for c in every.values()}.values():
        data = run.dataset()
        for id in {r.id for r in data.relations} & {*aligned.facts["relation"].cast(pl.String)}:
            objects = dict(commonest_objects(training(data, id).facts))
            if counts.setdefault(id, objects) != objects:
                raise UsageError(
                    f"{run.path} has other training facts of {id} than the runs before it; make "
                    "all runs from the same dataset"
                )
    counts = {id: objects for id, objects in counts.items() if objects}
    top = {id: next(iter(objects)) for id, objects in counts.items()}
    shares = {id: objects[top[id]] / sum(objects.values()) for id, objects in counts.items()}
    solved = [aligned.conditions[name].results.rows.filter("correct")["fact_no"] for name in easy]
    easy_facts = (
        col("fact_no").is_in(pl.concat(solved).implode()) if easy else pl.lit(None, pl.Boolean)
    )
    facts = aligned.facts.with_columns(
        train_majority=relation.replace_strict(top, default=None, return_dtype=pl.String),
        train_share=relation.replace_strict(shares, default=None, return_dtype=pl.Float64),
        easy=easy_facts,
    ).with_columns(
        has_majority=col("gold_names")
        .list.eval(pl.element().explode())
        .list.contains(col("train_majority"))
    )
    learned = {}
    for name, c in aligned.conditions.items():
        # the first run of the model, if names are METHOD@MODEL
        base = next(n for n in aligned.names if n.partition("@")[2] == name.partition("@")[2])
        reference = aligned.conditions[base].results.rows.select("fact_no", reference=TRUE)
        rows = c.results.rows.join(reference, on="fact_no", maintain_order="left")
        answer = rows["answer"].cast(pl.String).str.strip_chars()
        majority = answer == facts["train_majority"].gather(rows["fact_no"])
        rows = rows.with_columns(answers_majority=majority.fill_null(False))
        settings = {**c.settings, "reference": base * (base != name)}
        results = replace(c.results, facts=facts, rows=rows)
        learned[name] = replace(c, results=results, settings=settings, metrics=METRICS)
    sentence = "No run decides which facts are easy: add control:naive-bayes, or use --easy."
    if easy:
        sentence = f"A fact is easy if {' or '.join(easy)} answers it."
    return learned, sentence


def _knows_training_only(condition: Condition) -> bool:
    model = condition.run.manifest.model
    base = model.get("details", {}).get("base", "")
    tuned = model["name"].startswith("finetuned:") and base.startswith("random")
    return bool(tuned or model["name"] == "control:naive-bayes")
