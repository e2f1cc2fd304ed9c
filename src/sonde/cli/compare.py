"""`sonde compare RUN RUN …`: which of finished runs is better, and on what; needs no model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import typer

from sonde.cli.console import print_json, tell, waiting, writing
from sonde.cli.options import ALL_TABLES, JSON, argument, listed, option, verb
from sonde.cli.report import FileOptions, print_report, write_files
from sonde.core.errors import UsageError
from sonde.core.plain import plain


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """Which runs are compared, and how."""

    folders: list[Path] = argument(
        "Folders of finished runs, or NAME=FOLDER. The others are compared with the first."
    )
    relations: str = option("Compare only these relations, separated by commas.", "")
    groups: str = option(
        "Runs that belong together: family, model, stage, architecture, corpus, probe, a setting "
        "such as context, or a name for each run: a,a,b.",
        "family",
    )
    models: Path | None = option("Your own table of models: families, sizes, stages.", None)
    paper: str = option(
        "The tables and figures of a paper: belief, belief-icl, ic-lke, monitor, optiprompt, or "
        "a TOML file of your own.",
        "",
    )
    easy: str = option(
        "With --paper optiprompt: runs whose correct answers make a fact easy, separated by commas "
        "(default: naive Bayes and fine-tuned random models).",
        "",
    )
    fail_if_worse: bool = option(
        "Exit with code 1 if the second run is significantly worse, for CI.",
        False,
        "--fail-if-worse",
    )
    seed: int = option("Seed of the intervals.", 0)
    out: Path | None = option("Write report.html into this folder.", None, "-o", "--out")
    csv: Path | None = option("Write every table and figure as CSV into this folder.", None)
    latex: Path | None = option("Write every table and figure as LaTeX into this folder.", None)
    figures: Path | None = option("Write every figure as SVG into this folder.", None)
    all_tables: bool = option(ALL_TABLES, False, "--all-tables")
    as_json: bool = option(JSON, False, "--json")


@verb
def compare(wanted: CompareOptions) -> None:
    """Report which of two or more finished runs is better, and on what.

    Example: sonde compare runs/small runs/large -o runs/both
    """
    from sonde.compare import compare as compare_runs
    from sonde.compare.conditions import open_runs
    from sonde.compare.views import paper

    if wanted.easy and not wanted.paper:
        raise UsageError("--easy names the runs that decide which facts are easy; it needs --paper")
    if wanted.paper and wanted.fail_if_worse:
        raise UsageError("--paper makes tables and no verdict; drop --fail-if-worse")
    runs = open_runs(wanted.folders, least=1 if wanted.paper else 2)
    verdict = None
    with waiting("comparing the runs"):
        if wanted.paper:
            report = paper(
                wanted.paper,
                runs,
                groups=wanted.groups,
                models=wanted.models,
                relations=listed(wanted.relations),
                easy=listed(wanted.easy),
                seed=wanted.seed,
            )
        else:
            comparison = compare_runs(
                *wanted.folders,
                groups=wanted.groups,
                models=wanted.models,
                relations=listed(wanted.relations),
                seed=wanted.seed,
            )
            report, verdict = comparison.report, comparison.verdict
    for _, lines in report.warnings if wanted.as_json else ():  # else they are in the report
        for line in lines:
            tell(f"warning: {line}")
    html = None
    if wanted.out is not None:
        with writing(wanted.out):
            wanted.out.mkdir(parents=True, exist_ok=True)
        html = wanted.out / "report.html"
    files = FileOptions(
        html=html, csv=wanted.csv, latex=wanted.latex, all_tables=wanted.all_tables,
        figures=wanted.figures,
    )  # fmt: skip
    if wanted.as_json:
        write_files(report, files)
        outcome = {} if verdict is None else {"verdict": verdict.described()}
        print_json(cast(Any, plain(report.to_json() | outcome)))
    else:
        print_report(report, [f"run: {run.path} ({name})" for name, run in runs.items()], files)
    if wanted.fail_if_worse and verdict is not None and verdict.word == "worse":
        raise typer.Exit(1)
