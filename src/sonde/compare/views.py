"""The tables and figures of a paper, for any runs: `sonde compare --paper belief RUN …`.

A paper is a TOML file of views. A view has axes, which make its rows and its columns: `column` (its
headings), a fact of the run (run, model, family, parameters, seconds, a setting) or a column of the
graded prompts. A heading names a metric as the JSON does. Knows no paper.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import polars as pl
from polars import col, lit

from sonde.compare import many
from sonde.compare.conditions import Condition, align, conditions
from sonde.compare.learned import OF_FACTS, learn
from sonde.compare.pairwise import CORRECT, KNOWN, leaderboard
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
AXES = {"heat": ("y", "x", "color"), "intervals": ("label", "color", "x")}
NUMBERS = ("value", "low", "high", "n")
BINS = 20  # of a histogram
ENDS = 3  # best and worst relations


@dataclass(frozen=True, kw_only=True)
class View:
    """A table or figure.

    Args:
        columns: what is shown, by heading: a metric, or a column of the prompts.
        rows: the axes that make the rows, by heading.
        pivot: the axes that make the columns.
        runs: patterns of facts that its runs have, such as {context = "zero-shot|random"}.
        where: patterns of columns of the prompts that count.
        relations: those of the paper, unless the user names others.
        least: how many runs it needs.
        over: relations or facts; by default as in the probe's report.
        build: how it is filled, see `BUILD`.
        sort: the heading by which rows are sorted, or "spread".
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
    figure: Literal["table", "heat", "intervals", "lines", "dots"] = "table"
    sort: str = ""
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
        views = [build(View, entry) for entry in paper["view"]]
        for view in views:
            if view.build not in BUILD:
                raise UsageError(f"{view.name}: unknown build; {nearest(view.build, BUILD)}")
            for pattern in (*view.runs.values(), *view.where.values()):
                re.compile(pattern)
    except KeyError:
        raise DataError(f"{path} has no views; begin each with a line [[view]]") from None
    except (re.error, AttributeError, TypeError, ValueError, UsageError) as error:
        message = f"{path} cannot be read: {error}; its keys are in docs/compare.md"
        raise DataError(message) from None
    return paper.get("title", name), views


def run_facts(c: Condition) -> dict[str, str]:
    """What is known of a run, as texts."""
    method, _, base = c.name.partition("@")
    described = ("stage", "architecture", "corpus")
    return {
        **c.settings,
        **{name: getattr(c.known, name, "") for name in described},
        "run": c.name,
        "probe": c.probe,
        "dataset": c.run.manifest.dataset["name"],
        "loaded": c.run.manifest.model["name"],
        "model": base or c.model,
        "method": method,
        "family": c.group,
        "parameters": number(getattr(c.known, "size", None), "count"),
        "seconds": number(c.run.provenance()["run"]["seconds"], "count"),
        "template": c.results.table(["text"]).first().collect().item(),
        "styles": "|".join(c.results.templates["style"].unique()),
        "n_templates": str(c.results.templates["template_no"].max()),
    }


