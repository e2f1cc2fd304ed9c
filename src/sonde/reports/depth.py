"""One fact in depth: every prompt as it was sent, with its top answers and how it was graded."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
from polars import col

from sonde.answers import Answers, Completions, MaskScores, OptionScores, Samples
from sonde.core.errors import UsageError, nearest
from sonde.evaluation.judge import top_answers
from sonde.evaluation.layout import Exhibit
from sonde.evaluation.stats import random_generator
from sonde.evaluation.tables import FACT, LEFT, Results
from sonde.reports.model import Facts, Item, Report, Section
from sonde.reports.sentences import say, text

TOP = 5
GAP = "____"
MAX_FACTS, MAX_PROMPTS = 5_000, 10_000  # on a page
SHOWN = 300  # characters of a long prompt on a page
TOPS = ("answer", "probability", "gold")  # lists of the top answers of a prompt
TOP_ANSWERS: Any = {"prompt": pl.UInt32, "answer": pl.String, "probability": pl.Float64}


def prompts_of_facts(
    results: Results,
    answers: Iterable[Answers],
    facts: Sequence[int],
    k: int = TOP,
    last_chars: int = 0,
) -> pl.DataFrame:
    """Every prompt of some facts (by fact_no), in their order.

    Columns: row (of the fact in `facts`), text (its last `last_chars` characters, or all), correct,
    rank, gold_prob, and of the top answers lists: answer, probability (or null), gold (or not).
    """
    rows = pl.DataFrame({"fact_no": pl.Series(facts, dtype=pl.UInt32)}).with_row_index("row")
    chosen = col("fact_no").is_in(rows["fact_no"].implode())
    about = results.facts.filter(chosen)
    ids = about.select(col("relation").cast(pl.String), "fact", "fact_no")
    axes = [name for name in results.probe.axes if name in results.rows.columns]
    key = ["fact_no", "template", "subject", *axes]
    rows_of_facts = results.rows.filter(chosen)
    table = replace(results, rows=rows_of_facts).table().with_columns(
        col(axes).cast(pl.String),
        subject=col("aliases").list.get(col("alias_no"), null_on_oob=True),
        gold_prob=col("gold_logprob").cast(pl.Float64).exp(),
    )  # fmt: skip
    graded = table.select(*key, "correct", "rank", "gold_prob").unique(key, keep="last").collect()
    texts = (*FACT, "template", "subject", *axes, "prefix", "suffix")
    schema = {"prompt": pl.UInt32, **dict.fromkeys(texts, pl.String), "gap": pl.Boolean}
    parts = [pl.DataFrame(schema=schema | {"fact_no": pl.UInt32})]
    tops, start = [pl.DataFrame(schema=TOP_ANSWERS)], 0
    normalize = getattr(results.probe, "normalize", "none")
    for batch in answers:
        frame = batch.frame.with_row_index("prompt", start)
        frame = frame.join(ids, on=FACT, how="inner", maintain_order="left")
        if len(frame):
            gap = pl.lit(isinstance(batch.result, OptionScores | MaskScores))
            parts.append(frame.with_columns(gap=gap))
            top = _top_answers(batch, frame["prompt"].to_numpy() - start, k, normalize)
            tops.append(top.with_columns(col("prompt") + start))
        start += batch.frame.height
    text = col("prefix")
    if last_chars:
        cut = "…" + text.str.tail(last_chars)
        text = pl.when(text.str.len_chars() > last_chars).then(cut).otherwise(text)
    text = pl.when("gap").then(text + GAP + col("suffix").fill_null("")).otherwise(text)
    prompts = pl.concat(parts, how="diagonal_relaxed").select("prompt", *key, text=text)
    names = about.select("fact_no", name="gold_names", gold=True).explode("name").explode("name")
    names = names.with_columns(col("name").str.to_lowercase()).unique()
    top = pl.concat(tops, how="vertical_relaxed").cast(TOP_ANSWERS)
    top = top.join(prompts.select("prompt", "fact_no"), on="prompt", **LEFT)
    top = top.with_columns(name=col("answer").str.to_lowercase())
    top = top.join(names, on=("fact_no", "name"), **LEFT).with_columns(col("gold").fill_null(False))
    top = top.group_by("prompt", maintain_order=True).agg(TOPS)
    prompts = prompts.join(top, on="prompt", **LEFT)
    prompts = prompts.join(graded, on=key, nulls_equal=True, **LEFT).drop(*key[1:], "prompt")
    return rows.join(prompts, on="fact_no", maintain_order="left_right").drop("fact_no")


def _top_answers(batch: Answers, rows: Any, k: int, normalize: Any) -> pl.DataFrame:
    """The top answers of some prompts of a batch, with their probabilities: a row each."""
    result = batch.result.select(rows)
    match result:
        case OptionScores() | MaskScores():
            return top_answers(batch, rows, k, normalize)
        case Completions():
            words = pl.Series(result.text.cast("string"), dtype=pl.String).str.strip_chars()
            return pl.DataFrame({"prompt": rows, "answer": words, "probability": None})
        case Samples():
            names, counts = result.texts, result.counts
            table = pl.DataFrame({
                "prompt": rows[names.owners],
                "answer": pl.Series(names.values.cast("string"), dtype=pl.String),
                "probability": counts.values / np.repeat(counts.sums(), counts.counts),
            })  # fmt: skip
            return table.group_by("prompt", maintain_order=True).head(k)
    return pl.DataFrame(schema=TOP_ANSWERS)


def top_frame(prompt: Mapping[str, Any]) -> pl.DataFrame:
    """Top answers of a prompt as a table; probabilities only if any are known."""
    schema = {"answer": pl.String, "probability": pl.Float64, "gold": pl.String}
    values = [prompt[name] or [] for name in TOPS]
    values[2] = ["gold" if gold else "" for gold in values[2]]
    frame = pl.DataFrame(values, schema)
    return frame.drop("probability") if frame["probability"].is_null().all() else frame


def pack_fact_columns(facts: Facts) -> dict[str, Any]:
    """What a page packs of the table of facts, by column: all of them, or a random sample of many.

    `deep` lists the rows whose prompts are on the page too.
    """
    frame, n = facts.frame, facts.frame.height
    order = random_generator(0, "page").permutation(n)[:MAX_FACTS]
    spent = frame["prompts"].fill_null(0).to_numpy()[order].cumsum()
    rows = np.sort(order)
    part, columns = frame[rows], []
    for name in facts.shown:
        values, unit = part[name], facts.units.get(name, "")
        if values.dtype.is_float():
            values = values.cast(pl.Float64).round(4)
        entry = {"label": name, "unit": unit or _unit(values.dtype), "values": values.to_list()}
        if unit == "answer":
            entry["marks"] = part[facts.shares(name)].to_list()
        columns.append(entry)
    deep = np.searchsorted(rows, np.sort(order[spent <= MAX_PROMPTS])).tolist()
    prompts = pl.DataFrame()
    if facts.depth:
        probability = col("probability").list.eval(pl.element().round(4))
        prompts = facts.depth(rows[deep].tolist())
        prompts = prompts.with_columns(col("gold_prob").round(5), probability)
    return {
        "ids": part["id"].to_list(),
        "columns": columns,
        "filters": facts.filters,
        "outcome": [facts.outcome[row] for row in rows],
        "start": facts.start,
        "models": list(facts.models),
        "deep": deep if facts.depth else [],
        "prompts": prompts.to_dict(as_series=False),
        "total": n,
        "noun": facts.noun,
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
    prompts, sections = prompts_of_facts(results, answers, chosen["fact_no"].to_list(), k), []
    for n, row in enumerate(chosen.iter_rows(named=True)):
        items: list[Item] = [say("fact.gold", gold=row["gold"] or "")]
        if row["excluded"]:
            items.append(say("fact.excluded", reason=row["excluded"]))
        of_fact = prompts.filter(row=n).iter_rows(named=True)
        for number, prompt in enumerate(of_fact, 1):
            verdict = {True: "correct", False: "incorrect", None: "not graded"}[prompt["correct"]]
            if prompt["gold_prob"] is not None and not any(prompt["gold"] or ()):
                more = row["gold"], prompt["gold_prob"], True
                prompt |= {k: [*(prompt[k] or []), v] for k, v in zip(TOPS, more, strict=True)}
            note = text(say("fact.prompt", verdict=verdict, rank=prompt["rank"]))
            units = {"probability": "bar"}
            frame = top_frame(prompt)
            items.append(Exhibit(f"prompt-{number}", prompt["text"], frame, units, "table", note))
        sections.append(
            Section(row["fact"], f"{row['label'] or row['relation']}: {row['fact']}", items)
        )
    first = chosen.row(0, named=True)
    title = say(
        "fact.title",
        subject=first["subject"],
        relation=first["label"] or str(first["relation"]),
        k=int(prompts["correct"].sum()),
        n=prompts.height,
    )
    return Report(title=title, kicker=results.probe.name, sections=sections)
