"""Facts that change with time: was a wrong answer correct once, or only later? Of any probe.

An answer is correct if its probe accepts it, or if any fact has it for the subject at the date that
is asked about. Else it is outdated if it was correct at an earlier date, too new if it becomes
correct at a later one, or wrong.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import or_

import numpy as np
import polars as pl
from polars import col

from sonde.core.dates import holds, in_order
from sonde.core.fact_frames import DATES
from sonde.core.facts import Dataset
from sonde.evaluation.estimate import Metric, estimate
from sonde.evaluation.layout import Exhibit
from sonde.evaluation.stats import Floats
from sonde.evaluation.tables import ESTIMATES, LEFT, Results

KNOWN = 0.5  # years with a smaller share of the subjects of the fullest year are not fitted
HELP = {
    "correct": "share of answers that are correct at the date of the prompt",
    "outdated": "share of answers that were correct at an earlier date",
    "too_new": "share of answers that become correct at a later date",
    "wrong": "share of answers that are correct at no date",
}
METRICS = tuple(
    Metric(
        f"dates.{name}", num=(col("timing") == name).mean(), where=col("timing").is_not_null(),
        label=name.replace("_", " "), better="higher" if name == "correct" else "lower", help=help,
    )
    for name, help in HELP.items()
)  # fmt: skip
FIT = Metric(
    "dates.fit", num=col("share").mean(), label="correct then",
    help="share of all answers, whatever the date of the prompt, that are correct in a year",
)  # fmt: skip


def first_best(shares: Floats, years: Sequence[str]) -> Floats:
    best: Floats = np.array(years, dtype=np.float64)[shares.argmax(axis=-1)]
    return best


BEST = Metric(
    "dates.best_year", num=col("share").mean(), by="year", stat=first_best, label="best year",
    unit="number", better="",
    help="the year in which most answers are correct, the first of several",
)  # fmt: skip


Span = tuple[list[str], str, str]
"""Names that are correct of a subject, from a date to another; an empty date is open."""


def timeline(results: Results, data: Dataset, seed: int = 0) -> tuple[pl.DataFrame, list[Exhibit]]:
    """ESTIMATES of `METRICS` over all and by year, of the fit of each year and of the best year."""
    spans: dict[tuple[str, str], list[Span]] = {}
    for relation in data.asked_relations():
        frame = data.frame(relation.id).select("subject_id", "object_names", *DATES)
        for subject, objects, *dates in frame.iter_rows():
            if any(dates):
                names = [name for entity in objects for name in entity]
                spans.setdefault((relation.id, subject), []).append((names, *_valid(*dates)))
    key = ["fact_no", "answer", "correct"]
    about = ["relation", "subject_id", "language", *DATES]
    table = results.table([*key, *about, "answer_mode"]).drop_nulls("answer")
    table = table.with_columns(col(*DATES, "language").fill_null(""))
    table = table.filter(pl.any_horizontal(col(DATES) != ""))
    generated = (col("answer_mode") == "generate").any()
    answers = table.group_by(*key, *about).agg(generated=generated, n=pl.len())
    timed = answers.sort("fact_no", "answer").collect()
    verdicts, years = [], []
    counted: dict[tuple[str, str], list[tuple[int, list[Span]]]] = {}
    for row in timed.cast({"relation": pl.String, "answer": pl.String}).iter_rows():
        _, text, correct, relation_id, subject, language, date, *valid, written, n = row
        known = spans[relation_id, subject]
        if written:
            times = [span for span in known if results.probe.accepts(text, span[0], language)]
        else:
            times = [span for span in known if text in span[0]]
        counted.setdefault((relation_id, subject), []).append((n, times))
        first, last = (date, date) if date else valid
        years.append((first or last)[:4])
        over = [not in_order(first, end) for _, _, end in times]
        to_come = [not in_order(start, last) for _, start, _ in times]
        if correct or not all(map(or_, over, to_come)):
            verdicts.append("correct")
        else:
            verdicts.append("outdated" if any(over) else "too_new" if any(to_come) else "wrong")
    if not verdicts:
        return pl.DataFrame(schema=ESTIMATES), []
    timing = timed.select(key).with_columns(timing=pl.Series(verdicts), year=pl.Series(years))
    rows = results.rows.join(timing, on=key, **LEFT)
    parts = [estimate(replace(results, rows=rows), METRICS, groups=("relation", "year"), seed=seed)]

    # each subject counts the same, in the years for which the data have a correct answer
    cells = []
    for number, ((relation_id, subject), counts) in enumerate(counted.items()):
        total = sum(n for n, _ in counts)
        for year in sorted({*years}):
            if _holds(spans[relation_id, subject], year):
                share = sum(n for n, times in counts if _holds(times, year)) / total
                cells.append((relation_id, number, year, share))
    shares = pl.DataFrame(cells, ("relation", "cluster", "year", "share"), orient="row")
    fits = Results.of(shares)
    fit = estimate(fits, [FIT], groups=("year",), over=("facts",), seed=seed)
    parts.append(fit.filter(col("group_by").list.len() > 0))
    sizes = shares["year"].value_counts()
    full = sizes.filter(col("count") >= KNOWN * col("count").max())["year"].to_list()
    if len(full) > 1 and shares["share"].max():
        best = estimate(
            fits, [replace(BEST, where=col("year").is_in(full))], over=("facts",), seed=seed
        )
        parts.append(best.with_columns(n="n_clusters"))
    estimates = pl.concat(parts)
    labels = {metric.id: metric.label for metric in (*METRICS, FIT)}
    lines = estimates.filter(col("group_by") == ["year"], of="value", over="facts").select(
        "low", "high", "n", x=col("group").list.first(), y="value",
        color=col("metric").replace_strict(labels),
    )  # fmt: skip
    note = "“correct then” is of all answers, whatever the year of the prompt."
    figure = Exhibit(
        "dates-by-year", "Answers by the year of the prompt", lines, {"y": "percent", "n": "count"},
        "lines", note, "year", "share of answers",
    )  # fmt: skip
    return estimates, [figure]


def _valid(date: str, first: str, last: str) -> tuple[str, str]:
    """From when to when a fact is true: at its date if it has no such time."""
    return (first, last) if first or last else (date, date)


def _holds(spans: Iterable[Span], year: str) -> bool:
    return any(holds(year, first, last) for _, first, last in spans)