class Tables:
    """The views of a paper for some runs."""

    def __init__(self, runs: Mapping[str, Condition], learned: Report | None, seed: int) -> None:
        self.runs, self.learned, self.seed = runs, learned, seed
        self.facts = {name: run_facts(c) for name, c in runs.items()}
        self.frames: dict[Any, pl.DataFrame] = {}

    def make(self, view: View) -> Iterator[Exhibit]:
        """The exhibits of a view; none if the runs do not have what it shows."""
        where = view.where | ({"relation": "|".join(view.relations)} if view.relations else {})
        tests = [col(k).cast(pl.String).str.contains(f"^({v})$") for k, v in where.items()]
        chosen = []
        for name, c in self.runs.items():
            facts, known = self.facts[name], {*where} <= {*c.results.rows.columns}
            if known and all(re.fullmatch(v, facts.get(k, "")) for k, v in view.runs.items()):
                results = c.results.select(where=pl.all_horizontal(tests)) if tests else c.results
                if len(results.rows):
                    chosen.append(replace(c, results=results) if tests else c)
        if len(chosen) < view.least:
            return
        every = pl.DataFrame([self.facts[c.name] for c in chosen]).fill_null("")
        known_facts = {f.name: ", ".join(f.unique(maintain_order=True)) for f in every}
        heads = {head.format_map(known_facts): spec for head, spec in view.columns.items()}
        for e in BUILD[view.build](self, replace(view, columns=heads), chosen):
            if not e.frame.is_empty():
                yield e._replace(
                    id=re.sub(r"\W+", "-", view.name.lower()),
                    title=f"{view.name}. {view.title}" + f": {e.title}" * bool(e.title),
                    note=" ".join(filter(None, (view.note, e.note))),
                )

    def estimates(self, c: Condition, view: View, by: Sequence[str] = ()) -> pl.DataFrame:
        """Numbers of a run: columns by, spec, value, low, high, n, unit."""
        probe = c.results.probe
        metrics: Any = [*probe.metrics, CORRECT]
        over: Any = view.over or probe.layout.over
        named = {*view.columns.values()}
        if self.learned:
            metrics, frame = self.learned.metrics, cast(pl.DataFrame, self.learned.estimates)
            frame = frame.filter((col("run") == c.name) | col("run").is_null())
        else:
            key = c, over, *by, *(named if by else ())
            if by:
                rows = named & {*c.results.rows.columns}
                columns = [Metric(name, num=col(name).mean(), unit="number") for name in rows]
                metrics = [m for m in metrics if getattr(m, "id", "") in named] or columns
            if key not in self.frames:
                groups = [tuple(by)] if by else probe.groups
                self.frames[key] = estimate(
                    c.results, metrics, groups=groups, over=(over,), seed=self.seed, whole=not by
                )
            frame = self.frames[key]
            if "subject" in by:  # a fact by itself has no interval
                frame = frame.with_columns(low=None, high=None)
        units = {m.id: m.unit for one in metrics for m in getattr(one, "metrics", (one,))}
        group = [col(name).list.get(0, null_on_oob=True) for name in ("group_by", "group")]
        gap = col("of") == "difference"
        parts: Any = "metric", pl.when(col("of") != "value").then("of"), *group[: 0 if by else 2]
        wanted = col("group_by") == [*by] if by else col("group_by").list.len() < 2
        return frame.filter(wanted, col("value").is_not_null(), over=over).select(
            *NUMBERS,
            spec=pl.concat_str(parts, separator=".", ignore_nulls=True),
            unit=pl.when(gap).then(lit("points")).otherwise(col("metric").replace(units)),
            **{name: col("group").list.get(n) for n, name in enumerate(by)},
        )

    def long(self, view: View, chosen: Sequence[Condition]) -> pl.DataFrame:
        """What a view shows, a line per place; of several runs at one that with most prompts."""
        heads = pl.DataFrame({"column": [*view.columns], "spec": [*view.columns.values()]})
        axes = list(dict.fromkeys([*view.rows.values(), *view.pivot]))
        every = {name: "" for c in chosen for name in self.facts[c.name]}
        parts = []
        for c in chosen:
            facts = {name: lit(value) for name, value in {**every, **self.facts[c.name]}.items()}
            by = [axis for axis in axes if axis not in facts and axis != "column"]
            part = heads.join(self.estimates(c, view, by), on="spec", maintain_order="left_right")
            # a share of facts is no number of a run
            alone = col("spec").is_in([m.id for m in OF_FACTS])
            part = part.with_columns(**facts, size=lit(len(c.results.rows))).with_columns(
                run=pl.when(~alone).then("run").otherwise(lit(""))
            )
            if "relation" in by:
                labels = c.results.facts.select(col("relation").cast(pl.String), "label").unique()
                names = {id: id if id == label else f"{id} {label}" for id, label in labels.rows()}
                part = part.with_columns(col("relation").replace(names))
            parts.append(part)
        frame = pl.concat(parts, how="diagonal_relaxed")
        frame = frame.filter(col("size") == col("size").max().over(axes))
        frame = frame.unique([*axes, "spec"], keep="first", maintain_order=True)
        for axis in view.pivot:
            values = [*view.columns] if axis == "column" else [*dict.fromkeys(frame[axis])]
            frame = frame.with_columns(col(axis).cast(pl.Enum(values)))
        return frame.sort(view.pivot, maintain_order=True)


