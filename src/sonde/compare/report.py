"""The report of a comparison: the verdict first, then what changed, then the rest folded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from polars import col

from sonde.compare import many
from sonde.compare.conditions import TASKS, Aligned, caveats
from sonde.compare.pairwise import (
    CORRECT,
    KNOWN,
    Verdict,
    by_group,
    changed_facts,
    fact_groups,
    fact_values,
    flipped,
    needed,
    verdict,
)
from sonde.evaluation.estimate import Metric, contrast, estimate
from sonde.evaluation.layout import Exhibit
from sonde.reports.cells import Estimate, interval, number
from sonde.reports.depth import SHOWN, prompts_of
from sonde.reports.model import Facts, Item, Report, Section
from sonde.reports.view import stored_answers

GROUPS = {
    "relation": "relation",
    "kind": "type of relation",
    "relation_tags": "tag of the relation",
    "tags": "tag",
    "language": "language",
    "guessable": "whether the subject's name contains the object",
    "majority_correct": "whether the most common object is correct",
}


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
    """Conditions on what they share: the verdict, then everything that explains it."""
    outcome, facts = verdict(aligned, seed), changed_facts(aligned)
    metric, names = outcome.metric, aligned.names
    estimates = _estimates(aligned, metric, seed)
    sections = [
        Section("changed", "Changed facts", [*_changed(aligned, facts)]),
        Section("groups", "Where they differ", [*_groups(aligned, metric, seed)]),
        Section("numbers", "Other numbers", [*_all_metrics(aligned, estimates)]),
        Section("shared", "What they share", [*_shared(aligned)], folded=True),
        Section("method", "Method", _method(aligned, metric), folded=True),
    ]
    care = [sentence for _, sentence in caveats(aligned)]
    report = Report(
        title=outcome.sentence,
        kicker=f"Comparison of {len(names)} runs",
        summary=_summary(aligned, outcome, facts),
        lead=[_lead(aligned, outcome)],
        warnings=[("Warning", care)] if care else [],
        sections=[section for section in sections if section.items],
        estimates=estimates,
        over="facts",
        runs="run",
        metrics=[metric, CORRECT],
        provenance={name: c.run.provenance() for name, c in aligned.originals.items()},
    )
    return Comparison(names=tuple(names), verdict=outcome, report=report, facts=facts)


def _summary(aligned: Aligned, outcome: Verdict, facts: pl.DataFrame) -> list[str]:
    lines, names = [], aligned.names
    if f"correct {names[0]}" in facts.columns:
        changed = flipped(facts, names)
        if len(names) == 2:
            gained = changed.filter(change="gained").height
            lost = changed.height - gained
            lines.append(
                f"{changed.height:,} fact{'s' * (changed.height != 1)} changed: {names[1]} knows "
                f"{gained:,} that {names[0]} does not, and {names[0]} knows {lost:,} that "
                f"{names[1]} does not."
            )
        else:
            lines.append(f"{changed.height:,} facts are known to some of the runs only.")
        lines.append("A run knows a fact if more than half of its prompts are answered correctly.")
    if text := needed(outcome.difference):
        lines.append(text)
    if any(aligned.dropped.values()):
        parts = ", ".join(f"{n}: {k:,}" for n, k in aligned.dropped.items())
        lines.append(f"Prompts that the runs do not share are not compared ({parts}).")
    return lines


def _lead(aligned: Aligned, outcome: Verdict) -> Exhibit:
    """The value of each condition; of many, its group and the range of its rank too."""
    metric, several = outcome.metric, len(outcome.values) > 2
    lines = []
    for name, e in outcome.values.items():
        first, last = outcome.ranks[name]
        rank = str(first) if first == last else f"{first}–{last}"
        lines.append((name, *e[:3], rank, aligned.conditions[name].group))
    heads = ("label", "x", "low", "high", "rank", "group")
    frame = pl.DataFrame(lines, heads, orient="row")
    frame = frame if several else frame.drop("rank")
    note = "The intervals hold for all runs together, and so do the ranks." * several
    return Exhibit(
        "leaderboard", metric.label.capitalize(),
        frame.drop("group") if frame["group"].n_unique() in (1, len(lines)) else frame,
        {"x": metric.unit}, "intervals", note, x_label=metric.label,
    )  # fmt: skip


def _changed(aligned: Aligned, facts: pl.DataFrame) -> Iterator[Facts]:
    names, every = aligned.names, list(aligned.conditions.values())
    if not {f"correct {name}" for name in names} <= set(facts.columns):
        return
    known = [col(f"correct {name}") > KNOWN for name in names]
    all_of, any_of = pl.all_horizontal(known), pl.any_horizontal(known)
    groups = {"all": all_of, "none": ~any_of, "some": pl.lit(True)}
    if len(names) == 2:
        groups = {
            "both": all_of,
            "neither": ~any_of,
            f"only {names[0]}": known[0],
            f"only {names[1]}": pl.lit(True),
        }
    code = pl.coalesce(pl.when(of).then(pl.lit(i)) for i, of in enumerate(groups.values()))
    outcomes = facts.select(code=code)["code"].to_list()
    filters = [("all facts", [*range(len(groups))]), ("changed", [*range(2, len(groups))])]
    filters += [(label, [i]) for i, label in enumerate(groups) if label != "some"]
    labels = dict(aligned.facts.select(col("relation").cast(pl.String), "label").iter_rows())
    columns = {
        "id": pl.concat_str("relation", "fact", separator=":"),
        "share": pl.lit(None, pl.Float64),
        "prompts": pl.lit(sum(c.results.rows.height for c in every) // facts.height, pl.Int64),
        "relation": col("relation").replace(labels),
        "subject": col("subject"),
        "gold": col("gold"),
    }
    if len(labels) == 1:
        columns.pop("relation")
    units = {}
    for name in names:
        if f"answer {name}" in facts.columns:
            head = f"run {name}" if name in columns else name
            units[head] = "answer"
            columns |= {head: col(f"answer {name}"), f"{head}.share": col(f"correct {name}")}

    def depth(rows: Sequence[int]) -> pl.DataFrame:
        """Every prompt with the answers of all runs that it was sent to."""
        parts = []
        for k, (name, condition) in enumerate(aligned.originals.items()):
            numbers = [aligned.numbers[name][row] for row in rows]
            answers = stored_answers(condition.run)
            prompts = prompts_of(condition.results, answers, numbers, shown=SHOWN)
            parts.append(prompts.with_columns(model=k))
        return pl.concat(parts)

    yield Facts(
        frame=facts.select(**columns),
        units=units,
        filters=filters,
        outcome=outcomes,
        start=int(any(code > 1 for code in outcomes)),
        depth=depth,
        models=names,
        command=f"sonde show {every[0].run.path} FACT",
    )


def _groups(aligned: Aligned, metric: Metric, seed: int) -> Iterator[Exhibit]:
    """Of two runs the difference in each group, of more their values."""
    names, facts = aligned.names, aligned.facts
    own = [name for name in facts.columns if name.startswith("details.")]
    columns = {name: name.removeprefix("details.").replace("_", " ") for name in own}
    columns = {name: text for name, text in (GROUPS | columns).items() if name in facts.columns}
    relation = col("relation").cast(pl.String)
    labels = dict(facts.select(relation, "label").iter_rows()) | {"true": "yes", "false": "no"}
    if len(names) == 2:
        frame = by_group(aligned, metric, names[0], list(columns), seed)
        for (column,), part in frame.group_by("column", maintain_order=True):
            tested = part.filter(col("p_adjusted") < 0.05).height
            figure = part.sort("value", descending=True, nulls_last=True).select(
                label=col("group").replace(labels), x="value", low="low", high="high", n="n",
                p="p_adjusted",
            )  # fmt: skip
            note = f"{tested} of {part.height} differ significantly (Holm). "
            note += "The intervals are not corrected."
            title = f"{names[1]} minus {names[0]}, by {columns[str(column)]}"
            units = {"x": "points", "n": "count", "p": "p"}
            yield Exhibit(f"by-{column}", title, figure, units, "intervals", note, "points")
        return
    rows = [fact_values(c.results, metric).rows for c in aligned.conditions.values()]
    values = pl.concat([r.with_columns(x=pl.lit(n)) for n, r in zip(names, rows, strict=True)])
    for column, title in columns.items():
        groups = fact_groups(aligned, column).with_columns(y=col("group").replace(labels))
        table = values.join(groups, on="fact_no").group_by("y", "x", maintain_order=True)
        figure = table.agg(color=col("num").sum() / col("den").sum()).sort("y")
        if not figure.is_empty():
            label = f"{metric.label.capitalize()} by {title}"
            yield Exhibit(f"by-{column}", label, figure, {"color": metric.unit}, "heat", limit=1.0)


def _estimates(aligned: Aligned, metric: Metric, seed: int) -> pl.DataFrame:
    """Every number of each condition on the shared prompts, and its difference from the first."""
    frames = []
    reference, *_ = every = list(aligned.conditions.values())
    one_probe = len({c.probe for c in every}) == 1
    for condition in every:
        metrics = condition.results.probe.metrics if one_probe else (metric,)
        numbers = estimate(condition.results, metrics, groups=("relation",), seed=seed)
        frames.append(numbers.with_columns(run=pl.lit(condition.name)))
        if condition is not reference:
            plain = [m for m in metrics if isinstance(m, Metric)]
            gap = contrast(condition.results, reference.results, plain, seed=seed)
            named = gap.with_columns(run=pl.lit(condition.name), reference=pl.lit(reference.name))
            frames.append(named)
    return pl.concat([frame for frame in frames if not frame.is_empty()])


def _all_metrics(aligned: Aligned, estimates: pl.DataFrame) -> Iterator[Exhibit]:
    """A row per metric, a column per condition; of two also p of the difference."""
    probe, names = next(iter(aligned.conditions.values())).results.probe, aligned.names
    over = probe.layout.over
    whole = estimates.filter(col("group_by").list.len() == 0, over=over)
    lines = []
    for metric in (m for m in probe.metrics if isinstance(m, Metric)):
        row: dict[str, object] = {"metric": metric.label or metric.id}
        part = whole.filter(metric=metric.id)
        for line in part.filter(col("value").is_not_null(), of="value").iter_rows(named=True):
            e = Estimate(line["value"], line["low"], line["high"])
            row[line["run"]] = interval(e, metric.unit)
        gap = part.filter(of="difference", run=names[1], reference=names[0])
        if len(names) == 2 and not gap.is_empty():
            row["p"] = gap["p"][0]
        if len(row) > 1:
            lines.append(row)
    if len(lines) > 1:
        note = "On the compared prompts. p is that of the paired difference, not corrected."
        frame = pl.DataFrame(lines, infer_schema_length=None)
        yield Exhibit("metrics", f"All metrics, mean over {over}", frame, {"p": "p"}, note=note)


def _shared(aligned: Aligned) -> Iterator[Item]:
    by_task = many.tasks(aligned)
    for task, names in by_task.items():
        rows = [aligned.conditions[name].results.rows for name in names]
        if len(names) < 2 or any("correct" not in r.columns for r in rows):
            continue
        suffix = f" ({TASKS.get(task, task)})" * (len(by_task) > 1)
        only, n = many.known_in_one(aligned, names)
        if n:
            yield f"{number(only, 'percent')} of {n:,} known facts are known to one run{suffix}."
        shares = many.sharing(aligned, names)
        tables = {
            "sharing": ("Share of the row's known facts that the column's run knows, too",
                        shares["sharing"]),
            "subsumption": ("The same per relation, averaged over relations (η)",
                            shares["subsumption"]),
            "correlation": ("Pearson's r between accuracies over relations",
                            many.correlation(aligned, names)),
        }  # fmt: skip
        if aligned.same_prompts:
            tables["rank-agreement"] = (
                "Kendall's τ-b between template accuracies", many.rank_agreement(aligned, names)
            )  # fmt: skip
        for id, (title, matrix) in tables.items():
            if not matrix.filter(col("row") != col("column")).is_empty():
                frame = matrix.select(y="row", x="column", color="value")
                unit = "percent" if id in shares else "number"
                id = f"{id}-{task}"
                yield Exhibit(id, title + suffix, frame, {"color": unit}, "heat", limit=1.0)


def _method(aligned: Aligned, metric: Metric) -> list[str]:
    what = "prompts" if aligned.same_prompts else "facts, each with its own prompts"
    lines = [
        f"The runs are compared on the same {what}. Every fact counts the same in the verdict.",
        f"{(metric.label or metric.id).capitalize()}: {metric.help}." * bool(metric.help),
        "Differences are paired by fact. Facts of one subject are resampled and flipped together. "
        "The interval and p come from the same test."
        + " Over all pairs they are corrected by the largest difference of any pair (max-t)."
        * (len(aligned.names) > 2),
    ]
    for c in aligned.conditions.values():
        manifest = c.run.manifest
        names = (manifest.model["name"], c.probe, manifest.dataset["name"], c.run.path)
        lines.append(f"{c.name}: {', '.join(map(str, names))}")
    return [line for line in lines if line]
