"""The report of a comparison: the verdict first, then what changed, then the rest folded."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from polars import col

from sonde.compare import many
from sonde.compare.conditions import TASKS, Aligned, warnings
from sonde.compare.pairwise import (
    CORRECT,
    Verdict,
    by_group,
    changed_facts,
    flipped,
    needed,
    verdict,
)
from sonde.evaluation.estimate import Metric, contrast, estimate
from sonde.evaluation.layout import Exhibit
from sonde.reports.cells import number
from sonde.reports.model import Facts, Report, Section

GROUPS = (
    "kind",
    "relation_tags",
    "tags",
    "language",
    "guessable",
    "majority_correct",
    "source",
    "style",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """Compared runs: the verdict, the report, and every shared fact (see `changed_facts`)."""

    names: tuple[str, ...]
    verdict: Verdict
    report: Report
    facts: pl.DataFrame

    @property
    def flipped(self) -> pl.DataFrame:
        """The facts that some of the runs know and others do not."""
        return flipped(self.facts, self.names)

    def __repr__(self) -> str:
        return f"<Comparison: {self.verdict}>"

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


def comparison(aligned: Aligned, seed: int = 0) -> Comparison:
    """Everything that is said about conditions on what they share."""
    outcome, names = verdict(aligned, seed), aligned.names
    metric, facts = outcome.metric, changed_facts(aligned)
    groups = _groups(aligned)
    one_probe = len({c.probe for c in aligned.conditions.values()}) == 1
    estimates = [_estimates(aligned, metric, one_probe, seed)]
    found = flipped(facts, names) if f"correct {names[0]}" in facts.columns else facts.clear()
    sections = [
        Section("changed", "Changed facts", _changed(aligned, facts, found, outcome)),
        Section("groups", "Where they differ", _differences(aligned, metric, groups, seed)),
        Section("numbers", "Other numbers", _side_by_side(aligned, estimates[0])),
    ]
    if len(names) > 1:
        sections.append(Section("shared", "What they share", _shared(aligned, seed), folded=True))
    sections.append(Section("method", "Method", _method(aligned, metric), folded=True))
    care = list(warnings(aligned))
    report = Report(
        title=outcome.sentence,
        kicker=f"Comparison of {len(names)} runs",
        summary=_summary(aligned, outcome, found),
        lead=[_lead(aligned, outcome, seed)],
        warnings=[("Warning", care)] if care else [],
        sections=[section for section in sections if section.items],
        estimates=pl.concat(estimates),
        over="facts",
        runs="run",
        metrics=[metric, CORRECT],
        provenance={name: c.run.provenance() for name, c in aligned.originals.items()},
    )
    return Comparison(names=tuple(names), verdict=outcome, report=report, facts=facts)


def _summary(aligned: Aligned, outcome: Verdict, found: pl.DataFrame) -> list[str]:
    lines, names = [], aligned.names
    if len(names) == 2 and "change" in found.columns:
        gained, lost = (found.filter(col("change") == word).height for word in ("gained", "lost"))
        lines.append(
            f"{gained + lost:,} fact{'s' * (gained + lost != 1)} changed: {names[1]} knows "
            f"{gained:,} that {names[0]} does not, "
            f"and {names[0]} knows {lost:,} that {names[1]} does not. "
            "A fact is known if more than half of its prompts are answered correctly."
        )
    elif not found.is_empty():
        lines.append(f"{found.height:,} facts are known to only some of the runs.")
    if text := needed(outcome.difference):
        lines.append(text)
    if any(aligned.dropped.values()):
        parts = ", ".join(f"{n}: {k:,}" for n, k in aligned.dropped.items())
        lines.append(f"Prompts that the runs do not share are not compared ({parts}).")
    return lines


def _lead(aligned: Aligned, outcome: Verdict, seed: int) -> Exhibit:
    """The value of each condition; of many, the range of its rank too."""
    names = sorted(outcome.values, key=lambda n: -(outcome.values[n].value or 0.0))
    frame = pl.DataFrame(
        {
            "label": names,
            "x": [outcome.values[n].value for n in names],
            "low": [outcome.values[n].low for n in names],
            "high": [outcome.values[n].high for n in names],
        },
        {"label": pl.String, "x": pl.Float64, "low": pl.Float64, "high": pl.Float64},
    )
    if len(names) > 2:
        ranks = [outcome.ranks[n] for n in names]
        texts = [str(a) if a == b else f"{a}–{b}" for a, b in ranks]
        frame = frame.with_columns(rank=pl.Series(texts))
    note = "Runs whose ranges of ranks overlap do not differ significantly." * (len(names) > 2)
    metric = outcome.metric
    return Exhibit(
        "leaderboard", metric.label.capitalize(), frame, {"x": metric.unit}, "intervals", note,
        x_label=metric.label,
    )  # fmt: skip


def _changed(
    aligned: Aligned, facts: pl.DataFrame, found: pl.DataFrame, outcome: Verdict
) -> list[Facts | Exhibit | str]:
    names = aligned.names
    if f"correct {names[0]}" not in facts.columns:
        return []
    known = [col(f"correct {name}") > 0.5 for name in names]
    if len(names) == 2:
        groups = {
            f"only {names[0]}": known[0] & ~known[1],
            f"only {names[1]}": known[1] & ~known[0],
            "both": known[0] & known[1],
            "neither": ~known[0] & ~known[1],
        }
    else:
        groups = {
            "some": pl.any_horizontal(known) & ~pl.all_horizontal(known),
            "all": pl.all_horizontal(known),
            "none": ~pl.any_horizontal(known),
        }
    codes = pl.lit(0)
    for number_of, condition in enumerate(groups.values()):
        codes = pl.when(condition).then(pl.lit(number_of)).otherwise(codes)
    outcomes = facts.select(codes.alias("code"))["code"].to_list()
    # the first filter shows all, the second is selected at first
    changed = [0, 1] if len(names) == 2 else [0]
    filters = [("all facts", list(range(len(groups)))), ("changed", changed)]
    filters += [(label, [i]) for i, label in enumerate(groups)]
    columns, units = ["relation", "subject", "gold"], {}
    frame = facts.with_columns(id=pl.concat_str("relation", "fact", separator=":"))
    renamed, base = {}, ("id", "share", "prompts", *columns)
    for name in names:
        answer = f"answer {name}"
        if answer in frame.columns:
            head = f"run {name}" if name in base else name
            renamed[answer] = head
            units[head] = "answer"
            frame = frame.with_columns(col(f"correct {name}").alias(f"{head}.share"))
            columns.append(answer)
    prompts = pl.lit(1, pl.Int64)
    shown = frame.select(
        "id", *columns, *(c for c in frame.columns if c.endswith(".share")),
        share=pl.lit(None, pl.Float64), prompts=prompts,
    ).rename(renamed)  # fmt: skip
    run = next(iter(aligned.conditions.values())).run
    return [
        Facts(
            frame=shown,
            units=units,
            filters=filters,
            outcome=outcomes,
            start=0 if found.is_empty() else 1,
            models=names,
            command=f"sonde show {run.path} FACT",
            title="Facts",
        )
    ]


def _groups(aligned: Aligned) -> list[str]:
    facts = aligned.facts
    every = [*GROUPS, *(name for name in facts.columns if name.startswith("details."))]
    templates = next(iter(aligned.conditions.values())).results.templates
    usable = []
    for name in every:
        if (name in facts.columns and facts[name].drop_nulls().n_unique() > 1) or (
            name in ("source", "style") and aligned.same_prompts and templates[name].n_unique() > 1
        ):
            usable.append(name)
    return usable


def _differences(
    aligned: Aligned, metric: Metric, groups: Sequence[str], seed: int
) -> list[Exhibit | str]:
    reference = aligned.names[0]
    items: list[Exhibit | str] = []
    columns = (["relation"] if aligned.facts["relation"].n_unique() > 1 else []) + list(groups)
    frame = by_group(aligned, metric, reference, columns, seed)
    labels = aligned.facts.select(col("relation").cast(pl.String), "label").unique()
    title = {"other": "other", **dict(labels.iter_rows())}
    for column in columns:
        part = frame.filter(col("column") == column)
        if part.is_empty():
            continue
        text = pl.col("group")
        if column == "relation":
            text = text.map_elements(
                lambda id: id if title[id].casefold() == id.casefold() else f"{id} {title[id]}",
                return_dtype=pl.String,
            )
        figure = part.sort("value", descending=True, nulls_last=True).select(
            label=text, color="run", x="value", low="low", high="high", n="n", p="p_adjusted"
        )
        tested = part.filter(col("p_adjusted") < 0.05).height
        name = column.removeprefix("details.").replace("_", " ")
        note = f"{tested} of {part.height} differ significantly (Holm). "
        note += "The intervals are not corrected."
        items.append(
            Exhibit(
                f"by-{column.replace('.', '-')}",
                f"Difference from {reference}, by {name}",
                figure,
                {"x": "points", "n": "count", "p": "p"},
                "intervals",
                note,
                x_label="points",
            )
        )
    return items


def _estimates(aligned: Aligned, metric: Metric, one_probe: bool, seed: int) -> pl.DataFrame:
    """Every number of each condition on the shared prompts, and its difference from the first."""
    frames = []
    conditions = list(aligned.conditions.values())
    reference = conditions[0]
    for condition in conditions:
        metrics = condition.results.probe.metrics if one_probe else (metric,)
        numbers = estimate(condition.results, metrics, groups=("relation",), seed=seed)
        frames.append(numbers.with_columns(run=pl.lit(condition.name)))
        if condition is not reference:
            plain = [m for m in metrics if isinstance(m, Metric)]
            gap = contrast(condition.results, reference.results, plain, seed=seed)
            named = gap.with_columns(run=pl.lit(condition.name), reference=pl.lit(reference.name))
            frames.append(named)
    return pl.concat([frame for frame in frames if not frame.is_empty()])


def _side_by_side(aligned: Aligned, estimates: pl.DataFrame) -> list[Exhibit | str]:
    """A row per metric, a column per condition, and p of the difference from the first."""
    probe = next(iter(aligned.conditions.values())).results.probe
    metrics = [m for m in probe.metrics if isinstance(m, Metric)]
    over = probe.layout.over
    whole = estimates.filter((col("group_by").list.len() == 0) & (col("over") == over))
    values, gaps = (whole.filter(col("of") == of) for of in ("value", "difference"))
    lines = []
    for metric in metrics:
        row: dict[str, object] = {"metric": metric.label or metric.id}
        for name in aligned.names:
            here = values.filter((col("metric") == metric.id) & (col("run") == name))
            if not here.is_empty() and here["value"][0] is not None:
                low, high = (here[end][0] for end in ("low", "high"))
                ends = "" if low is None or high is None else (
                    f" [{number(low, metric.unit).rstrip('%')}, "
                    f"{number(high, metric.unit).rstrip('%')}]"
                )  # fmt: skip
                row[name] = number(here["value"][0], metric.unit) + ends
        if len(row) > 1:
            gap = gaps.filter(
                (col("metric") == metric.id) & col("reference").is_not_null()
                & (col("run") != aligned.names[0])
            )  # fmt: skip
            if len(aligned.names) == 2 and not gap.is_empty():
                row["p"] = gap["p"][0]
            lines.append(row)
    if len(lines) < 2:
        return []
    frame = pl.DataFrame(lines, infer_schema_length=None)
    title = "All metrics, mean over " + over
    note = "On the compared prompts. p is that of the paired difference, not corrected."
    return [Exhibit("metrics", title, frame, {"p": "p"}, note=note)]


def _shared(aligned: Aligned, seed: int) -> list[Exhibit | str]:
    items: list[Exhibit | str] = []
    for task, names in many.tasks(aligned).items():
        if len(names) < 2:
            continue
        suffix = f" ({TASKS.get(task, task)})" * (len(many.tasks(aligned)) > 1)
        if any("correct" not in aligned.conditions[n].results.rows.columns for n in names):
            continue
        matrices = many.sharing(aligned, names, seed)
        texts = {
            "sharing": "Share of what the row's run knows that the column's run knows too",
            "subsumption": "The same per relation, averaged over relations (η)",
        }
        tables = [(k, texts[k], matrix) for k, matrix in matrices.items()]
        tables.append(("correlation", "Pearson's r between accuracies over relations",
                       many.correlation(aligned, names)))  # fmt: skip
        if aligned.same_prompts:
            tables.append(("rank-agreement", "Kendall's τ-b between template accuracies",
                           many.rank_agreement(aligned, names)))  # fmt: skip
        for id, title, matrix in tables:
            if matrix.filter(col("row") != col("column")).is_empty():
                continue
            frame = matrix.select(y="row", x="column", color="value")
            unit = "percent" if id in ("sharing", "subsumption") else "number"
            items.append(
                Exhibit(f"{id}-{task}", title + suffix, frame, {"color": unit}, "heat", limit=1.0)
            )
        only, n = many.known_in_one(aligned, names)
        if n:
            unit = "prompts" if aligned.same_prompts else "facts"
            items.append(
                f"{number(only, 'percent')} of the {n:,} known {unit} are known to one run only"
                f"{suffix}."
            )
    return items


def _method(aligned: Aligned, metric: Metric) -> list[str]:
    what = (
        "the same prompts" if aligned.same_prompts else "the same facts, each with its own prompts"
    )
    lines = [
        f"The runs are compared on {what}. Every fact counts the same in the verdict.",
        f"{(metric.label or metric.id).capitalize()}: {metric.help}." if metric.help else "",
        "Differences are paired by fact; facts of one subject are resampled and flipped together. "
        "The interval and p come from the same test. Over several pairs p is corrected by Holm's "
        "method.",
    ]  # fmt: skip
    for condition in aligned.conditions.values():
        manifest = condition.run.manifest
        lines.append(
            f"{condition.name}: {manifest.model['name']}, {condition.probe}, "
            f"{manifest.dataset['name']}, {condition.run.path}"
        )
    return [line for line in lines if line]