def shown(view: View, frame: pl.DataFrame, note: str = "") -> Exhibit:
    """Lines of `long` as a table or a figure."""

    def text(axes: Sequence[str]) -> pl.Expr:
        parts = (col(axis).cast(pl.String) for axis in axes)
        named = [pl.when(part != "").then(part) for part in parts]
        return pl.concat_str(named, separator=", ", ignore_nulls=True)

    index, value = [*view.rows.values()], col("value")
    frame = frame.with_columns(row=text(index), head=text(view.pivot))
    if view.sort:
        spread = value.max() - value.min()
        best = spread if view.sort == "spread" else value.filter(head=view.sort).first()
        frame = frame.sort(best.over("row"), descending=True, nulls_last=True, maintain_order=True)
    if view.figure == "table":
        cells = frame.with_columns(cell=pl.struct(NUMBERS))
        table = cells.pivot("head", index=index, values="cell", aggregate_function="first")
        table = table.rename({axis: head for head, axis in view.rows.items()})
        return Exhibit("", "", table, dict(frame.select("head", "unit").rows()), note=note)
    unit, (x, color, y) = frame["unit"][0], AXES.get(view.figure, ("x", "color", "y"))
    units = {y: unit, "low": unit, "high": unit}
    names = {x: "row", color: "head", y: "value"}
    figure = frame.select(**names, low="low", high="high")
    if view.figure in ("heat", "intervals"):
        return Exhibit("", "", figure, units, view.figure, note)
    figure = figure.with_columns(label="x") if view.figure == "dots" else figure
    numbers = figure["x"].str.replace_all(",", "").cast(float, strict=False)
    if not numbers.null_count():
        figure = figure.with_columns(x=numbers).sort("x", maintain_order=True)
        units["x"] = "count" if (numbers % 1 == 0).all() else "number"
    label = "" if "column" in index else next(iter(view.columns))
    return Exhibit("", "", figure, units, "lines", note, next(iter(view.rows)), label)


