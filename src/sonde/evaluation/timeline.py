"""Facts that change with time: was a wrong answer correct once, or only later? Of any probe.

An answer is correct if its probe accepts it, or if any fact says so of the subject at the date that
is asked about. Else it is outdated if it was correct at an earlier date, too new if it becomes
correct at a later one, or wrong.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from polars import col

from sonde.core.dates import holds, in_order
from sonde.core.facts import Dataset
from sonde.evaluation.estimate import Metric, estimate
from sonde.evaluation.layout import Exhibit
from sonde.evaluation.stats import Floats
from sonde.evaluation.tables import ESTIMATES, Results

KNOWN = 0.5  # years with a smaller share of the subjects of the fullest year are not fitted
CORRECT, OUTDATED, TOO_NEW, WRONG = "correct", "outdated", "too_new", "wrong"
HELP = {
    CORRECT: "share of answers that are correct at the date of the prompt",
    OUTDATED: "share of answers that were correct at an earlier date",
    TOO_NEW: "share of answers that become correct at a later date",
    WRONG: "share of answers that are correct at no date",
}
METRICS = tuple(
    Metric(
        f"dates.{name}", num=(col("timing") == name).mean(), where=col("timing").is_not_null(),
        label=name.replace("_", " "), better="higher" if name == CORRECT else "lower", help=help,
    )
    for name, help in HELP.items()
)  # fmt: skip
FIT = Metric(
    "dates.fit", num=col("share").mean(), label="correct then",
    help="share of all answers, whatever the date of the prompt, that are correct in a year",
)  # fmt: skip


def _best(shares: Floats, years: Sequence[str]) -> Floats:
    return np.array(years, dtype=np.float64)[shares.argmax(axis=-1)]


BEST = Metric(
    "dates.best_year", num=col("share").mean(), by="year", stat=_best, label="best year",
    unit="number", better="", help="the year in which most answers are correct, the first of several",
)  # fmt: skip


class Span(NamedTuple):
    """Names that are correct of a subject from a date to another; open if these are empty."""

    names: list[str]
    first: str
    last: str


def timeline(results: Results, data: Dataset, seed: int = 0) -> tuple[pl.DataFrame, list[Exhibit]]:
    """ESTIMATES of `METRICS` over all and by year, of the fit of each year and of the best year."""
    spans: dict[tuple[str, str], list[Span]] = {}
    for relation in data.asked_relations():
        columns = ("subject_id", "object_names", "date", "valid_from", "valid_to")
        for subject, objects, *dates in data.frame(relation.id).select(columns).iter_rows():
            if any(dates):
                names = [name for entity in objects for name in entity]
                spans.setdefault((relation.id, subject), []).append(Span(names, *_valid(*dates)))
    columns = [
        "fact_no",
        "relation",
        "subject_id",
        "cluster",
        "language",
        "date",
        "valid_from",
        "valid_to",
    ]
    table = results.table([*columns, "answer", "answer_mode", "correct"])
    dated = pl.any_horizontal(col("date", "valid_from", "valid_to").is_not_null())
    answers = table.group_by(*columns, "answer", "answer_mode", "correct").agg(n=pl.len())
    answers = (
        answers.filter(dated & col("answer").is_not_null()).sort("fact_no", "answer").collect()
    )
    verdicts, years = [], []
    said: dict[tuple[str, str], list[tuple[int, list[Span]]]] = {}
    for row in answers.with_columns(col(pl.Enum).cast(pl.String)).iter_rows(named=True):
        about, text = (row["relation"], row["subject_id"]), row["answer"]

        def stated(span: Span, text: str = text, row: Any = row) -> bool:
            if row["answer_mode"] == "generate":
                return results.probe.accepts(text, span.names, row["language"] or "")
            return text in span.names

        true = [span for span in spans[about] if stated(span)]
        said.setdefault(about, []).append((row["n"], true))
        date = row["date"] or ""
        first, last = (
            (date, date) if date else _valid("", row["valid_from"] or "", row["valid_to"] or "")
        )
        years.append((first or last)[:4])
        over = [not in_order(first, span.last) for span in true]
        to_come = [not in_order(span.first, last) for span in true]
        now = not all(a or b for a, b in zip(over, to_come, strict=True))
        earlier = OUTDATED if any(over) else TOO_NEW if any(to_come) else WRONG
        verdicts.append(CORRECT if row["correct"] or now else earlier)
    if not verdicts:
        return pl.DataFrame(schema=ESTIMATES), []
    key = ["fact_no", "answer", "answer_mode", "correct"]
    timing = answers.select(key).with_columns(timing=pl.Series(verdicts), year=pl.Series(years))
    rows = results.rows.join(timing, on=key, how="left", maintain_order="left")
    parts = [estimate(replace(results, rows=rows), METRICS, groups=("relation", "year"), seed=seed)]

    # how many of the answers about each subject are correct in each year
    relations = results.facts["relation"].dtype
    cells = [
        (number, relation, year, sum(n for n, true in given if _any(true, year)))
        for number, ((relation, subject), given) in enumerate(said.items())
        for year in sorted({*years})
        if _any(spans[relation, subject], year)
    ]
    totals = [sum(n for n, _ in given) for given in said.values()]
    fits = pl.DataFrame(cells, ("fact_no", "relation", "year", "n"), orient="row")
    fits = fits.with_columns(
        col("relation").cast(relations),
        fact_no=col("fact_no").rank("dense") - 1,
        share=col("n") / pl.Series(totals).gather(fits["fact_no"]),
        template_no=pl.lit(0),
    )
    subjects = fits.select(
        "fact_no", "relation", cluster="fact_no", excluded=pl.lit(None, pl.String)
    )
    subjects = subjects.unique(maintain_order=True)
    fit = replace(results, rows=fits, facts=subjects)
    by_year = estimate(fit, [FIT], groups=("year",), over=("facts",), seed=seed)
    parts.append(by_year.filter(col("group_by").list.len() > 0))
    sizes = fits["year"].value_counts()
    full = sizes.filter(col("count") >= KNOWN * col("count").max())["year"].to_list()
    if len(full) > 1 and fits["share"].max():
        best = replace(BEST, where=col("year").is_in(full))
        parts.append(estimate(fit, [best], over=("facts",), seed=seed))
    estimates = pl.concat(parts)
    labels = {metric.id: metric.label for metric in (*METRICS, FIT)}
    shown = estimates.filter(col("metric").is_in(list(labels)), of="value", over="facts")
    by_year = shown.filter(col("group_by") == ["year"]).select(
        x=col("group").list.first(), y="value", low="low", high="high", n="n",
        color=col("metric").replace_strict(labels),
    )  # fmt: skip
    units = {"y": "percent", "n": "count"}
    title = "Answers by the year of the prompt"
    note = "“correct then” is of all answers, whatever the year of the prompt."
    lines = Exhibit(
        "dates-by-year", title, by_year, units, "lines", note, "year", "share of answers"
    )
    return estimates, [lines]


def _valid(date: str, first: str, last: str) -> tuple[str, str]:
    """From when to when a fact is true: at its date if it does not say."""
    return (first, last) if first or last else (date, date)


def _any(spans: Iterable[Span], year: str) -> bool:
    return any(holds(year, span.first, span.last) for span in spans)
