"""`sonde report DIR`: the report of a finished run, in the terminal or as files; needs no model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sonde.cli.console import output, print_json, say, waiting, writing
from sonde.cli.options import ALL_TABLES, JSON, PAGE, argument, option, pairs, verb
from sonde.core.components import parse
from sonde.core.errors import UsageError
from sonde.core.files import whole

if TYPE_CHECKING:
    from sonde.reports.model import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """What is written of a report, and in what form it is printed."""

    html: Path | None = option(PAGE, None)
    csv: Path | None = option("Write every table and figure as CSV into this folder.", None)
    latex: Path | None = option("Write every table and figure as LaTeX into this folder.", None)
    figures: Path | None = option("Write every figure as SVG into this folder.", None)
    as_json: bool = option(JSON, False, "--json")
    markdown: bool = option("Print the report as Markdown.", False, "--markdown")
    all_tables: bool = option(ALL_TABLES, False, "--all-tables")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """Which run is read, and how."""

    folder: Path = argument("The folder of a finished run.")
    files: FileOptions
    settings: list[str] | None = option(
        "Analyze with another setting: KEY=VALUE; repeatable.", None, "--set"
    )


@verb
def report(wanted: ReportOptions) -> None:
    """Recompute a run's report from its stored answers.

    Example: sonde report runs/demo --json
    """
    from sonde.runs.run import open_run

    run = open_run(wanted.folder)
    probe = run.probe()
    settings = parse(type(getattr(probe, "probe", probe)), pairs(wanted.settings))
    with waiting("reading the answers"):
        made = run.report(**settings)
    print_report(made, [f"run: {run.path}"], wanted.files)


def print_report(report: Report, lines: Sequence[str], files: FileOptions) -> None:
    """Print a report and write its files; `lines` state at the end where it comes from."""
    if files.as_json and files.markdown:
        raise UsageError("--json and --markdown both print the report; give one of them")
    written = write_files(report, files)
    if files.as_json:
        print_json(report.to_json())
    elif files.markdown:
        say(report.to_markdown(), soft_wrap=True)
    else:
        from sonde.reports.terminal import show

        show(report, output(), brief=not files.all_tables)
        for line in (*lines, *written):
            say(line, soft_wrap=True)


def write_files(report: Report, files: FileOptions) -> list[str]:
    """Write what is wanted; a line for each file or folder."""
    written = []
    if files.html is not None:
        with waiting("writing the HTML report"):
            page = report.to_html()
        with writing(files.html), whole(files.html) as file:
            file.write(page.encode())
        written.append(f"report: {files.html}")
    folders = [(files.csv, report.to_csv), (files.latex, report.to_latex)]
    folders.append((files.figures, report.to_svg))
    for folder, write in folders:
        if folder is not None:
            with writing(folder):
                paths = write(folder)
            written.append(f"{len(paths)} files in {folder}")
    return written


def show_report(
    report: Any,
    provenance: Mapping[str, object],
    lines: Sequence[str],
    *,
    html: Path | None = None,
    figures: Path | None = None,
    as_json: bool = False,
    brief: bool = False,
) -> None:
    """Show a report of a card, a lab or an attribution; goes with `reports.legacy`."""
    files = FileOptions(html=html, figures=figures, as_json=as_json, all_tables=not brief)
    print_report(_modern(report, provenance), lines, files)


def write_html(report: Any, provenance: Mapping[str, object], path: Path) -> None:
    """The same as a page."""
    write_files(_modern(report, provenance), FileOptions(html=path))


def _modern(report: Any, provenance: Mapping[str, object]) -> Report:
    from sonde.reports.legacy import to_report

    return replace(to_report(report), provenance=provenance)
