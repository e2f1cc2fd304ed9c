"""Facts that change with time: was a wrong answer correct once, or only later? Of any probe.

An answer is correct if its probe accepts it, or if any fact has it for the subject at the date that
is asked about. Else it is outdated if it was correct at an earlier date, too new if it becomes
correct at a later one, or wrong.
"""

from dataclasses import replace
from operator import or_

import polars as pl
from polars import col

from sonde.core.dates import in_order
from sonde.core.fact_frames import DATES
from sonde.core.facts import Dataset
from sonde.evaluation.estimate import Metric, estimate
from sonde.evaluation.layout import Exhibit
from sonde.evaluation.tables import ESTIMATES, LEFT, Results

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


def estimate_by_year(
    results: Results, data: Dataset, seed: int = 0
) -> tuple[pl.DataFrame, list[Exhibit]]:
    """ESTIMATES of `METRICS` over all prompts and by year."""
    objects: dict[tuple[str, str], list[tuple[list[str], str, str]]] = {}
    for relation in data.asked_relations():
        frame = data.frame(relation.id).select("subject_id", "object_names", *DATES)
        for subject, entities, date, first, last in frame.iter_rows():
            if date or first or last:
                # a fact without a validity is correct at its date
                times = (first, last) if first or last else (date, date)
                names = [name for entity in entities for name in entity]
                objects.setdefault((relation.id, subject), []).append((names, *times))
    key = ["fact_no", "answer", "correct"]
    table = results.table([*key, "relation", "subject_id", "language", *DATES, "answer_mode"])
    table = table.drop_nulls("answer").with_columns(col(*DATES, "language").fill_null(""))
    answers = (
        table.filter(pl.any_horizontal(col(DATES) != "")).unique(key, maintain_order=True).collect()
    )
    timed = answers.cast({"relation": pl.String, "answer": pl.String})
    verdicts, years = [], []
    for _, text, correct, relation_id, subject, language, date, *valid, mode in timed.iter_rows():
        first, last = (date, date) if date else valid
        years.append((first or last)[:4])
        over, to_come = [], []
        for names, start, end in objects[relation_id, subject]:
            generated = mode == "generate"
            if results.probe.accepts(text, names, language) if generated else text in names:
                over.append(not in_order(first, end))
                to_come.append(not in_order(start, last))
        if correct or not all(map(or_, over, to_come)):
            verdicts.append("correct")
        else:
            verdicts.append("outdated" if any(over) else "too_new" if any(to_come) else "wrong")
    if not verdicts:
        return pl.DataFrame(schema=ESTIMATES), []
    timing = answers.select(key).with_columns(timing=pl.Series(verdicts), year=pl.Series(years))
    rows = results.rows.join(timing, on=key, **LEFT)
    estimates = estimate(
        replace(results, rows=rows), METRICS, groups=("relation", "year"), seed=seed
    )
    lines = estimates.filter(col("group_by") == ["year"], of="value", over="facts").select(
        "low", "high", "n", x=col("group").list.first(), y="value",
        color=col("metric").replace_strict({metric.id: metric.label for metric in METRICS}),
    )  # fmt: skip
    title, units = "Answers by the year of the prompt", {"y": "percent", "n": "count"}
    figure = Exhibit(
        "dates-by-year", title, lines, units, "lines", x_label="year", y_label="share of answers"
    )
    return estimates, [figure]
