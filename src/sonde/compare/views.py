"""The tables and figures of a paper, for any runs: `sonde compare --paper belief RUN …`.

A paper is a TOML file of views. A view has axes, which make its rows and its columns: `column` (its
headings), a fact of the run (run, model, family, parameters, seconds, a setting) or a column of the
graded prompts. A heading names a metric as the JSON does. Knows no paper.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
import polars.selectors as cs
from polars import col, lit

from sonde.compare.conditions import Condition, align, conditions
from sonde.compare.learned import with_learning
from sonde.compare.pairwise import CORRECT, KNOWN, MATRICES, heat, leaderboard
from sonde.core.components import build
from sonde.core.errors import DataError, UsageError, nearest
from sonde.evaluation.estimate import Metric, estimate, estimate_results
from sonde.evaluation.layout import Exhibit
from sonde.evaluation.stats import pearson
from sonde.models.families import plain
from sonde.reports.cells import Estimate, format_number
from sonde.reports.model import Report, Section

if TYPE_CHECKING:
    from sonde.runs.run import Run

PAPERS = {Path(str(f)).stem: f for f in (files("sonde.compare") / "papers").iterdir()}
AXES = {"heat": ("y", "x", "color"), "intervals": ("label", "color", "x")}
NUMBERS = ("value", "low", "high", "n")
OF_COUPLES = (
    Metric("first.accuracy", num=col("first").mean()),
    Metric(
        "η", num=(col("correct").mean() > KNOWN).cast(pl.Float64), where=col("first") > KNOWN,
        unit="number",
    ),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class View:
    """A table or figure.

    Args:
        columns: what is shown, by heading: a metric, or a column of the prompts.
        rows: the axes that make the rows, by heading.
        pivot: the axes that make the columns.
        runs: patterns of facts that its runs have, such as {context = "zero-shot|random"}.
        where: patterns of columns of the prompts that count; "relation" yields to the user's.
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
    build: str = "estimates"
    figure: Literal["table", "heat", "intervals", "lines", "dots"] = "table"
    sort: str = ""
    note: str = ""
    command: str = ""
    impossible: str = ""


def read_paper(name: str) -> tuple[str, list[View], bool]:
    """The paper of that name, or of a TOML file: title, views, and if it needs training facts."""
    path: Any = PAPERS.get(name) or Path(name)
    if not path.is_file():
        raise UsageError(f"there is no paper {name!r}; {nearest(name, PAPERS)} (or give a file)")
    try:
        paper = tomllib.loads(path.read_text(encoding="utf-8"))
        views = [build(View, entry) for entry in paper["view"]]
        for view in views:
            if view.build not in BUILD:
                raise UsageError(f"{view.name}: unknown build; {nearest(view.build, BUILD)}")
            if view.sort not in ("", "spread", *view.columns):
                raise UsageError(
                    f"{view.name}: sort names no column; {nearest(view.sort, view.columns)}"
                )
            for pattern in (*view.runs.values(), *view.where.values()):
                re.compile(pattern)
    except KeyError:
        raise DataError(f"{path} has no views; begin each with a line [[view]]") from None
    except (re.error, AttributeError, TypeError, ValueError, UsageError) as error:
        message = f"{path} cannot be read: {error}; its keys are in docs/compare.md"
        raise DataError(message) from None
    return paper.get("title", name), views, paper.get("learning", False)


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
        "parameters": format_number(getattr(c.known, "size", None), "count"),
        "seconds": format_number(c.run.provenance()["run"]["seconds"], "count"),
        "template": c.results.table(["text"]).first().collect().item(),
        "styles": "|".join(c.results.templates["style"].unique()),
        "n_templates": str(c.results.templates["template_no"].max()),
    }


