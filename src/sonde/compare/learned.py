"""OptiPrompt's controls: how much of a run's accuracy may be learned from training facts.

A fact is easy if a model that knows nothing but the training facts answers it; the others are hard.
The majority is the most common object of a relation's training facts. Gains are paired: a run minus
its reference on the same facts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
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
)  # fmt: skip
SAMPLE = 10  # facts of each kind that are shown
NEARLY_ALWAYS, TOO_OFTEN = 0.95, 0.1  # shares from which an object counts as over-predicted


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
    majority = _majorities(aligned, runs)
    tables = _with_learning(aligned, majority, easy)
    first = next(iter(tables.values()))
    frames = [estimate(first, OF_FACTS, groups=("relation",), seed=seed)]
    bases = {name: _reference(name, list(tables)) for name in tables}
    for name, results in tables.items():
        numbers = estimate(results, METRICS, groups=("relation", "kind"), seed=seed)
        frames.append(numbers.with_columns(run=pl.lit(name)))
        if (base := bases[name]) != name:
            gain = contrast(results, tables[base], METRICS, seed=seed)
            frames.append(gain.with_columns(run=pl.lit(name), reference=pl.lit(base)))
    estimates = pl.concat([frame for frame in frames if not frame.is_empty()])
    return _report(aligned, tables, estimates, majority, easy, bases, seed)


def _knows_training_only(condition: Condition) -> bool:
    model = condition.run.manifest.model
    base = model.get("details", {}).get("base", "")
    tuned = model["name"].startswith("finetuned:") and base.startswith("random")
    return bool(tuned or model["name"] == "control:naive-bayes")


def _reference(name: str, names: Sequence[str]) -> str:
    """The run that another is compared with: the first of its model, if names are METHOD@MODEL."""
    model = name.partition("@")[2]
    return next(n for n in names if n.partition("@")[2] == model)


def _majorities(aligned: Aligned, runs: Mapping[str, "Run"]) -> dict[str, dict[str, int]]:
    """Per relation how often each object is that of a training fact; the most common first."""
    relations = aligned.facts["relation"].unique(maintain_order=True).cast(pl.String).to_list()
    counts: dict[str, dict[str, int]] = {}
    contents: set[str] = set()
    for name, run in runs.items():
        data = run.dataset()
        if data.fingerprint in contents:
            continue
        contents.add(data.fingerprint)
        for relation in relations:
            if relation not in {r.id for r in data.relations}:
                continue
            trained = dict(commonest_objects(training(data, relation).facts))
            if counts.setdefault(relation, trained) != trained:
                raise UsageError(
                    f"run {name!r} has other training facts of {relation} than the runs before it; "
                    "make all runs from the same dataset"
                )
    return counts


def _with_learning(
    aligned: Aligned, majority: Mapping[str, Mapping[str, int]], easy: Sequence[str]
) -> dict[str, Results]:
    """The results with the rows' majority answers, and the facts' majority and easiness."""
    facts = aligned.facts
    top = {relation: next(iter(counts), None) for relation, counts in majority.items()}
    names = col("gold_names").list.eval(pl.element().explode())
    facts = facts.with_columns(
        train_majority=col("relation").cast(pl.String).replace_strict(top, return_dtype=pl.String)
    ).with_columns(has_majority=names.list.contains(col("train_majority")))
    solved = pl.Series("easy", [None] * facts.height, dtype=pl.Boolean)
    if easy:
        known = np.zeros((len(easy), facts.height), dtype=bool)
        for i, name in enumerate(easy):
            rows = aligned.conditions[name].results.rows
            known[i, rows.filter("correct")["fact_no"].to_numpy()] = True
        solved = pl.Series("easy", known.any(axis=0))
    facts = facts.with_columns(solved)
    tables = {}
    for name, condition in aligned.conditions.items():
        rows = condition.results.rows
        wanted = facts["train_majority"].gather(rows["fact_no"])
        answer = rows["answer"].cast(pl.String).str.strip_chars()
        rows = rows.with_columns(answers_majority=(answer == wanted).fill_null(False))
        tables[name] = replace(condition.results, facts=facts, rows=rows)
    return tables


def over_predicted(
    tables: Mapping[str, Results], majority: Mapping[str, Mapping[str, int]]
) -> pl.DataFrame:
    """The majority object if a prompt elicits it nearly always, and other objects that are answered
    clearly more often than they are correct; the worst first."""
    lines = []
    for name, results in tables.items():
        if results.templates.is_empty():
            continue
        counts = results.answer_distribution().with_columns(col("relation").cast(pl.String))
        first = results.templates.filter(col("template_no") == 1)
        texts = dict(first.select(col("relation").cast(pl.String), "text").iter_rows())
        for (relation,), part in counts.group_by("relation", maintain_order=True):
            total, gold = part["n"].sum(), part["gold"].sum()
            top = next(iter(majority.get(str(relation), {})), "")
            trained = sum(majority.get(str(relation), {}).values())
            for row in part.iter_rows(named=True):
                share, test = row["n"] / total, row["gold"] / max(gold, 1)
                is_top = row["answer"] == top
                if share > NEARLY_ALWAYS if is_top else share - test >= TOO_OFTEN:
                    train = (
                        majority[str(relation)].get(row["answer"], 0) / trained if trained else None
                    )
                    lines.append(
                        (
                            name,
                            relation,
                            texts.get(relation, ""),
                            row["answer"],
                            is_top,
                            share,
                            train,
                            test,
                        )
                    )
    names = (
        "run",
        "relation",
        "template",
        "object",
        "majority",
        "answered",
        "training facts",
        "test facts",
    )
    types = (pl.String,) * 4 + (pl.Boolean,) + (pl.Float64,) * 3
    frame = pl.DataFrame(lines, dict(zip(names, types, strict=True)), orient="row")
    return frame.sort(col("answered") - col("test facts"), descending=True)


def sample_facts(tables: Mapping[str, Results], seed: int) -> pl.DataFrame:
    """Easy and hard facts with each run's answer: those that some run knows and whose object is not
    the majority; sampled by the seed."""
    facts = next(iter(tables.values())).facts
    some = np.zeros(facts.height, dtype=bool)
    columns: dict[str, list[str]] = {}
    for name, results in tables.items():
        answers = [""] * facts.height
        for n, answer, correct in results.rows.select("fact_no", "answer", "correct").iter_rows():
            answers[n] = f"{str(answer).strip()}{' ✓' * correct}"
            some[n] |= correct
        columns[name] = answers
    frame = facts.with_columns(pl.Series(name, texts) for name, texts in columns.items())
    frame = frame.filter(pl.Series(some) & ~col("has_majority").fill_null(False))
    keys = pl.Series([draw_key(seed, fact) for fact in frame["fact"]], dtype=pl.UInt64)
    frame = frame.with_columns(_key=keys).sort("_key").drop_nulls("easy")
    parts = [frame.filter(col("easy") == value).head(SAMPLE) for value in (True, False)]
    shown = pl.concat(parts).with_columns(
        kind=pl.when("easy").then(pl.lit("easy")).otherwise(pl.lit("hard")),
        relation=col("relation").cast(pl.String),
    )
    return shown.select("kind", "relation", "subject", "gold", *columns)


def pivot(estimates: pl.DataFrame, columns: Mapping[str, tuple[str, ...]]) -> pl.DataFrame:
    """A row per run; `columns`: head → (metric, of, over, column and group to look at)."""
    table: pl.DataFrame | None = None
    for head, (metric, of, over, *group) in columns.items():
        here = (col("metric") == metric) & (col("of") == of) & (col("over") == over)
        here &= col("group_by").list.join(",") == (group[0] if group else "")
        if group:
            here &= col("group").list.join(",") == group[1]
        cells = estimates.filter(here & col("run").is_not_null())
        cells = cells.select("run", pl.struct("value", "low", "high", "n").alias(head))
        if cells.is_empty():
            continue
        table = (
            cells
            if table is None
            else table.join(cells, on="run", how="left", maintain_order="left")
        )
    return pl.DataFrame() if table is None else table


def _report(
    aligned: Aligned,
    tables: Mapping[str, Results],
    estimates: pl.DataFrame,
    majority: Mapping[str, Mapping[str, int]],
    easy: Sequence[str],
    bases: Mapping[str, str],
    seed: int,
) -> Report:
    over = "relations"
    kinds = [
        k for k in ("1-1", "N-1", "N-M") if k in next(iter(tables.values())).facts["kind"].to_list()
    ]
    accuracies = pivot(estimates, {
        **{kind: ("accuracy", "value", "facts", "kind", kind) for kind in kinds},
        "All": ("accuracy", "value", over),
        "UHN": ("accuracy.uhn", "value", over),
        "Easy": ("easy.accuracy", "value", over),
        "Hard": ("hard.accuracy", "value", over),
    })  # fmt: skip
    gains = pivot(estimates, {
        "All": ("accuracy", "difference", over),
        "Easy": ("easy.accuracy", "difference", over),
        "Hard": ("hard.accuracy", "difference", over),
    })  # fmt: skip
    shares = pivot(estimates, {
        "answered": ("majority.answered", "value", over),
        "correct with it": ("majority.correct", "value", over),
        "correct with others": ("other.correct", "value", over),
    })  # fmt: skip
    often, sample = over_predicted(tables, majority), sample_facts(tables, seed)

    def units(frame: pl.DataFrame, unit: str) -> dict[str, str]:
        return {name: unit for name in frame.columns if name != "run"}

    exhibits = [
        Exhibit("accuracy", "Accuracy", accuracies, units(accuracies, "percent"),
                note="Mean over relations; types of relations over facts."),
        Exhibit("gains", "Difference from the reference run", gains, units(gains, "points")),
        Exhibit("majority", "Answers with the most common training object", shares,
                units(shares, "percent")),
        Exhibit("over-predicted", "Objects that are answered too often", often,
                {"answered": "percent", "training facts": "percent", "test facts": "percent"}),
        Exhibit("facts", "Sampled easy and hard facts", sample),
    ]  # fmt: skip
    n, first = aligned.facts.height, next(iter(tables))
    gained = [name for name, base in bases.items() if base != name]
    decides = f"A fact is easy if {' or '.join(easy)} answers it."
    if not easy:
        decides = "No run decides which facts are easy: add control:naive-bayes, or use --easy."
    summary = [f"{len(tables)} runs on {n:,} shared facts. {decides}"]
    for name in gained:
        line = estimates.filter(
            (col("run") == name) & (col("metric") == "hard.accuracy") & (col("of") == "difference")
            & (col("over") == over) & (col("group_by").list.len() == 0)
        )  # fmt: skip
        if easy and not line.is_empty():
            row = line.row(0, named=True)
            verdict = (
                "significant"
                if (row["p"] if row["p"] is not None else 1.0) < 0.05
                else "not significant"
            )
            summary.append(
                f"On hard facts {name} differs from {bases[name]} by "
                f"{100 * row['value']:+.1f} points "
                f"({verdict})."
            )
    return Report(
        title=f"Learning from training facts: {len(tables)} runs, reference {bases[first]}",
        summary=summary,
        sections=[Section("learning", "Learning", [e for e in exhibits if not e.frame.is_empty()])],
        estimates=estimates,
        metrics=[*METRICS, *OF_FACTS],
        over="relations",
        runs="run",
    )
