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
        hard = gain.filter(
            col("group_by").list.len() == 0, metric="hard.accuracy", over="relations"
        )
        for value, p in hard.select("value", "p").iter_rows() if easy else ():
            significant = "significant" if p is not None and p < 0.05 else "not significant"
            summary.append(
                f"On hard facts {name} differs from {base} by {100 * value:+.1f} points "
                f"({significant})."
            )
    estimates = pl.concat([frame for frame in frames if not frame.is_empty()])
    return Report(
        title=f"Learning from training facts: {len(tables)} runs, reference {next(iter(tables))}",
        summary=summary,
        sections=[Section("learning", "Learning", _exhibits(estimates, tables, seed))],
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


def _exhibits(estimates: pl.DataFrame, tables: Mapping[str, Results], seed: int) -> list[Exhibit]:
    """Accuracies, gains and majority answers of each run, then sampled facts."""
    whole = estimates.filter(col("group_by").list.len() == 0, over="relations")
    labels = {metric.id: metric.label for metric in METRICS}
    exhibits = []
    for id, title, of, start in (
        ("accuracy", "Accuracy", "value", 0),
        ("gains", "Difference from the reference run", "difference", 0),
        ("majority", "Answers with the most common training object", "value", 4),
    ):
        unit, metrics = "points" if of == "difference" else "percent", METRICS[start : start + 4]
        here = whole.filter(col("metric").is_in([m.id for m in metrics]), of=of)
        frame = here.filter(col("run").is_not_null() & col("value").is_not_null()).select(
            label="run", color=col("metric").replace(labels), x="value", low="low", high="high"
        )
        note = "Mean over relations."
        exhibits.append(Exhibit(id, title, frame, {"x": unit}, "intervals", note, "all facts"))
    exhibits.append(Exhibit("facts", "Sampled easy and hard facts", _sample_facts(tables, seed)))
    return [exhibit for exhibit in exhibits if not exhibit.frame.is_empty()]


def _sample_facts(tables: Mapping[str, Results], seed: int) -> pl.DataFrame:
    """Easy and hard facts with each run's answer: those that some run knows and whose object is not
    the majority; sampled by the seed."""
    frame = next(iter(tables.values())).facts
    for name, results in tables.items():
        answer = col("answer").cast(pl.String).str.strip_chars()
        mark = pl.when("correct").then(pl.lit(" ✓")).otherwise(pl.lit(""))
        answers = results.rows.unique("fact_no", keep="last", maintain_order=True)
        answers = answers.select("fact_no", (answer + mark).alias(name))
        frame = frame.join(answers, on="fact_no", how="left", maintain_order="left")
    some = pl.any_horizontal(col(name).str.ends_with("✓") for name in tables)
    frame = frame.filter(some & ~col("has_majority").fill_null(False))
    keys = pl.Series([draw_key(seed, fact) for fact in frame["fact"]], dtype=pl.UInt64)
    frame = frame.with_columns(_key=keys).sort("_key").drop_nulls("easy")
    parts = [frame.filter(easy=value).head(SAMPLE) for value in (True, False)]
    kind = pl.when("easy").then(pl.lit("easy")).otherwise(pl.lit("hard"))
    relation = col("relation").cast(pl.String)
    return (
        pl.concat(parts)
        .select(relation, "subject", "gold", *tables, kind=kind)
        .select("kind", pl.exclude("kind"))
    )
