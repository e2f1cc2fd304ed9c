"""The report of a comparison: the verdict first, then what changed, then the rest folded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl
from polars import col

from sonde.compare.conditions import TASKS, Aligned, caveats
from sonde.compare.pairwise import (
    CORRECT,
    KNOWN,
    MATRICES,
    Verdict,
    changed_facts,
    fact_values,
    heat,
    known_in_one,
    needed,
    verdict,
)
from sonde.evaluation.estimate import Metric, estimate, paired_differences
from sonde.evaluation.groups import add_breakdown_columns
from sonde.evaluation.layout import Exhibit
from sonde.reports.cells import Estimate, format_interval, format_number
from sonde.reports.depth import SHOWN, prompts_of_facts
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

    verdict: Verdict
    report: Report
    facts: pl.DataFrame

    @property
    def flipped(self) -> pl.DataFrame:
        """The facts that some of the runs know and others do not."""
        return self.facts.drop_nulls("change")

    def __repr__(self) -> str:
        return f"<Comparison: {self.verdict}>"

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


def comparison(aligned: Aligned, seed: int = 0) -> Comparison:
    """Conditions on what they share: the verdict, then everything that explains it."""
    outcome, facts = verdict(aligned, seed), changed_facts(aligned)
    metric, layout = outcome.metric, aligned.every[0].results.probe.layout
    estimates = _estimates(aligned, metric, seed)
    tables = {name: c.results for name, c in aligned.originals.items()}
    further = layout.compared(tables) if layout.compared else ()
    sections = [
        Section("changed", "Changed facts", [*_changed(aligned, facts)]),
        Section("groups", "Where they differ", [*further, *_groups(aligned, metric, seed)]),
        Section("numbers", "Other numbers", [*_all_metrics(aligned, estimates)]),
        Section("shared", "What they share", [*_shared(aligned)], folded=True),
        Section("method", "Method", _method(aligned, metric), folded=True),
    ]
    warnings = [sentence for _, sentence in caveats(aligned)]
    report = Report(
        title=outcome.sentence,
        kicker=f"Comparison of {len(aligned.names)} runs",
        summary=_summary(aligned, outcome, facts),
        lead=[_lead(aligned, outcome)],
        warnings=[("Warning", warnings)] * bool(warnings),
        sections=[section for section in sections if section.items],
        estimates=estimates,
        over="facts",
        runs="run",
        metrics=[metric, CORRECT],
        provenance={name: c.run.provenance() for name, c in aligned.originals.items()},
    )
    return Comparison(verdict=outcome, report=report, facts=facts)


def _summary(aligned: Aligned, outcome: Verdict, facts: pl.DataFrame) -> list[str]:
    lines, names = [], aligned.names
    n = facts["change"].count()
    if not n:
        lines.append("All runs know the same facts.")
    elif len(names) == 2:
        gained = facts.filter(change="gained").height
        lines.append(
            f"{n:,} fact{'s' * (n != 1)} changed: {names[1]} knows {gained:,} that {names[0]} does "
            f"not, and {names[0]} knows {n - gained:,} that {names[1]} does not."
        )
    else:
        lines.append(f"{n:,} fact{'s are' if n != 1 else ' is'} known to some of the runs only.")
    lines.append("A run knows a fact if more than half of its prompts are answered correctly.")
    if text := needed(outcome.difference):
        lines.append(text)
    dropped = sum(
        aligned.originals[c.name].results.rows.height - c.results.rows.height for c in aligned.every
    )
    if dropped:
        lines.append(f"{dropped:,} prompts are not compared, because not all runs have them.")
    return lines


def _lead(aligned: Aligned, outcome: Verdict) -> Exhibit:
    """The value of each condition; of many, its group and the range of its rank too."""
    metric, several = outcome.metric, len(outcome.values) > 2
    lines = []
    for name, e in outcome.values.items():
        rank = f", rank {'–'.join(map(str, dict.fromkeys(outcome.ranks[name])))}"
        text = format_interval(e, metric.unit) + rank * several
        lines.append((name, *e[:3], text, aligned.conditions[name].group))
    frame = pl.DataFrame(lines, ("label", "x", "low", "high", "text", "group"), orient="row")
    note = "The intervals hold for all runs together, and so do the ranks." * several
    return Exhibit(
        "leaderboard", metric.label.capitalize(),
        frame.drop("group") if frame["group"].n_unique() in (1, len(lines)) else frame,
        {"x": metric.unit}, "intervals", note, x_label=metric.label,
    )  # fmt: skip


def _changed(aligned: Aligned, facts: pl.DataFrame) -> Iterator[Facts]:
    names, every = aligned.names, aligned.every
    kinds = {"all": "all runs", "none": "no run", "some": ""}
    if len(names) == 2:
        only = {"lost": f"only {names[0]}", "gained": f"only {names[1]}"}
        kinds = {"all": "both", "none": "neither", **only}
    same = pl.when(col(f"correct {names[0]}") > KNOWN).then(pl.lit("all")).otherwise(pl.lit("none"))
    numbers = {kind: i for i, kind in enumerate(kinds)}
    outcome = facts.select(pl.coalesce("change", same).replace_strict(numbers)).to_series()
    columns = {
        "id": pl.concat_str("relation", "fact", separator=":"),
        "share": pl.lit(None, pl.Float64),
        "prompts": pl.lit(sum(c.results.rows.height for c in every) // facts.height, pl.Int64),
        "subject": col("subject"),
        "relation": col("relation").replace(_labels(aligned)),
        "gold": col("gold"),
    }
    units = {}
    for name in names:
        head = f"run {name}" if name in columns else name
        units[head] = "answer"
        columns |= {head: col(f"answer {name}"), f"{head}.share": col(f"correct {name}")}

    def depth(rows: Sequence[int]) -> pl.DataFrame:
        """Every prompt with the answers of all runs that it was sent to."""
        parts = []
        for k, (name, condition) in enumerate(aligned.originals.items()):
            facts = [aligned.numbers[name][row] for row in rows]
            answers = stored_answers(condition.run)
            prompts = prompts_of_facts(condition.results, answers, facts, last_chars=SHOWN)
            parts.append(prompts.with_columns(model=k))
        return pl.concat(parts)

    yield Facts(
        frame=facts.select(**columns),
        units=units,
        filters=[
            ("all facts", [*range(len(kinds))]),
            ("changed", [*range(2, len(kinds))]),
            *((label, [i]) for i, label in enumerate(kinds.values()) if label),
        ],
        outcome=outcome.to_list(),
        start=int(facts["change"].count() > 0),
        depth=depth,
        models=names,
        command=f"sonde show {every[0].run.path} FACT",
    )


def _labels(aligned: Aligned) -> dict[str, str]:
    return dict(aligned.facts.select(col("relation").cast(pl.String), "label").iter_rows())


def _groups(aligned: Aligned, metric: Metric, seed: int) -> Iterator[Exhibit]:
    """Of two runs the difference in each group, of more their values."""
    parts, one = fact_values(aligned.every, metric)
    first, *others = parts.items()
    base, one = first[1].rows["fact_no", "num"], replace(one, baseline=col("num_right").sum())
    two, frames = len(others) == 1, []
    for name, values in others if two else (first, *others):
        rows = values.rows.join(base, on="fact_no", maintain_order="left")
        grouped, more = add_breakdown_columns(replace(values, rows=rows))
        columns = dict.fromkeys([*GROUPS, *(group.by[0] for group in more)])
        groups = [(c,) for c in columns if c in grouped.facts and grouped.facts[c].n_unique() > 1]
        if not groups:
            return
        frame = estimate(grouped, [one], groups=groups, over=("facts",), seed=seed, whole=False)
        frames.append(frame.with_columns(run=pl.lit(name)))
    group = col("group").list.first().replace(_labels(aligned) | {"True": "yes", "False": "no"})
    frame = pl.concat(frames).with_columns(group=group).filter(of="difference" if two else "value")
    for (column,), part in frame.group_by(col("group_by").list.first(), maintain_order=True):
        by = GROUPS.get(str(column)) or str(column).partition(".")[2].replace("_", " ")
        if two:
            figure = part.sort("value", descending=True).select(
                label="group", x="value", low="low", high="high", n="n", p="p_adjusted"
            )
            tested = part.filter(col("p_adjusted") < 0.05).height
            note = (
                f"{tested} of {part.height} differ significantly (Holm). The intervals are not "
                "corrected."
            )
            title, units = f"{others[0][0]} minus {first[0]}, by {by}", {"x": "points", "p": "p"}
            yield Exhibit(f"by-{column}", title, figure, units, "intervals", note, "points")
        else:
            figure = part.sort("group").select(y="group", x="run", color="value")
            title, units = f"{metric.label.capitalize()} by {by}", {"color": metric.unit}
            yield Exhibit(f"by-{column}", title, figure, units, "heat", limit=1.0)


def _estimates(aligned: Aligned, metric: Metric, seed: int) -> pl.DataFrame:
    """Every number of each condition on the shared prompts, and its difference from the first."""
    frames = []
    reference, *_ = every = aligned.every
    one_probe = len({c.probe for c in every}) == 1
    for condition in every:
        metrics = condition.results.probe.metrics if one_probe else (metric,)
        numbers = estimate(condition.results, metrics, groups=("relation",), seed=seed)
        frames.append(numbers.with_columns(run=pl.lit(condition.name)))
        if condition is not reference:
            gap = paired_differences(condition.results, reference.results, metrics, seed=seed)
            named = gap.with_columns(run=pl.lit(condition.name), reference=pl.lit(reference.name))
            frames.append(named)
    return pl.concat(frames)


def _all_metrics(aligned: Aligned, estimates: pl.DataFrame) -> Iterator[Exhibit]:
    """A row per metric, a column per condition; of two also p of the difference."""
    probe = aligned.every[0].results.probe
    metrics = {m.id: m for m in probe.metrics if isinstance(m, Metric)}
    over, rows = probe.layout.over, dict[str, dict[str, object]]()
    whole = estimates.filter(col("group_by").list.len() == 0, col("value").is_not_null(), over=over)
    for line in whole.filter(col("metric").is_in([*metrics])).iter_rows(named=True):
        metric = metrics[line["metric"]]
        row = rows.setdefault(metric.id, {"metric": metric.label or metric.id})
        if line["of"] == "value":
            e = Estimate(line["value"], line["low"], line["high"])
            row[line["run"]] = format_interval(e, metric.unit)
        elif line["reference"] and len(aligned.names) == 2:
            row["p"] = line["p"]
    if len(rows) > 1:
        note = "On the compared prompts. p is that of the paired difference, not corrected."
        frame = pl.DataFrame([*rows.values()], infer_schema_length=None)
        yield Exhibit("metrics", f"All metrics, mean over {over}", frame, {"p": "p"}, note=note)


def _shared(aligned: Aligned) -> Iterator[Item]:
    """How alike the runs of each task are."""
    every = aligned.every
    by_task = list(dict.fromkeys(c.task for c in every))
    for task in by_task:
        some = replace(aligned, conditions={c.name: c for c in every if c.task == task})
        suffix = f" ({TASKS.get(task, task)})" * (len(by_task) > 1)
        only, n = known_in_one(some)
        if n and len(some.names) > 1:
            share = format_number(only, "percent")
            yield f"{share} of {n:,} known facts are known to one run{suffix}."
        for kind in MATRICES:
            figure = heat(some, kind)
            if not figure.frame.is_empty() and (kind != "rank_agreement" or aligned.same_prompts):
                yield figure._replace(id=f"{kind}-{task}", title=figure.title + suffix)


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
    for c in aligned.every:
        manifest = c.run.manifest
        names = (manifest.model["name"], c.probe, manifest.dataset["name"], c.run.path)
        lines.append(f"{c.name}: {', '.join(map(str, names))}")
    return [line for line in lines if line]