@dataclass(frozen=True, eq=False)
class Tables:
    """The views of a paper for some runs."""

    runs: Mapping[str, Condition]
    seed: int
    frames: dict[Any, pl.DataFrame] = field(default_factory=dict)

    def make(self, view: View) -> Iterator[Exhibit]:
        """The exhibits of a view; none if the runs do not have what it shows."""
        tests = [col(k).cast(pl.String).str.contains(f"^({v})$") for k, v in view.where.items()]
        chosen = []
        for c in self.runs.values():
            facts, known = run_facts(c), {*view.where} <= {*c.results.rows.columns}
            if known and all(re.fullmatch(v, facts.get(k, "")) for k, v in view.runs.items()):
                results = c.results.select(where=pl.all_horizontal(tests) if tests else None)
                chosen += [replace(c, results=results)] * bool(len(results.rows))
        for e in BUILD[view.build](self, view, chosen) if chosen else ():
            if not e.frame.is_empty():
                yield e._replace(
                    id=re.sub(r"\W+", "-", view.name.lower()),
                    title=f"{view.name}. {view.title}",
                    note=view.note or e.note,
                )

    def estimates(self, c: Condition, view: View, by: Sequence[str] = ()) -> pl.DataFrame:
        """Numbers of a run: columns by, spec, value, low, high, n, unit."""
        probe, named = c.results.probe, {*view.columns.values()}
        metrics: list[Any] = [*probe.metrics, *c.metrics, CORRECT]
        units = {m.id: m.unit for one in metrics for m in getattr(one, "metrics", (one,))}
        columns = (named & {*c.results.rows.select(cs.numeric()).columns}) - {*units}
        metrics += [Metric(name, num=col(name).mean(), unit="number") for name in columns]
        if by:  # with one that is always measured, so that there are lines
            metrics = [m for m in metrics if m is CORRECT or getattr(m, "id", "") in named]
        key = c.results, *by, *(named if by else columns)
        if key not in self.frames:
            self.frames[key] = estimate(
                c.results, metrics, groups=[tuple(by)] if by else probe.groups,
                over=(probe.layout.over,), seed=self.seed, whole=not by,
            )  # fmt: skip
        frame = self.frames[key]
        if "subject" in by:  # a fact by itself has no interval
            frame = frame.with_columns(low=None, high=None)
        of, parts = col("of"), [] if by else ["group_by", "group"]
        wanted = col("group_by") == [*by] if by else col("group_by").list.len() < 2
        return frame.filter(wanted, col("value").is_not_null()).select(
            *NUMBERS,
            spec=pl.concat_list("metric", pl.when(of != "value").then(of), *parts)
            .list.drop_nulls()
            .list.join("."),
            unit=pl.when(of == "difference")
            .then(lit("points"))
            .otherwise(col("metric").replace(units | dict.fromkeys(columns, "number"))),
            **{name: col("group").list.get(n) for n, name in enumerate(by)},
        )

    def long(self, view: View, chosen: Sequence[Condition]) -> pl.DataFrame:
        """What a view shows, a line per place; of several runs at one that with most prompts."""
        heads = pl.DataFrame({"column": [*view.columns], "spec": [*view.columns.values()]})
        axes = list(dict.fromkeys([*view.rows.values(), *view.pivot]))
        facts = [run_facts(c) for c in chosen]
        known = {name for one in facts for name in one}
        schema = chosen[0].results.table().collect_schema()
        by = [axis for axis in axes if axis in schema and axis not in known]
        rest = {*axes} - {*by, "column"}
        parts = []
        for c, one in zip(chosen, facts, strict=True):
            part = heads.join(self.estimates(c, view, by), on="spec", maintain_order="left_right")
            part = part.with_columns(
                size=lit(len(c.results.rows)), **{name: lit(one.get(name, "")) for name in rest}
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


def shown(view: View, frame: pl.DataFrame) -> Exhibit:
    """Lines of `long` as a table or a figure."""

    def text(axes: Sequence[str]) -> pl.Expr:
        parts = col(axes).cast(pl.String).replace("", None)
        return pl.concat_str(parts, separator=", ", ignore_nulls=True)

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
        return Exhibit("", "", table, dict(frame.select("head", "unit").rows()))
    unit, (x, color, y) = frame["unit"].first(), AXES.get(view.figure, ("x", "color", "y"))
    units: Any = {y: unit, "low": unit, "high": unit}
    names = {x: "row", color: "head", y: "value"}
    figure = frame.select(**names, low="low", high="high")
    if view.figure in ("heat", "intervals"):
        return Exhibit("", "", figure, units, view.figure)
    figure = figure.with_columns(label="x") if view.figure == "dots" else figure
    numbers = figure["x"].str.replace_all(",", "").cast(float, strict=False)
    if not numbers.null_count():
        figure = figure.with_columns(x=numbers).sort("x", maintain_order=True)
        units["x"] = "count" if (numbers % 1 == 0).all() else "number"
    label = "" if "column" in index else next(iter(view.columns))
    return Exhibit("", "", figure, units, "lines", "", next(iter(view.rows)), label)


def estimates(t: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """Numbers of runs; without columns only facts of them."""
    chosen = SELECT.get(view.build, list)(chosen)
    if not view.columns:
        frame = pl.DataFrame([run_facts(c) for c in chosen])  # of the relations that it shows
        yield Exhibit("", "", frame.select(**view.rows).unique(maintain_order=True))
    elif chosen and len(frame := t.long(view, chosen)):
        yield shown(view, frame)


def marked(t: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """Lines of the first column, each with a point where x is the second."""
    (head, y), (mark, x) = view.columns.items()
    figure = shown(view, t.long(replace(view, columns={head: y}), chosen))
    ends = (
        t.estimates(c, view).filter(spec=x).select(x="value", color=lit(c.name)) for c in chosen
    )
    points = figure.frame.join(pl.concat(ends), on=["x", "color"])
    points = points.with_columns(color=col("color") + f", {mark}")
    yield figure._replace(frame=pl.concat([figure.frame, points]))


def correlations(t: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """Two columns over runs, with their correlation; in each relation if it is an axis."""
    wide = t.long(view, chosen).pivot("column", index=[*view.rows.values()], values="value")
    *axes, x, y = wide.drop_nulls().columns
    by, lines = [axis for axis in axes if axis == "relation"], []
    for (name, *_), part in wide.drop_nulls().group_by(by or lit("all"), maintain_order=True):
        values = part.select(x, y).to_numpy().T
        if result := pearson(*values):
            lines.append((name, *result, len(part)))
    heads = ("relation", "Pearson correlation", "p-value", "runs")
    if lines and not by:
        points = wide.select(x=x, y=y, label=axes[0])
        yield Exhibit("", "", points, {}, "lines", "", x, y)
    yield Exhibit("", "", pl.DataFrame(lines, heads, orient="row"), {"p-value": "p"})


def report(t: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """A figure of the report of every run, with a line for each run."""
    parts = []
    for c in chosen:
        extra, numbers = c.results.probe.layout.extra, estimate_results(c.results, t.seed)
        for part in extra(c.results, numbers) if extra else ():
            if part.id in view.columns.values():
                parts.append(part._replace(frame=part.frame.with_columns(color=lit(c.name))))
    if parts:
        yield parts[0]._replace(frame=pl.concat(part.frame for part in parts))


def matrix(t: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """A number of every two runs, or its mean over the pairs of runs of two families."""
    aligned = align({c.name: c for c in chosen})
    cells = {"by_template": aligned.same_prompts} if view.build == "sharing" else {}
    figure = heat(aligned, view.build, **cells)
    if "family" in view.pivot:
        pairs = figure.frame.filter(col("y") != col("x"))
        groups = pairs.with_columns(col("y", "x").replace({c.name: c.group for c in chosen}))
        mean = groups.group_by("y", "x").agg(col("color").mean()).sort("y", "x")
        figure = figure._replace(frame=mean)
    yield figure


def ranked(t: Tables, view: View, chosen: Sequence[Condition]) -> Iterator[Exhibit]:
    """Estimates, with ranges of ranks that hold together in the column that sorts them."""
    part = shown(view, t.long(view, chosen))
    if len(chosen) > 1:
        metrics = {getattr(m, "id", ""): m for m in chosen[0].results.probe.metrics}
        metric: Any = metrics[view.columns[view.sort]]
        board = leaderboard(align({c.name: c for c in chosen}), metric, t.seed).ranks
        texts = {name: "–".join(map(str, dict.fromkeys(ends))) for name, ends in board.items()}
        rank = col(next(iter(view.rows))).replace(texts).alias(f"rank by {view.sort}")
        part = part._replace(frame=part.frame.with_columns(rank))
    yield part


def couples(pairs: Iterable[tuple[Condition, Condition]]) -> list[Condition]:
    """The second run of each pair, on shared facts, with what is known of the first."""
    runs = []
    for pair in pairs:
        first, second = align({c.name: c for c in pair}).every
        shares = first.results.rows.group_by("fact_no").agg(first=col("correct").mean())
        rows = second.results.rows.join(shares, on="fact_no", maintain_order="left")
        settings = {f"first {name}": value for name, value in run_facts(first).items()}
        results = replace(second.results, rows=rows)
        runs.append(replace(second, results=results, settings=settings, metrics=OF_COUPLES))
    return runs


def sizes(chosen: Sequence[Condition]) -> list[Condition]:
    """The larger of every two models of a family, after the smaller."""
    known = {c: c.known.size for c in chosen if c.known and c.known.size}
    every = product(known, repeat=2)
    return couples((a, b) for a, b in every if a.group == b.group and known[a] < known[b])


def stages(chosen: Sequence[Condition]) -> list[Condition]:
    """The base of each fine-tuned model, after it."""
    every = product(chosen, repeat=2)
    return couples((a, b) for a, b in every if a.known and plain(a.known.base) == b.model)


def methods(chosen: Sequence[Condition]) -> list[Condition]:
    """Runs of a model with several probes, on the facts for which they have the same options."""
    models: dict[str, dict[str, Condition]] = {}
    for c in chosen:
        models.setdefault(c.model, {})[c.name] = c
    several = (some for some in models.values() if len({c.probe for c in some.values()}) > 1)
    return [c for some in several for c in align(some, same_options=True).every]


SELECT = {f.__name__: f for f in (sizes, stages, methods)}
BUILD: Mapping[str, Callable[[Tables, View, Sequence[Condition]], Iterator[Exhibit]]] = {
    **{f.__name__: f for f in (estimates, marked, correlations, report, ranked)},
    **dict.fromkeys(SELECT, estimates),
    **dict.fromkeys(MATRICES, matrix),
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
    title, views, learning = read_paper(name)
    every = conditions(runs, groups=groups, models=models, relations=relations)
    sentence = ""
    if learning:
        every = {n: c for n, c in every.items() if c.probe == "lama"}
        if every:
            every, sentence = with_learning(every, easy)
    elif easy:
        raise UsageError(f"paper {name!r} has no easy facts; drop --easy")
    t, exhibits, left = Tables(every, seed), list[Exhibit](), list[tuple[str, str]]()
    for view in views:
        n, why = len(exhibits), view.impossible or view.command
        where = {k: v for k, v in view.where.items() if k != "relation" or not relations}
        try:
            if not view.impossible:
                exhibits += t.make(replace(view, where=where))
        except (UsageError, pl.exceptions.PolarsError) as error:
            why = str(error)
        if len(exhibits) == n:
            left.append((f"{view.name}. {view.title}", why))
    if not exhibits:
        advice = next((view.command for view in views if view.command), left[0][1])
        raise UsageError(f"no run fits a table of {name!r}; make one: {advice}")
    numbers: dict[str, Estimate] = {}
    for e in exhibits:
        for row in e.frame.rows(named=True):
            texts = ".".join(value for value in row.values() if isinstance(value, str))
            cells = {head: cell for head, cell in row.items() if isinstance(cell, dict)}
            numbers |= {f"{e.id}.{texts}.{h}": Estimate(**cell) for h, cell in cells.items()}
    sizes = [f"{run}: {c.prompted.height:,}" for run, c in every.items()]
    differ = len({c.prompted.height for c in every.values()}) > 1
    warning = f"The runs have different facts ({', '.join(sizes)})."
    how = pl.DataFrame(left, ("view", "how to make it"), orient="row")
    missing = Exhibit("left", "Not filled by these runs", how)
    return Report(
        title=f"Tables and figures of {title}",
        kicker=f"Comparison of {len(runs)} runs",
        summary=[sentence] * bool(sentence),
        warnings=[("Warning", [warning])] * differ,
        sections=[
            Section("views", "Tables and figures", exhibits),
            *[Section("left", "Not shown", [missing])] * bool(left),
        ],
        estimates=numbers,
        provenance={name: run.provenance() for name, run in runs.items()},
    )
