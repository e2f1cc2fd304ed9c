"""OptiPrompt's controls: how much of a run's accuracy may be learned from training facts.

A fact is easy if a model that knows nothing but the training facts answers it; the others are hard.
The majority is the most common object of a relation's training facts. Gains are paired: a run minus
its reference on the same facts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
from polars import col

from sonde.compare.conditions import Aligned, Condition, align, conditions
from sonde.compare.pairwise import KNOWN, changed_facts
from sonde.core.errors import UsageError
from sonde.core.facts import commonest_objects
from sonde.core.fingerprints import draw_key
from sonde.core.train_test_overlap import training
from sonde.evaluation.estimate import Metric, contrast, estimate
from sonde.evaluation.layout import Exhibit
from sonde.evaluation.tables import Results
from sonde.reports.model import Report, Section

if TYPE_CHECKING:
    from sonde.runs.run import Run

TRUE = col("correct").cast(pl.Float64)
MAJORITY = col("answers_majority").cast(pl.Float64)
METRICS = (
    Metric("accuracy", num=TRUE.mean(), label="accuracy"),
    Metric("accuracy.uhn", num=TRUE.mean(), where=~col("guessable"), label="UHN accuracy"),
    Metric("easy.accuracy", num=TRUE.mean(), where=col("easy"), label="accuracy on easy facts"),
    Metric("hard.accuracy", num=TRUE.mean(), where=~col("easy"), label="accuracy on hard facts"),
    Metric("majority.answered", num=MAJORITY.mean(), label="answers with the majority object"),
    Metric(
        "majority.correct", num=(TRUE * MAJORITY).mean(), label="correct with the majority object"
    ),
    Metric("other.correct", num=(TRUE * (1 - MAJORITY)).mean(), label="correct with other objects"),
)
OF_FACTS = (
    Metric("easy.share", num=col("easy").cast(pl.Float64).mean(), label="easy facts"),
    Metric("majority.test", num=col("has_majority").cast(pl.Float64).mean(),
           label="facts with the majority object"),
    Metric("majority.train", num=col("train_share").mean(),
           label="training facts with the majority object"),
)  # fmt: skip
SAMPLE = 10  # facts of each kind that are shown


def learn(runs: Mapping[str, "Run"], easy: Sequence[str] = (), seed: int = 0) -> Report:
    """What runs of lama on the same facts may have learned, next to each other.

    `easy` names the runs whose correct answers make a fact easy; without it naive Bayes and random
    models that were fine-tuned.
    """
    for run in runs.values():
        if run.manifest.probe["name"] != "lama":
            raise UsageError(
                f"{run.path} is a run of {run.manifest.probe['name']!r}; --learning takes runs of "
                "lama"
            )
    every = conditions(runs)
    aligned = align(every)
    easy = list(easy) or [name for name, c in every.items() if _knows_training_only(c)]
    if unknown := [name for name in easy if name not in every]:
        raise UsageError(f"no run is called {unknown[0]!r}; runs: {', '.join(every)}")
    tables = _with_learning(aligned, _majorities(aligned, runs), easy)
    first, *_ = tables.values()
    frames = [estimate(first, OF_FACTS, groups=("relation",), seed=seed)]
    summary = [
        f"{len(tables)} runs on {aligned.facts.height:,} shared facts. "
        + (
            f"A fact is easy if {' or '.join(easy)} answers it."
            if easy
            else "No run decides which facts are easy: add control:naive-bayes, or use --easy."
        )
    ]
    for name, results in tables.items():
        # the first run of the model, if names are METHOD@MODEL
        base = next(n for n in tables if n.partition("@")[2] == name.partition("@")[2])
        numbers = estimate(results, METRICS, groups=("relation", "kind"), seed=seed)
        frames.append(numbers.with_columns(run=pl.lit(name)))
        if base == name:
            continue
        gain = contrast(results, tables[base], METRICS, seed=seed)
        frames.append(gain.with_columns(run=pl.lit(name), reference=pl.lit(base)))
    estimates = pl.concat([frame for frame in frames if not frame.is_empty()])
    title, sample = "Sampled easy and hard facts", _sample_facts(aligned, tables, seed)
    return Report(
        title=f"Learning from training facts: {len(tables)} runs, reference {next(iter(tables))}",
        summary=summary,
        sections=[Section("facts", "Facts", [Exhibit("facts", title, sample)])] * bool(len(sample)),
        estimates=estimates,
        metrics=[*METRICS, *OF_FACTS],
        over="relations",
        runs="run",
    )


def _knows_training_only(condition: Condition) -> bool:
    model = condition.run.manifest.model
    base = model.get("details", {}).get("base", "")
    tuned = model["name"].startswith("finetuned:") and base.startswith("random")
    return bool(tuned or model["name"] == "control:naive-bayes")


def _majorities(aligned: Aligned, runs: Mapping[str, "Run"]) -> dict[str, tuple[str, float]]:
    """The most common object of each relation's training facts, and its share of them."""
    relations = aligned.facts["relation"].unique(maintain_order=True).cast(pl.String).to_list()
    counts: dict[str, dict[str, int]] = {}
    for run in {run.manifest.dataset["fingerprint"]: run for run in runs.values()}.values():
        data = run.dataset()
        for relation in {r.id for r in data.relations} & set(relations):
            trained = dict(commonest_objects(training(data, relation).facts))
            if counts.setdefault(relation, trained) != trained:
                raise UsageError(
                    f"{run.path} has other training facts of {relation} than the runs before it; "
                    "make all runs from the same dataset"
                )
    return {r: (next(iter(c)), max(c.values()) / sum(c.values())) for r, c in counts.items() if c}