def estimates(t: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """Numbers of runs; without columns only facts of them."""
    if view.columns:
        frame = t.long(view, chosen)
        yield shown(view, frame) if len(frame) else Exhibit("", "", frame)
    else:
        frame = pl.DataFrame([run_facts(c) for c in chosen])  # of the relations that it shows
        yield Exhibit("", "", frame.select(**view.rows).unique(maintain_order=True))


def correlations(t: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """Two columns over runs, with their correlation; in each relation if it is an axis."""
    frame = t.long(view, chosen)
    index = [axis for axis in view.rows.values() if axis != "relation"]
    by = ["relation"] * ("relation" in view.rows.values())
    wide = frame.pivot("column", index=[*by, *index], values="value").drop_nulls()
    x, y = wide.columns[-2:]
    lines = []
    for (name, *_), part in wide.group_by(by or lit("all"), maintain_order=True):
        values = part.select(x, y).to_numpy().T
        if result := pearson(*values):
            rho = pearson(*map(ranks, values))
            lines.append((name, *result, rho and rho[0], len(part)))
    heads = ("relation", "Pearson correlation", "p-value", "Spearman correlation", "runs")
    if not by:
        points = wide.select(col(x).alias("x"), col(y).alias("y"), label=index[0])
        yield Exhibit("", "", points, {}, "lines", "", x, y)
    yield Exhibit("", "", pl.DataFrame(lines, heads, orient="row"), {"p-value": "p"})


def report(t: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """A part of the report of every run."""
    frames = []
    for c in chosen:
        extra, numbers = c.results.probe.layout.extra, estimate_results(c.results, t.seed)
        for part in extra(c.results, numbers) if extra else ():
            if part.id in view.columns.values():
                name = "color" if part.kind == "lines" else "run"
                frames.append(part.frame.with_columns(lit(c.name).alias(name)))
                last = part
    if frames:
        frame = pl.concat(frames)
        if view.sort:  # the first of each relation
            frame = frame.sort(view.sort, descending=True, maintain_order=True)
            frame = frame.unique(("run", "relation"), keep="first", maintain_order=True)
        yield last._replace(title="", frame=frame)


def histogram(t: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """A column of the prompts in bins from 0 to 1."""
    [(head, column)], edges = view.columns.items(), np.linspace(0, 1, BINS + 1)
    frames = []
    for c in chosen:
        values = c.results.rows[column].drop_nulls().to_numpy()
        share = np.histogram(values, edges)[0] / len(values)
        frames.append(pl.DataFrame({"x": edges[:-1], "y": share, "color": [c.name] * BINS}))
    yield Exhibit("", "", pl.concat(frames), {"y": "percent"}, "histogram", "", head, "share")


def places(t: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """The objects of one list by place, their mean, and one fact that is marked in every list."""
    marked = ""
    for c in chosen:
        table = c.results.table(["relation", "place", "place_group", "subject", "clean", "changed"])
        rows = table.filter(col("relation") == col("relation").first()).sort("place").collect()
        group = col("place_group").cast(pl.String)
        kind = pl.when(group.is_in(["replaced", "after_1"])).then(group).otherwise(lit("other"))
        dots = rows.select(
            x="place", color=kind, label="subject", y=pl.coalesce("changed", "clean")
        )
        marked = marked or rows["subject"][len(rows) * 3 // 4]
        one = dots.filter(label=marked).with_columns(color="label")
        mean = pl.col("y").filter(color="other").mean()
        line = dots.with_columns(color=lit("mean of other"), label=None, y=mean)[[0, -1]]
        units = {"x": "count", "y": "percent"}
        yield Exhibit("", c.name, pl.concat([dots, line, one]), units, "lines", "", "place")


def matrix(t: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """A number of every two runs, or its mean over the pairs of runs of two families."""
    tasks: dict[str, dict[str, Condition]] = {}
    for c in chosen:  # rank agreement is that of one task
        tasks.setdefault(c.task * (view.build == "rank_agreement"), {})[c.name] = c
    for some in tasks.values():
        aligned, names = align(some), [*some]
        by_template = {"by_template": aligned.same_prompts}
        note, unit = "", "number"
        if view.build == "sharing":
            frame, unit = many.sharing(aligned, names, **by_template)["sharing"], "percent"
        else:
            frame = getattr(many, view.build)(aligned, names)
        pairs = frame.filter(col("row") != col("column"))
        groups = {c.name: c.group for c in chosen}
        families = pairs.with_columns(col("row", "column").replace(groups))
        if "family" in view.pivot:
            frame = families.group_by("row", "column").agg(col("value").mean())
            frame = frame.sort("row", "column")
        elif view.build == "sharing":
            inner = col("row") == col("column")
            means: Any = [families.filter(test)["value"].mean() for test in (inner, ~inner)]
            means.append(many.known_in_one(aligned, names, **by_template)[0])
            texts = [number(mean, unit) for mean in means]
            note = f"Mean within groups: {texts[0]}, between groups: {texts[1]}. "
            note += f"Of all that is known, {texts[2]} is known to one run only."
        frame = frame.select(y="row", x="column", color="value") if len(pairs) else pairs
        yield Exhibit("", "", frame, {"color": unit}, "heat", note, limit=1.0)


def tuned(chosen: Sequence[Condition]) -> list[tuple[Condition, Condition]]:
    """Runs of fine-tuned models with those of their bases."""
    bases = {c: plain(c.known.base) for c in chosen if c.known and c.known.base}
    return [(c, base) for c in bases for base in chosen if base.model == bases[c]]


def with_base(t: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """Estimates of fine-tuned models and their bases."""
    names = {c.name for pair in tuned(chosen) for c in pair}
    if names:
        yield from estimates(t, view, [c for c in chosen if c.name in names])


def pairs(t: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """The smallest and the largest of a family, or fine-tuned and base: accuracies and η."""
    couples = tuned(chosen)
    if view.build == "sizes":
        sizes = {c: c.known.size for c in chosen if c.known and c.known.size}
        families: dict[str, list[Condition]] = {}
        for c in sorted(sizes, key=lambda c: sizes[c]):
            families.setdefault(c.group, []).append(c)
        ends = ((some[0], some[-1]) for some in families.values())
        couples = [(a, b) for a, b in ends if sizes[a] != sizes[b]]
    frames, key = [], ["fact_no", "relation"]
    for couple in couples:
        pair = [*align({c.name: c for c in couple}).conditions.values()]
        known, also = (
            c.results.rows.group_by(key).agg(known=col("correct").mean() > KNOWN) for c in pair
        )
        rows = known.filter("known").join(also, on=key).sort(key)
        rows = rows.with_columns(template_no=lit(0, pl.UInt16))
        share = Metric("η", num=col("known_right").mean(), unit="number")
        results = replace(pair[0].results, rows=rows)
        eta = estimate(results, [share], over=("relations",), seed=t.seed)
        lines = [
            *(t.estimates(c, view).filter(col("spec").is_in(view.columns.values())) for c in pair),
            eta.with_columns(unit=lit("number")),
        ]
        facts = {"family": pair[0].group}
        for at, c in zip(("first", "second"), pair, strict=True):
            facts |= {f"{at} {name}": value for name, value in t.facts[c.name].items()}
        values = (lit(value).alias(name) for name, value in facts.items())
        cells = pl.concat([line.select(*NUMBERS, "unit") for line in lines])
        frames.append(cells.with_columns(*values, column=pl.Series([*view.columns])))
    if frames:
        yield shown(view, pl.concat(frames, how="diagonal"))


def extremes(t: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """The best and worst relations of each run."""
    order = col("value").rank("ordinal", descending=True).over("run").alias("order")
    frame = t.long(view, chosen).with_columns(order).sort("order", maintain_order=True)
    lines = frame.select("relation", *NUMBERS).rows()
    texts = [f"{name} {interval(Estimate(*numbers))}" for name, *numbers in lines]
    frame = frame.with_columns(text=pl.Series(texts))
    ends = frame.filter((col("order") <= ENDS) | (col("order") > pl.len().over("run") - ENDS))
    yield Exhibit("", "", ends.pivot("run", index="order", values="text"))


def pooled(t: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """The mean over runs, of the facts that all of them have."""
    first, *others = align({c.name: c for c in chosen}).conditions.values()
    names = ["fact_no", "relation", "template_no", "correct"]
    rows = pl.concat([c.results.rows.select(names) for c in (first, *others)]).sort("relation")
    mean = replace(first, results=replace(first.results, rows=rows))
    yield shown(view, t.long(view, [mean]))


def methods(t: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """Estimates of runs of several probes, on the facts for which they have the same options."""
    on, runs, lost = ["relation", "fact", "options_id"], list[Condition](), 0
    for model in dict.fromkeys(c.model for c in chosen):
        some = [c for c in chosen if c.model == model]
        if len({c.probe for c in some}) < 2:
            continue
        keys = [
            c.results.table([*on, "fact_no"]).drop_nulls().cast({pl.Enum: pl.String}).unique()
            for c in some
        ]
        shared = reduce(lambda a, b: a.join(b, on=on, how="semi"), keys).collect()
        lost += max(key.select("fact").collect().height for key in keys) - len(shared)
        for c, key in zip(some, keys, strict=True):
            facts = key.join(shared.lazy(), on=on, how="semi").collect()["fact_no"].implode()
            results = c.results.select(where=col("fact_no").is_in(facts))
            runs.append(replace(c, results=results))
    if runs:
        note = f"{lost:,} facts with other options in one of the runs do not count." * bool(lost)
        yield shown(view, t.long(view, runs), note)


def ranked(t: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """Estimates with ranges of ranks that hold together."""
    part = shown(view, t.long(view, chosen))
    every = cast(Sequence[Metric], chosen[0].results.probe.metrics)
    metric = next(m for m in every if m.id == view.columns[view.sort])
    board = leaderboard(align({c.name: c for c in chosen}), metric, t.seed).ranks
    texts = {name: "–".join(map(str, dict.fromkeys(ends))) for name, ends in board.items()}
    rank = col(next(iter(view.rows))).replace(texts).alias("rank")
    yield part._replace(frame=part.frame.with_columns(rank))


def sample(t: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """Easy and hard facts with the answers of runs."""
    if t.learned:
        yield Exhibit("", "", t.learned["facts"].frame)


BUILD: Mapping[str, Callable[[Tables, View, Sequence[Condition]], Iterator[Exhibit]]] = {
    **{f.__name__: f for f in (estimates, correlations, report, histogram, places, with_base,
                               extremes, pooled, methods, ranked, sample)},
    **dict.fromkeys(("sharing", "correlation", "rank_agreement"), matrix),
    **dict.fromkeys(("sizes", "stages"), pairs),
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
    every, learned = conditions(runs, groups=groups, models=models, relations=relations), None
    if any(view.build == "sample" for view in views):
        every = {n: c for n, c in every.items() if c.probe == "lama"}
        learned = learn({n: runs[n] for n in every}, easy, seed) if every else None
    t = Tables(every, learned, seed)
    exhibits: list[Exhibit] = []
    left: dict[str, list[tuple[str, str]]] = {"command": [], "reason": []}
    for view in views:
        label, n, why = f"{view.name}. {view.title}", len(exhibits), view.command
        if view.impossible:
            left["reason"].append((label, view.impossible))
            continue
        try:
            exhibits += t.make(replace(view, relations=() if relations else view.relations))
        except UsageError as error:
            why = str(error)
        if len(exhibits) == n:
            left["command"].append((label, why))
    if not exhibits:
        raise UsageError(f"no run fits a table of {name!r}; make one: {left['command'][0][1]}")
    titles = {"command": "Not filled by these runs", "reason": "Not from runs"}
    lists = [
        Exhibit(head, titles[head], pl.DataFrame(lines, ("view", head), orient="row"))
        for head, lines in left.items()
        if lines
    ]
    sizes = {run: c.prompted.height for run, c in every.items()}
    counts = ", ".join(f"{run}: {n:,}" for run, n in sizes.items())
    sections = [
        Section("views", "Tables and figures", exhibits),
        Section("left", "Not shown", lists),
    ]
    return Report(
        title=f"Tables and figures of {title}",
        kicker=f"Comparison of {len(runs)} runs",
        warnings=[("Warning", [f"The runs have different facts ({counts})."])]
        * (len({*sizes.values()}) > 1),
        sections=[section for section in sections if section.items],
        provenance={name: run.provenance() for name, run in runs.items()},
    )
