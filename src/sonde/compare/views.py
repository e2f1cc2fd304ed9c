"""The tables and figures of a paper, for any runs: `sonde compare --paper belief RUN …`.

A paper is a TOML file of views. A view has axes, which make its rows and its columns: `column` (its
headings), a fact of the run (run, model, family, parameters, seconds, a setting) or a column of the
graded prompts. A heading names a metric as the JSON does. Knows no paper.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from polars import col

from sonde.compare import many
from sonde.compare.conditions import Condition, align, conditions
from sonde.compare.learned import OF_FACTS, learn
from sonde.compare.pairwise import CORRECT, KNOWN, differences, leaderboard
from sonde.core.components import build
from sonde.core.errors import DataError, UsageError, nearest
from sonde.evaluation.estimate import Metric, estimate, estimate_results
from sonde.evaluation.layout import Exhibit
from sonde.evaluation.stats import pearson, ranks
from sonde.models.families import plain
from sonde.reports.cells import Estimate, interval, number
from sonde.reports.model import Report, Section

if TYPE_CHECKING:
    from sonde.runs.run import Run

PAPERS = {Path(str(f)).stem: f for f in (files("sonde.compare") / "papers").iterdir()}
AXES = {
    "table": (),
    "heat": ("y", "x", "color"),
    "intervals": ("label", "color", "x"),
    "lines": ("x", "color", "y"),
    "dots": ("x", "color", "y"),
}
NUMBERS = ("value", "low", "high", "n")
BINS = 20  # of a histogram
ENDS = 3  # best and worst relations


@dataclass(frozen=True, kw_only=True)
class View:
    """A table or figure.

    Args:
        columns: what is shown, by heading: a metric, or a column of the prompts if `build` is
            "prompts" or "histogram".
        rows: the axes that make the rows, by heading.
        pivot: the axes that make the columns.
        runs: patterns of facts that its runs have, such as {context = "zero-shot|random"}.
        where: patterns of columns of the prompts that count.
        relations: those of the paper, unless the user names others.
        least: how many runs it needs.
        over: relations or facts; by default as in the probe's report.
        build: how it is made, see `BUILD`.
        sort: the heading by which rows are sorted.
        correlate: two headings whose correlation over the rows the note states.
        command: makes its runs.
        impossible: why no runs have it.
    """

    name: str
    title: str
    columns: dict[str, str] = field(default_factory=dict)
    rows: dict[str, str] = field(default_factory=lambda: {"run": "run"})
    pivot: tuple[str, ...] = ("column",)
    runs: dict[str, str] = field(default_factory=dict)
    where: dict[str, str] = field(default_factory=dict)
    relations: tuple[str, ...] = ()
    least: int = 1
    over: str = ""
    build: str = "estimates"
    figure: Literal["table", "heat", "intervals", "lines", "dots", "points"] = "table"
    sort: str = ""
    correlate: tuple[str, ...] = ()
    note: str = ""
    command: str = ""
    impossible: str = ""


def read_paper(name: str) -> tuple[str, list[View]]:
    """Title and views of the paper of that name, or of a TOML file."""
    path: Any = PAPERS.get(name) or Path(name)
    if not path.is_file():
        raise UsageError(f"there is no paper {name!r}; {nearest(name, PAPERS)} (or give a file)")
    try:
        paper = tomllib.loads(path.read_text(encoding="utf-8"))
        views = []
        for entry in paper["view"]:
            views.append(build(View, entry))
            if views[-1].build not in BUILD:
                raise UsageError(f"unknown build; {nearest(views[-1].build, BUILD)}")
    except KeyError:
        raise DataError(f"{path} has no views; begin each with a line [[view]]") from None
    except (TypeError, ValueError, UsageError) as error:
        raise DataError(f"{path} cannot be read: {error}") from None
    return paper.get("title", name), views


def run_facts(c: Condition) -> dict[str, str]:
    """What is known of a run, as texts."""
    known, (method, _, base), manifest = c.known, c.name.partition("@"), c.run.manifest
    return {
        **c.settings,
        "run": c.name,
        "probe": c.probe,
        "source": manifest.model["name"],
        "model": base or c.model,
        "method": method,
        "family": c.group,
        "stage": known.stage if known else "",
        "architecture": known.architecture if known else "",
        "corpus": known.corpus if known else "",
        "parameters": number(known and known.size, "count"),
        "seconds": number(c.run.provenance()["run"]["seconds"], "count"),
        "template": next(iter(c.results.templates["text"]), ""),
        "n_templates": str(c.results.templates["template_no"].max()),
    }


class Tables:
    """The views of a paper for some runs."""

    def __init__(
        self, runs: Mapping[str, Condition], learned: Report | None = None, seed: int = 0
    ) -> None:
        self.runs, self.learned, self.seed = runs, learned, seed
        self.facts = {name: run_facts(c) for name, c in runs.items()}
        self.frames: dict[Any, pl.DataFrame] = {}

    def chosen(self, view: View) -> list[Condition]:
        """The runs that a view takes, with the prompts that it shows."""
        where = view.where | ({"relation": "|".join(view.relations)} if view.relations else {})
        chosen = []
        for c in self.runs.values():
            facts, rows = self.facts[c.name], c.results.rows
            if all(re.fullmatch(v, facts.get(k, "")) for k, v in view.runs.items()):
                tests = [col(k).cast(pl.String).str.contains(f"^({v})$") for k, v in where.items()]
                if {*where} <= {*rows.columns} and tests:
                    c = replace(c, results=c.results.select(where=pl.all_horizontal(tests)))
                if {*where} <= {*rows.columns} and len(c.results.rows):
                    chosen.append(c)
        return chosen

    def estimates(self, c: Condition, view: View, by: Sequence[str]) -> pl.DataFrame:
        """Numbers of a run: columns by, spec, value, low, high, n, unit."""
        probe, metrics = c.results.probe, [*c.results.probe.metrics, CORRECT]
        over = view.over or probe.layout.over
        if self.learned:
            metrics, frame = list(self.learned.metrics), self.learned.estimates
            frame = frame.filter(col("run").eq_missing(c.name) | col("run").is_null())
        else:
            named = {spec.partition(".difference")[0] for spec in view.columns.values()}
            if by:
                metrics = [m for m in metrics if isinstance(m, Metric) and m.id in named]
            key = c, *by, over, *(named if by else ())
            if key not in self.frames:
                self.frames[key] = estimate(
                    c.results, metrics, groups=[tuple(by)] if by else probe.groups, over=(over,),
                    seed=self.seed, whole=not by,
                )  # fmt: skip
            frame = self.frames[key]
        units = {m.id: m.unit for one in metrics for m in getattr(one, "metrics", (one,))}
        first = [col(name).list.get(0, null_on_oob=True) for name in ("group_by", "group")]
        of = pl.when(col("of") != "value").then("of")
        spec = pl.concat_str(
            "metric", of, *first[: 0 if by else 2], separator=".", ignore_nulls=True
        )
        unit = col("metric").replace_strict(units, default="")
        points = (col("of") == "difference") & (unit == "percent")
        wanted = col("group_by") == list(by) if by else col("group_by").list.len() < 2
        return frame.filter(wanted, col("value").is_not_null(), over=over).select(
            *NUMBERS,
            spec=spec,
            unit=pl.when(points).then(pl.lit("points")).otherwise(unit),
            **{name: col("group").list.get(n) for n, name in enumerate(by)},
        )

    def long(self, view: View, chosen: Sequence[Condition]) -> pl.DataFrame:
        """What a view shows, a line per place; of several runs at one that with most prompts."""
        heads = pl.DataFrame({"column": list(view.columns), "spec": list(view.columns.values())})
        axes = dict.fromkeys([*view.rows.values(), *view.pivot])
        parts = []
        every = {name: "" for c in chosen for name in self.facts[c.name]}
        for c in chosen:
            facts = every | self.facts[c.name]
            by = [axis for axis in axes if axis not in facts and axis != "column"]
            part = heads.join(self.estimates(c, view, by), on="spec", maintain_order="left_right")
            known = [pl.lit(value).alias(name) for name, value in facts.items()]
            part = part.with_columns(*known, size=pl.lit(c.results.rows.height))
            # a share of facts is no number of a run
            alone = pl.when(col("spec").is_in([m.id for m in OF_FACTS])).then(pl.lit(""))
            part = part.with_columns(run=alone.otherwise("run"))
            if "relation" in by:
                labels = c.results.facts.select(col("relation").cast(pl.String), "label").unique()
                same = col("relation").str.to_lowercase() == col("label").str.to_lowercase()
                both = pl.concat_str(
                    "relation", pl.when(~same).then("label"), separator=" ", ignore_nulls=True
                )
                part = part.join(labels, on="relation", maintain_order="left")
                part = part.with_columns(relation=both)
            parts.append(part)
        frame = pl.concat(parts, how="diagonal_relaxed")
        frame = frame.filter(col("size") == col("size").max().over(*axes))
        for axis in view.pivot:
            values = (
                list(view.columns) if axis == "column" else frame[axis].unique(maintain_order=True)
            )
            frame = frame.with_columns(col(axis).cast(pl.Enum(values)))
        return frame.sort(view.pivot, maintain_order=True)

    def shown(self, view: View, frame: pl.DataFrame, note: str = "") -> Exhibit:
        """Lines of `long` as a table or a figure."""
        frame = frame.with_columns(row=_text(view.rows.values()), head=_text(view.pivot))
        if view.sort:
            best = col("value").filter(head=view.sort).first().over("row")
            frame = frame.sort(best, descending=True, nulls_last=True, maintain_order=True)
        if view.correlate and (found := _correlation(view, frame)):
            r, p, rho, n = found
            note += (
                f"Pearson's r of {' and '.join(view.correlate)} over {n} runs: {number(r)} "
                f"(p = {number(p, 'p')}), Spearman's ρ: {number(rho)}."
            )
        if view.figure in ("table", "points"):
            index, cells = list(view.rows.values()), frame.with_columns(cell=pl.struct(NUMBERS))
            table = cells.pivot("head", index=index, values="cell", aggregate_function="first")
            heads = [name for name in table.columns if name not in index]
            if view.figure == "points":
                x, y = heads[:2]
                points = table.select(
                    x=col(x).struct["value"], y=col(y).struct["value"], label=_text(index)
                )
                return Exhibit("", "", points, {}, "lines", note, x, y)
            table = table.rename({axis: head for head, axis in view.rows.items()})
            return Exhibit("", "", table, dict(frame.select("head", "unit").rows()), note=note)
        row, head, value = AXES[view.figure]
        frame = frame.select(
            "unit", "low", "high", "n", **{row: "row", head: "head", value: "value"}
        )
        numbers = frame[row].str.replace_all(",", "").cast(float, strict=False)
        lines = view.figure in ("lines", "dots")
        if view.figure == "dots":
            frame = frame.with_columns(label="x")
        if lines and not numbers.null_count():
            frame = frame.with_columns(x=numbers).sort("x", maintain_order=True)
        unit = frame["unit"][0]
        units = {value: unit, "low": unit, "n": "count"}
        # a table of several series has no column for n
        frame = frame.drop("unit", *["n"] * (frame[head].n_unique() > 1))
        y = "" if "column" in view.rows.values() else next(iter(view.columns))
        labels = (next(iter(view.rows)), y) if lines else ()
        return Exhibit("", "", frame, units, "lines" if lines else view.figure, note, *labels)

    def make(self, view: View) -> list[Exhibit]:
        """The exhibits of a view; none if the runs do not have what it shows."""
        chosen = self.chosen(view)
        if len(chosen) < view.least:
            return []
        facts = pl.DataFrame([self.facts[c.name] for c in chosen]).fill_null("")
        known = {f.name: ", ".join(f.unique(maintain_order=True)) for f in facts}
        columns = {heading.format_map(known): spec for heading, spec in view.columns.items()}
        view = replace(view, columns=columns)
        notes = [view.note.format_map(known)]
        sizes = {c.name: c.prompted.height for c in chosen}
        if len(set(sizes.values())) > 1:
            counts = ", ".join(f"{name}: {n:,}" for name, n in sizes.items())
            notes.append(f"The runs have different facts ({counts}).")
        return [
            e._replace(
                id=re.sub(r"\W+", "-", view.name.lower()),
                title=f"{view.name}. {view.title}" + f": {e.title}" * bool(e.title),
                note=" ".join(filter(None, [*notes, e.note])),
            )
            for e in BUILD[view.build](self, view, chosen)
            if not e.frame.is_empty()
        ]


def _text(axes: Iterable[str]) -> pl.Expr:
    parts = (col(axis).cast(pl.String) for axis in axes)
    return pl.concat_str(
        [pl.when(part != "").then(part) for part in parts], separator=", ", ignore_nulls=True
    )


def _correlation(view: View, frame: pl.DataFrame) -> tuple[float, float, float, int] | None:
    """Pearson's r and p of two headings over rows, Spearman's ρ, and the number of rows."""
    wide = frame.pivot("head", index="row", values="value", aggregate_function="first")
    if not {*view.correlate} <= {*wide.columns}:
        return None
    values = wide.select(view.correlate).drop_nulls().to_numpy().T
    r, rho = pearson(*values), pearson(*map(ranks, values))
    return None if r is None or rho is None else (*r, rho[0], values.shape[1])


def estimates(tables: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """Estimates of runs; without columns only facts of them."""
    if view.columns:
        frame = tables.long(view, chosen)
        if not frame.is_empty():
            yield tables.shown(view, frame)
    else:
        facts = pl.DataFrame([tables.facts[c.name] for c in chosen])
        yield Exhibit("", "", facts.select(**view.rows).unique(maintain_order=True))


def by_relation(tables: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """The correlation of two headings over runs, in each relation."""
    frame = tables.long(view, chosen).with_columns(row="run", head="column")
    lines = [
        (relation, *found)
        for (relation,), part in frame.group_by("relation", maintain_order=True)
        if (found := _correlation(view, part))
    ]
    names = ("relation", "Pearson correlation", "p-value", "Spearman correlation", "runs")
    yield Exhibit("", "", pl.DataFrame(lines, names, orient="row"), {"p-value": "p"})


def report(tables: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """A part of the report of every run."""
    [id], frames = view.columns.values(), []
    for c in chosen:
        extra, numbers = c.results.probe.layout.extra, estimate_results(c.results, tables.seed)
        for part in extra(c.results, numbers) if extra else ():
            if part.id == id:
                name = "color" if part.kind == "lines" else "run"
                frames.append(part.frame.with_columns(pl.lit(c.name).alias(name)))
                made = part
    if frames:
        yield made._replace(title="", frame=pl.concat(frames))


def histogram(tables: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """The first column of the prompts in bins from 0 to 1; the second is a metric for the note."""
    (head, column), (metric, spec) = view.columns.items()
    edges, frames, notes = np.linspace(0, 1, BINS + 1), [], []
    for c in chosen:
        values = c.results.rows[column].drop_nulls().to_numpy()
        share = np.histogram(values, edges)[0] / max(len(values), 1)
        frames.append(pl.DataFrame({"x": edges[:-1], "y": share, "color": [c.name] * BINS}))
        for e in tables.estimates(c, view, ()).filter(spec=spec).select(NUMBERS).rows():
            notes.append(f"{c.name}: {interval(Estimate(*e))} {metric}.")
    units = {"x": "number", "y": "percent"}
    yield Exhibit("", "", pl.concat(frames), units, "histogram", " ".join(notes), head, "share")


def facts(tables: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """The mean of a column of the prompts for each fact; those that vary most first."""
    [column], index = view.columns.values(), list(view.rows.values())
    frames = []
    for c in chosen:
        rows = c.results.table([*index, *view.pivot, column]).collect()
        frames.append(rows.cast({pl.Enum: pl.String}).with_columns(run=pl.lit(c.name)))
    frame = pl.concat(frames, how="vertical_relaxed").with_columns(
        head=pl.concat_str("run", *view.pivot, separator=", ")
    )
    table = frame.pivot("head", index=index, values=column, aggregate_function="mean")
    values = pl.exclude(index)
    apart = pl.max_horizontal(values) - pl.min_horizontal(values)
    yield Exhibit("", "", table.sort(apart, descending=True, nulls_last=True))


def places(tables: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """The objects of one list by place, their mean, and one fact that all runs have there."""
    names = ("place", "place_group", "subject", "clean", "changed")
    kinds = {"replaced": "replaced", "after_1": "right after"}
    traced = ""
    for c in chosen:
        rows = c.results.table(names).sort("place").collect()
        color = col("place_group").cast(pl.String).replace_strict(kinds, default="others")
        dots = rows.select(
            x="place", y=pl.coalesce("changed", "clean"), color=color, label="subject"
        )
        traced = traced or dots["label"][dots.height * 3 // 4]
        one = dots.filter(label=traced).with_columns(color=pl.lit(traced))
        mean = col("y").filter(color="others").mean()
        line = dots[[0, -1]].with_columns(
            y=dots.select(mean).item(), color=pl.lit("mean of others"), label=None
        )
        frame = pl.concat([dots, line, one], how="vertical_relaxed")
        yield Exhibit("", c.name, frame, {"x": "count", "y": "percent"}, "lines", "", "place")


def matrix(tables: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """A number of every two runs, or its mean over the pairs of runs of two families."""
    aligned = align({c.name: c for c in chosen})
    # rank agreement is that of one task
    parts = many.tasks(aligned).values() if view.build == "rank_agreement" else [aligned.names]
    for names in parts:
        note, by_template = "", aligned.same_prompts
        if view.build == "sharing":
            frame = many.sharing(aligned, names, by_template=by_template)["sharing"]
        else:
            frame = getattr(many, view.build)(aligned, names)
        couples = frame.filter(col("row") != col("column"))
        if couples.is_empty():
            continue
        groups = {c.name: c.group for c in chosen}
        first, second = (col(name).replace_strict(groups) for name in ("row", "column"))
        if "family" in view.pivot:
            ends = couples.group_by(row=first, column=second, maintain_order=True)
            frame = ends.agg(col("value").mean()).sort("row", "column")
        elif view.build == "sharing":
            inner, outer = (
                number(couples.filter(test)["value"].mean(), "percent")
                for test in (first == second, first != second)
            )
            only, n = many.known_in_one(aligned, names, by_template=by_template)
            unit = "prompts" if by_template else "facts"
            note = (
                f"Mean within groups: {inner}, between groups: {outer}. "
                f"{number(only, 'percent')} of the {n:,} known {unit} are known to one run only."
            )
        unit = "percent" if view.build == "sharing" else "number"
        frame = frame.select(y="row", x="column", color="value")
        yield Exhibit("", "", frame, {"color": unit}, "heat", note, limit=1.0)


def tuned(chosen: Sequence[Condition]) -> list[tuple[Condition, Condition]]:
    """Runs of fine-tuned models with those of their bases."""
    return [
        (c, base)
        for c in chosen
        for base in chosen
        if c.known and c.known.base and plain(c.known.base) == base.model
    ]


def with_base(tables: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """Estimates of fine-tuned models and their bases."""
    names = {c.name for couple in tuned(chosen) for c in couple}
    if names:
        yield from estimates(tables, view, [c for c in chosen if c.name in names])


def pairs(tables: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """The smallest and the largest of a family, or fine-tuned and base: accuracies and η."""
    couples = tuned(chosen)
    if view.build == "sizes":
        sizes = {c: c.known.size for c in chosen if c.known and c.known.size}
        couples = []
        for family in dict.fromkeys(c.group for c in sizes):
            some = sorted((c for c in sizes if c.group == family), key=lambda c: sizes[c] or 0)
            couples += [(some[0], some[-1])] * (sizes[some[0]] != sizes[some[-1]])
    frames = []
    *heads, eta = view.columns
    for couple in couples:
        first, second = align({c.name: c for c in couple}).conditions.values()
        known, other = (
            c.results.rows.group_by("fact_no", "relation").agg(known=col("correct").mean() > KNOWN)
            for c in (first, second)
        )
        both = known.filter("known").join(other.select("fact_no", also="known"), on="fact_no")
        both = both.with_columns(template_no=pl.lit(0, pl.UInt16))
        share = Metric(eta, num=col("also").mean(), unit="number")
        shared = replace(first.results, rows=both.sort("fact_no"))
        line = estimate(shared, [share], over=("relations",), seed=tables.seed)
        parts = [line.select(*NUMBERS, unit=pl.lit("number"), column=pl.lit(eta))]
        facts = {"family": first.group}
        for at, c, head in zip(("first", "second"), (first, second), heads, strict=True):
            line = tables.estimates(c, view, ()).filter(spec=view.columns[head])
            parts.insert(-1, line.select(*NUMBERS, "unit", column=pl.lit(head)))
            facts |= {f"{at} {name}": value for name, value in tables.facts[c.name].items()}
        values = (pl.lit(value).alias(name) for name, value in facts.items())
        frames.append(pl.concat(parts).with_columns(*values))
    if frames:
        yield tables.shown(view, pl.concat(frames, how="diagonal"))


def extremes(tables: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """The best and worst relations of each run."""
    frame = tables.long(view, chosen)
    order = col("value").rank("ordinal", descending=True).over("run")
    last = pl.len().over("run") - ENDS
    frame = frame.with_columns(order=order).filter((col("order") <= ENDS) | (col("order") > last))
    texts = [
        f"{name} {interval(Estimate(*e))}" for name, *e in frame.select("relation", *NUMBERS).rows()
    ]
    frame = frame.with_columns(text=pl.Series(texts)).sort("order", maintain_order=True)
    yield Exhibit("", "", frame.pivot("run", index="order", values="text"))


def pooled(tables: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """The mean over runs, of the facts that all of them have."""
    every = list(align({c.name: c for c in chosen}).conditions.values())
    names = ["fact_no", "relation", "template_no", "correct"]
    rows = pl.concat([c.results.rows.select(names) for c in every]).sort("relation")
    mean = replace(every[0], results=replace(every[0].results, rows=rows))
    yield tables.shown(view, tables.long(view, [mean]))


def methods(tables: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """Estimates of runs of several probes, on the facts for which they have the same options."""
    kept, lost = [], 0
    for model in dict.fromkeys(tables.facts[c.name]["model"] for c in chosen):
        runs = [c for c in chosen if tables.facts[c.name]["model"] == model]
        keys = [
            c.results.table(["relation", "fact", "options_id", "fact_no"]).drop_nulls()
            .cast({pl.Enum: pl.String}).unique().collect() for c in runs
        ]  # fmt: skip
        on = ["relation", "fact", "options_id"]
        shared = reduce(lambda a, b: a.join(b, on=on, how="semi"), keys)
        if len({c.probe for c in runs}) > 1:
            lost += max(key.height for key in keys) - shared.height
            for c, key in zip(runs, keys, strict=True):
                numbers = key.join(shared, on=on, how="semi")["fact_no"].implode()
                kept.append(
                    replace(c, results=c.results.select(where=col("fact_no").is_in(numbers)))
                )
    if kept:
        note = f"{lost:,} facts have other options in one of the runs and do not count."
        yield tables.shown(view, tables.long(view, kept), note * bool(lost))


def ranked(tables: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """Estimates with ranges of ranks that hold together, or the runs that do not differ."""
    [part] = estimates(tables, view, chosen)
    metric = next(m for m in chosen[0].results.probe.metrics if m.id == view.columns[view.sort])
    metric, aligned = replace(metric, baseline=None), align({c.name: c for c in chosen})
    if view.build == "ranked":
        ranges = leaderboard(aligned, metric, tables.seed).ranks
        head, texts = "rank", {n: "–".join(dict.fromkeys(map(str, e))) for n, e in ranges.items()}
    else:
        every = differences(aligned, metric, combinations(aligned.names, 2), tables.seed)
        alike = [d[:2] for d in every if not d.significant]
        head = "no significant difference from"
        texts = {
            n: ", ".join(o for d in alike if n in d for o in d if o != n) for n in aligned.names
        }
    column = col(next(iter(view.rows))).replace_strict(texts).alias(head)
    yield part._replace(frame=part.frame.with_columns(column))


def families(tables: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """Estimates, families together, ordered by that of their model of about 7 billion parameters."""
    spec = next(iter(view.columns.values()))
    means = {c: tables.estimates(c, view, ()).filter(spec=spec)["value"].sum() for c in chosen}

    def order(c: Condition) -> tuple[float, str, float]:
        family = [other for other in chosen if other.group == c.group]
        near = min(family, key=lambda o: abs((o.known and o.known.size or 0) - 7e9))
        return -means[near], c.group, -means[c]

    yield from estimates(tables, view, sorted(chosen, key=order))


def sample(tables: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """Easy and hard facts with the answers of runs."""
    if tables.learned:
        yield Exhibit("", "", tables.learned["facts"].frame)


BUILD: Mapping[str, Callable[[Tables, View, Sequence[Condition]], Iterator[Exhibit]]] = {
    "estimates": estimates, "by_relation": by_relation, "report": report, "histogram": histogram,
    "facts": facts, "places": places, "sharing": matrix, "correlation": matrix,
    "rank_agreement": matrix, "sizes": pairs, "stages": pairs, "with_base": with_base,
    "extremes": extremes, "pooled": pooled, "methods": methods, "ranked": ranked, "equal": ranked,
    "families": families, "sample": sample,
}  # fmt: skip


def paper(
    name: str,
    runs: "Mapping[str, Run]",
    *,
    groups: str = "family",
    models: str | Path | None = None,
    relations: Sequence[str] = (),
    easy: Sequence[str] = (),
    seed: int = 0,
) -> Report:
    """The tables and figures of a paper for some runs, and what would make the others."""
    title, views = read_paper(name)
    every = conditions(runs, groups=groups, models=models, relations=relations)
    learned = None
    if any(view.build == "sample" for view in views):
        lama = {n: run for n, run in runs.items() if every[n].probe == "lama"}
        every = {n: every[n] for n in lama}
        learned = learn(lama, easy, seed) if lama else None
    tables = Tables(every, learned, seed)
    made, missing, impossible = [], [], []
    for view in views:
        if view.impossible:
            impossible.append((view.name, view.title, view.impossible))
            continue
        try:
            exhibits = tables.make(replace(view, relations=() if relations else view.relations))
            reason = ""
        except UsageError as error:
            exhibits, reason = [], str(error)
        made += exhibits
        if not exhibits:
            missing.append((view.name, view.title, reason or view.command))
    if not made:
        raise UsageError(f"no run fits a table of {name!r}; make one: {missing[0][2]}")
    names = ("view", "title", "command")
    lists = [
        Exhibit(id, title, pl.DataFrame(lines, (*names[:2], last), orient="row"))
        for id, title, last, lines in (
            ("missing", "Not filled by these runs", "command", missing),
            ("impossible", "Not from runs", "reason", impossible),
        )
        if lines
    ]
    return Report(
        title=f"{title}: {len(made)} tables and figures of {len(runs)} runs",
        kicker="Tables of a paper",
        sections=[
            Section("views", "Tables and figures", made),
            Section("left", "Not shown", lists),
        ],
        provenance={name: run.provenance() for name, run in runs.items()},
    )