def _with_learning(
    aligned: Aligned, majorities: Mapping[str, tuple[str, float]], easy: Sequence[str]
) -> dict[str, Results]:
    """The results with the rows' majority answers, and the facts' majority and easiness."""
    relation, names = col("relation").cast(pl.String), col("gold_names").list
    top, shares = ({r: values[i] for r, values in majorities.items()} for i in (0, 1))
    solved = pl.lit(None, pl.Boolean)
    if easy:
        rows = pl.concat([aligned.conditions[n].results.rows["fact_no", "correct"] for n in easy])
        solved = col("fact_no").is_in(rows.filter("correct")["fact_no"].implode())
    facts = aligned.facts.with_columns(
        train_majority=relation.replace_strict(top, default=None, return_dtype=pl.String),
        train_share=relation.replace_strict(shares, default=None, return_dtype=pl.Float64),
        easy=solved,
    ).with_columns(
        has_majority=names.eval(pl.element().explode()).list.contains(col("train_majority"))
    )
    tables = {}
    for name, condition in aligned.conditions.items():
        rows = condition.results.rows
        answer = rows["answer"].cast(pl.String).str.strip_chars()
        majority = answer == facts["train_majority"].gather(rows["fact_no"])
        rows = rows.with_columns(answers_majority=majority.fill_null(False))
        tables[name] = replace(condition.results, facts=facts, rows=rows)
    return tables


def _sample_facts(aligned: Aligned, tables: Mapping[str, Results], seed: int) -> pl.DataFrame:
    """Easy and hard facts with each run's answer: those that some run knows and whose object is not
    the majority; sampled by the seed."""
    facts = next(iter(tables.values())).facts
    keys = pl.Series("key", [draw_key(seed, fact) for fact in facts["fact"]], dtype=pl.UInt64)
    kind = pl.when("easy").then(pl.lit("easy")).otherwise(pl.lit("hard")).alias("kind")
    knows = [col(f"correct {name}") > KNOWN for name in tables]
    texts = [
        (col(f"answer {n}") + pl.when(right).then(pl.lit(" ✓")).otherwise(pl.lit(""))).alias(n)
        for n, right in zip(tables, knows, strict=True)
    ]
    frame = changed_facts(aligned).with_columns(*facts["easy", "has_majority"], keys)
    frame = frame.filter(pl.any_horizontal(knows) & ~col("has_majority").fill_null(False))
    frame = frame.drop_nulls("easy").sort("key").select(kind, "relation", "subject", "gold", *texts)
    sample = frame.filter(pl.int_range(pl.len()).over("kind") < SAMPLE)
    return sample.sort("kind", maintain_order=True)
