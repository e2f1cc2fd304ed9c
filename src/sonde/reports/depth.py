"""One fact in depth: every prompt as it was sent, with its top answers and how it was graded."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
from polars import col

from sonde.answers import Answers, Completions, MaskScores, OptionScores, Samples
from sonde.core.errors import UsageError, nearest
from sonde.evaluation.judge import top_answers
from sonde.evaluation.layout import Exhibit
from sonde.evaluation.stats import generator
from sonde.evaluation.tables import FACT, Results
from sonde.reports.model import Facts, Item, Report, Section
from sonde.reports.sentences import say, text

TOP = 5
GAP = "____"
MAX_FACTS, MAX_PROMPTS = 5_000, 25_000  # on a page
SHOWN = 300  # characters of a long prompt on a page

Prompt = list[Any]  # text, then for each model [its number, correct, rank, gold probability, top]


def prompts_of(
    results: Results, answers: Iterable[Answers], facts: Sequence[int], k: int = TOP, shown: int = 0
) -> dict[int, list[Prompt]]:
    """Every prompt of some facts (by fact_no); `shown` characters of the text, or all.

    A top answer is [name, probability or None, whether it is gold].
    """
    prompts: dict[int, list[Prompt]] = {number: [] for number in facts}
    about = results.facts.filter(col("fact_no").is_in(list(facts)))
    gold = {
        number: {name.casefold() for names in objects or () for name in names}
        for number, objects in about.select("fact_no", "gold_names").iter_rows()
    }
    keys = about.select(col("relation").cast(pl.String), "fact", "fact_no")
    axes = [name for name in results.probe.axes if name in results.rows.columns]
    graded = _verdicts(results, about, axes)
    normalize = getattr(results.probe, "normalize", "none")
    for batch in answers:
        frame = batch.frame.with_row_index("prompt")
        frame = frame.join(keys, on=FACT, how="inner", maintain_order="left")
        if frame.is_empty():
            continue
        rows = frame["prompt"].to_numpy().astype(np.int64)
        top = _top(batch, rows, k, normalize)
        known = [name for name in axes if name in frame.columns]
        named = frame.with_columns(pl.lit(None, pl.String).alias(a) for a in axes if a not in known)
        for row in named.with_columns(col(axes).cast(pl.String)).iter_rows(named=True):
            number, prefix, suffix = row["fact_no"], row["prefix"], row["suffix"] or ""
            key = (number, row["template"], row["subject"], *(row[name] for name in axes))
            gap = GAP + suffix if isinstance(batch.result, OptionScores | MaskScores) else ""
            if shown and len(prefix) > shown:
                prefix = "…" + prefix[-shown:]
            names = [[name, p, name.casefold() in gold[number]] for name, p in top[row["prompt"]]]
            verdict = graded.get(key, (None, None, None))
            prompts[number].append([prefix + gap, [0, *verdict, names]])
    return prompts


def _verdicts(results: Results, about: pl.DataFrame, axes: Sequence[str]) -> dict[Any, Any]:
    """Whether each prompt is correct, the rank of the gold answer and its probability."""
    here = results.select(where=col("fact_no").is_in(about["fact_no"].implode()))
    columns = (
        "fact_no",
        "template",
        "alias_no",
        *axes,
        "correct",
        "rank",
        "gold_logprob",
        "aliases",
    )
    rows = here.table(columns).with_columns(
        col(axes).cast(pl.String),
        subject=col("aliases").list.get(col("alias_no"), null_on_oob=True),
        gold_prob=col("gold_logprob").cast(pl.Float64).exp().round(5),
    )
    verdict = ("correct", "rank", "gold_prob")
    lines = rows.select("fact_no", "template", "subject", *axes, *verdict).collect().iter_rows()
    return {tuple(key): tuple(values) for *key, values in ((*r[:-3], r[-3:]) for r in lines)}


def _top(
    batch: Answers, rows: Any, k: int, normalize: Any
) -> dict[int, list[tuple[str, float | None]]]:
    """The top answers of some prompts of a batch, with their probabilities."""
    top: dict[int, list[tuple[str, float | None]]] = {row: [] for row in rows.tolist()}
    result = batch.result.select(rows)
    match result:
        case OptionScores() | MaskScores():
            for row, name, p in top_answers(batch, rows, k, normalize).iter_rows():
                top[row].append((name, round(p, 4)))
        case Completions():
            for row, words in zip(top, result.text.to_pylist(), strict=True):
                top[row].append((words.strip(), None))
        case Samples():
            for row, answer in zip(top, result.to_arrow().to_pylist(), strict=True):
                total = sum(answer["counts"])
                shares = zip(answer["texts"], answer["counts"], strict=True)
                top[row] = [(name, n / total) for name, n in shares][:k]
    return top


def top_frame(top: Sequence[Sequence[Any]]) -> pl.DataFrame:
    """Top answers as a table; probabilities only if any are known."""
    schema = {"answer": pl.String, "probability": pl.Float64, "gold": pl.Boolean}
    frame = pl.DataFrame(top, schema, orient="row")
    frame = frame.with_columns(gold=pl.when("gold").then(pl.lit("gold")).otherwise(pl.lit("")))
    return frame.drop("probability") if frame["probability"].is_null().all() else frame


def page_data(facts: Facts) -> dict[str, Any]:
    """What a page packs of the table of facts: all of them, or a random sample of many.

    Prompts are null for facts whose prompts would be too many.
    """
    frame, n = facts.frame, facts.frame.height
    order = generator(0, "page").permutation(n)
    spent = frame["prompts"].fill_null(0).to_numpy()[order].cumsum()
    rows = sorted(order[:MAX_FACTS].tolist())
    deep = sorted(order[:MAX_FACTS][spent[:MAX_FACTS] <= MAX_PROMPTS].tolist())
    prompts = dict(zip(deep, facts.depth(deep), strict=True)) if facts.depth else {}
    part = frame[rows]
    columns = []
    for name in facts.shown:
        values, unit = part[name], facts.units.get(name, "")
        if values.dtype.is_float():
            values = values.cast(pl.Float64).round(4)
        entry = {"label": name, "unit": unit or _unit(values.dtype), "values": values.to_list()}
        if unit == "answer":
            marks = f"{name}.share" if f"{name}.share" in part.columns else "share"
            entry["marks"] = part[marks].to_list()
        columns.append(entry)
    return {
        "ids": part["id"].to_list(),
        "columns": columns,
        "filters": facts.filters,
        "outcome": [facts.outcome[row] for row in rows],
        "start": facts.start,
        "models": list(facts.models),
        "prompts": [prompts.get(row) for row in rows],
        "total": n,
        "command": facts.command,
    }


def _unit(dtype: pl.DataType) -> str:
    if dtype == pl.Boolean:
        return "verdict"
    return "text" if not dtype.is_numeric() else "number" if dtype.is_float() else "count"


def fact_report(results: Results, answers: Iterable[Answers], fact: str, k: int = 10) -> Report:
    """A fact, by its id or its subject, with every prompt and its top answers."""
    facts = results.facts
    chosen = facts.filter(
        (col("fact") == fact) | (col("subject").str.to_lowercase() == fact.lower())
    )
    if chosen.is_empty():
        names = dict.fromkeys(chain(facts["fact"], facts["subject"]))
        raise UsageError(f"the run has no fact {fact!r}; {nearest(fact, names)}")
    sections, counts = [], [0, 0]
    prompts = prompts_of(results, answers, chosen["fact_no"].to_list(), k)
    for row in chosen.iter_rows(named=True):
        items: list[Item] = [say("fact.gold", gold=row["gold"] or "")]
        if row["excluded"]:
            items.append(say("fact.excluded", reason=row["excluded"]))
        for number, (words, (_, correct, rank, p, top)) in enumerate(prompts[row["fact_no"]], 1):
            counts = [counts[0] + bool(correct), counts[1] + 1]
            verdict = {True: "correct", False: "incorrect", None: "not graded"}[correct]
            if p is not None and not any(gold for *_, gold in top):
                top = [*top, [row["gold"], p, True]]
            note = text(say("fact.prompt", verdict=verdict, rank=rank))
            units = {"probability": "bar"}
            items.append(Exhibit(f"prompt-{number}", words, top_frame(top), units, "table", note))
        sections.append(
            Section(row["fact"], f"{row['label'] or row['relation']}: {row['fact']}", items)
        )
    first = chosen.row(0, named=True)
    title = say(
        "fact.title",
        subject=first["subject"],
        relation=first["label"] or str(first["relation"]),
        k=counts[0],
        n=counts[1],
    )
    return Report(title=title, kicker=results.probe.name, sections=sections)
