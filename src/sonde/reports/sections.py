"""The sections of a run's report: prompts, answers, facts, breakdowns, method."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl
from polars import col

from sonde.evaluation.groups import TRENDS
from sonde.evaluation.layout import Exhibit
from sonde.reports.cells import Estimate, format_interval, format_number
from sonde.reports.collapse import COVERED, EXCESS, LEVEL
from sonde.reports.depth import SHOWN, prompts_of_facts, top_frame
from sonde.reports.model import Facts, Item
from sonde.reports.sentences import say
from sonde.reports.view import (
    USER,
    View,
    above_or_below,
    column_name,
    english,
    exhibit,
    stored_answers,
    to_estimate,
)

BARS, EXTRA = 10, 4  # names, further columns of the table of relations
FEWEST = 5  # facts of a separate group
COUNTS = ("n", "correct", "gold")
INTERVAL = ("label", "color", "x", "low", "high")


def prompt_items(view: View) -> Iterator[Item]:
    """How the model was prompted, and one prompt with its top answers."""
    options = view.facts["n_options"].max() if "n_options" in view.facts.columns else 0
    which = "some prompts" if len(view.modes) > 1 else "each prompt"
    for mode in view.modes:
        yield say(f"request.{mode}", which=which, options=options)
    chat = (view.run.manifest.model.get("chat") if view.run else None) or {}
    if chat:
        yield say("request.chat", system=chat.get("system", ""))
    fact = int(view.results.rows["fact_no"][0])
    for batch in stored_answers(view.run):
        for prompt in prompts_of_facts(view.results, [batch], [fact], last_chars=SHOWN).iter_rows(
            named=True
        ):
            note = english("example", gold=view.facts["gold"][fact] or "")
            frame = top_frame(prompt)
            yield Exhibit("example", prompt["text"], frame, {"probability": "bar"}, note=note)
            return


def answer_items(view: View) -> Iterator[Item]:
    """Answers next to gold answers; over several relations, where answers collapse."""
    if view.collapsed and not view.one_relation:
        rows: list[tuple[Any, ...]] = []
        for c in view.collapsed[:BARS]:
            label = f"{c.label}: {', '.join(c.names)}"
            text = f"{format_number(c.share, 'percent')}, gold {format_number(c.gold, 'percent')}"
            rows += [(label, "answers", c.share, text), (label, "gold answers", c.gold, None)]
        some = len(view.collapsed) > BARS
        note = english("collapse.figure", k=BARS, n=len(view.collapsed)) if some else ""
        title, heads = "Relations that one or two answers dominate", ("label", "color", "x", "text")
        units = {"x": "percent", "color": "control"}
        yield exhibit("collapsed", title, rows, heads, units=units, kind="bars", note=note)
    else:
        yield from answer_distribution_exhibits(view)


def answer_distribution_exhibits(view: View) -> Iterator[Exhibit]:
    """The most frequent answers and gold answers; of several tasks, of that with most prompts."""
    counts = view.results.about_objects().answer_distribution()
    counts = counts.with_columns(col(pl.Enum).cast(pl.String))
    numbers = col(COUNTS)
    tasks = [name for name in counts.columns if name not in ("relation", "answer", *COUNTS)]
    counts = counts.group_by(*tasks, "answer", maintain_order=True).agg(numbers.sum())
    parts = counts.group_by(tasks or pl.lit(""), maintain_order=True)
    task, part = max(parts, key=lambda item: item[1]["n"].sum(), default=((), counts))
    if part.is_empty():
        return
    part = part.sort(pl.max_horizontal("n", "gold"), "n", "answer", descending=[True, True, False])
    top = part.head(BARS).sort("n", "gold", descending=True, maintain_order=True)
    lines = top.select("answer", numbers).rows()
    if len(part) > BARS:
        rest = part[BARS:].select(numbers.sum()).row(0)
        lines.append((f"{len(part) - BARS:,} other names", *rest))
    rows: list[tuple[Any, ...]] = []
    for name, n, correct, gold in lines:
        label = name or "(empty)"
        rows.append((label, "answers", n, correct, f"{n:,}, gold {gold:,}"))
        rows.append((label, "gold answers", gold, None, None))
    named = [f"{column_name(t)} {value}" for t, value in zip(tasks, task, strict=False)]
    title = " · ".join(("Answers next to gold answers", *named))
    unit = "facts" if view.one_prompt else "prompts"
    note = english("counted", unit=unit, n=int(part["n"].sum()))
    heads, units = ("label", "color", "x", "part", "text"), {"x": "count", "color": "control"}
    yield exhibit("answers", title, rows, heads, units=units, kind="bars", note=note)


def fact_table_items(view: View) -> Iterator[Item]:
    """Every fact with its answers; those that are excluded without."""
    facts, rows = view.facts, view.results.rows.columns
    wanted = ["subject", *view.layout.browse, *(["confidence"] if "confidence" in rows else [])]
    wanted += [name for name in facts.columns if name.startswith(USER)]
    wanted = [name for name in dict.fromkeys(wanted) if name != "correct"]
    graded = view.results.browse([*wanted, "correct"])
    fixed = [n for n in wanted if n in facts.columns and (n == "relation" or n not in rows)]
    lines = facts.select("fact_no", *fixed, id="fact").join(
        graded.drop(fixed), on="fact_no", how="left", maintain_order="left"
    )
    lines = lines.with_columns(
        col(pl.Enum).cast(pl.String), col(pl.List(pl.String)).list.join(", "), share="correct"
    ).with_columns(col("relation").replace(view.labels) if "relation" in lines.columns else [])
    tasks = [
        name for name in graded.columns if name not in (*wanted, "fact_no", "correct", "prompts")
    ]
    useful = [name for name in (*wanted, *tasks) if lines[name].null_count() < len(lines)]
    shown = [name for name in useful if name != "relation" or not view.one_relation]
    names = {name: column_name(name, several=not view.one_prompt) for name in shown}
    units = {"answer": "answer", "rank": "count", "confidence": "percent", "posterior": "percent"}
    units |= {name: "count" for name in shown if name.startswith("n_")}
    units |= dict.fromkeys(view.results.rows.select(col(pl.Boolean)).columns, "percent")
    units = {names[name]: unit for name, unit in units.items() if name in names}
    if not view.one_prompt:
        hits = (col("correct").cast(pl.Float64) * col("prompts")).round()
        counts = pl.concat_list(hits, col("prompts").cast(pl.Float64))
        lines = lines.with_columns(hits=pl.when(col("correct").is_not_null()).then(counts))
        place = shown.index("answer") + 1 if "answer" in shown else len(shown)
        shown.insert(place, "hits")
        names["hits"], units["correct prompts"] = "correct prompts", "share"
    frame = lines.select(
        "id", "share", "prompts", *(col(name).alias(names[name]) for name in shown)
    )
    outcomes = ("correct", "sometimes", "incorrect", "excluded")
    outcome = [3 if s is None else 0 if s == 1 else 2 if s == 0 else 1 for s in frame["share"]]
    numbers = lines["fact_no"]

    def depth(rows: Sequence[int]) -> pl.DataFrame:
        return prompts_of_facts(
            view.results, stored_answers(view.run), numbers[rows].to_list(), last_chars=SHOWN
        )

    command = f"sonde show {view.run.path if view.run else 'RUN'} FACT"
    yield Facts(
        frame=frame,
        units=units,
        filters=[("all", [0, 1, 2, 3]), *((label, [k]) for k, label in enumerate(outcomes))],
        outcome=outcome,
        depth=depth if view.run else None,
        command=command,
    )


def breakdown_exhibits(view: View) -> Iterator[Exhibit]:
    """The headline in each group, then contrasts."""
    seen = set()
    for by in view.plain["group_by"].unique(maintain_order=True).to_list():
        inner = [name for name in by if not (view.one_relation and name == "relation")]
        # templates of several relations have nothing in common but their number
        if (
            len(inner) == 1
            and inner[0] not in seen
            and (view.one_relation or inner != ["template_no"])
        ):
            seen.add(inner[0])
            yield from group_exhibits(view, by, inner[0])
    yield from difference_exhibits(view)


def group_exhibits(view: View, by: Sequence[str], name: str) -> Iterator[Exhibit]:
    """A metric and its control in each group of a column."""
    part = view.plain.filter(col("group_by") == list(by), of="value")
    several = part.filter(pl.len().over("metric") > 1)  # one value of a group compares nothing
    present = view.metrics.keys() & set(several["metric"])
    if not present:
        return  # a figure shows these numbers elsewhere
    wanted = dict.fromkeys((*view.layout.headlines, *view.layout.columns))
    metric, *others = (
        view.metrics[id] for id in dict.fromkeys([*wanted, *part["metric"]]) if id in present
    )
    at, labels = by.index(name), view.labels if name == "relation" else {}
    if name == "template_no":
        texts = view.results.templates.select(col(name).cast(pl.String), "text")
        labels = dict(texts.iter_rows())
    shown = part.filter(metric=metric.id)
    if not (name in view.results.probe.axes or name.startswith(USER[1]) or name == "template_no"):
        last = col("group").list.get(at) == "other"
        shown = shown.sort(last, -col("value"), maintain_order=True)
    values = shown["group"].to_list()
    columns = [m for m in others if m.id in wanted][:EXTRA] if name == "relation" else []
    rows = []
    for label, keys, group in [
        ("All", (), ()),
        *((labels.get(g[at], g[at]), by, g) for g in values),
    ]:
        more = [(view.get(m, "value", keys, group) or Estimate(None)).value for m in columns]
        for of, series in (("value", view.model), ("baseline", metric.baseline_label)):
            if e := view.get(metric, of, keys, group):
                rows.append((label, series, *e[:4], *more))
    tests = [e for g in values if (e := view.get(metric, "difference", by, g)) and e.p is not None]
    clear = sum(above_or_below(e) != "none" for e in tests)
    note = english("groups.tested" if tests else "groups.plain", k=clear, n=len(tests))
    if trend := view.get(TRENDS[0], "value", ["number"], [name.removeprefix(USER[1])]):
        note += " " + english("trend", name=column_name(name), e=(trend, "number"))
    yield exhibit(
        f"by-{column_name(name)}",
        f"By {column_name(name)}",
        rows,
        (*INTERVAL, metric.counts, *(m.label for m in columns)),
        units={m.label: m.unit for m in columns} | {"x": metric.unit, "color": "control"},
        kind="intervals",
        note=note,
        x_label=metric.label,
    )


def difference_exhibits(view: View) -> Iterator[Exhibit]:
    """Each level of an axis minus its reference, and the model minus each control."""
    lines = view.differences.filter(~col("group_by").list.contains("relation"), of="difference")
    shown = {*view.layout.headlines, *view.layout.columns}
    for (by, id), part in lines.group_by("group_by", "metric", maintain_order=True):
        if id not in shown:
            continue
        metric, axis = view.metrics[str(id)], ", ".join(map(column_name, by)) or "control"
        rows = [
            (", ".join(row["group"]) or row["reference"], *(e := to_estimate(row))[:3], e.p, e.n)
            for row in part.iter_rows(named=True)
        ]
        yield exhibit(
            f"difference-{axis}-{id}",
            f"{metric.label}: difference by {axis}",
            rows,
            ("label", "x", "low", "high", "p", metric.counts),
            units={"x": "points" if metric.unit == "percent" else metric.unit, "p": "p"},
            kind="intervals",
            note=english("contrasts", references=list(dict.fromkeys(part["reference"]))),
            x_label="difference",
        )


def method_items(view: View) -> Iterator[Item]:
    """How numbers are made, every metric, what was counted, settings and provenance."""
    for mode in view.modes:
        yield say(f"method.{mode}")
    yield say("method.interval")
    yield say("method.test")
    yield say("method.groups", least=FEWEST)
    yield say("method.collapse", covered=COVERED, excess=EXCESS, level=LEVEL)
    yield from view.layout.notes
    values = ((m, view.get(m)) for m in view.metrics.values())
    rows = [(m.label, m.help, format_interval(e, m.unit)) for m, e in values if e]
    yield exhibit("metrics", "Metrics", rows, ("metric", "meaning", "value [95% CI]"))
    counts = [(name.replace(".", ": "), n) for name, n in view.counts.items()]
    yield exhibit("counts", "Counts", counts, ("count", "number"))
    if view.run:
        settings = list(flatten_settings(view.run.provenance()))
        yield exhibit("provenance", "Settings and provenance", settings, ("setting", "value"))


def flatten_settings(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as pairs of a dotted name and a value."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flatten_settings(value, f"{prefix}{name}.")
        elif value not in ("", None, [], ()):
            yield f"{prefix}{name}", str(value)
