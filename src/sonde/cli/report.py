"""`sonde report DIR`: the report of a finished run, in the terminal or as files; needs no model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sonde.cli.console import output, print_json, say, waiting, writing
from sonde.cli.former_report import NO_PICTURES
from sonde.cli.former_report import PictureOptions as PictureOptions
from sonde.cli.former_report import write_figures as write_figures
from sonde.cli.former_report import write_html as write_html
from sonde.cli.options import ALL_TABLES, JSON, PAGE, argument, option, pairs, verb
from sonde.core.components import parse
from sonde.core.errors import UsageError
from sonde.core.files import whole

if TYPE_CHECKING:
    from sonde.reports.model import Report
    from sonde.runs.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """What is written of a report, and in what form it is printed."""

    html: Path | None = option(PAGE, None)
    csv: Path | None = option("Write every table and figure as CSV into this folder.", None)
    latex: Path | None = option("Write every table and figure as LaTeX into this folder.", None)
    as_json: bool = option(JSON, False, "--json")
    markdown: bool = option("Print the report as Markdown.", False, "--markdown")
    all_tables: bool = option(ALL_TABLES, False, "--all-tables")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """Which run is read, and how."""

    folder: Path = argument("The folder of a finished run.")
    files: FileOptions
    pictures: PictureOptions
    settings: list[str] | None = option(
        "Analyze with another setting: KEY=VALUE; repeatable.", None, "--set"
    )


@verb
def report(wanted: ReportOptions) -> None:
    """Recompute a run's report from its stored answers.

    Example: sonde report runs/demo --json
    """
    from sonde.runs.run import open_run
    from sonde.runs.sweep import is_sweep, open_sweep

    changes, files = pairs(wanted.settings), wanted.files
    if is_sweep(wanted.folder):
        sweep = open_sweep(wanted.folder)
        with waiting("reading the answers"):
            read: Any = sweep.report(**parse(type(sweep.cells[0][1].probe()), changes))
        made_of, source = sweep.provenance(), f"sweep: {sweep.path}"
        files = replace(files, all_tables=True)
    else:
        run = open_run(wanted.folder)
        probe = run.probe()
        read = read_run(run, parse(type(getattr(probe, "probe", probe)), changes))
        made_of, source = run.provenance(), f"run: {run.path}"
    show_report(read, made_of, [source], files=files, pictures=wanted.pictures)


def read_run(run: Run, analysis: Mapping[str, Any] | None = None) -> Any:
    """The report of a run, analyzed with other settings if some are given."""
    from sonde.reports.model import Report
    from sonde.runs.controls import attach_controls

    with waiting("reading the answers"):
        made: Any = run.report(**(analysis or {}))
        return made if isinstance(made, Report) else attach_controls(run, made, analysis)


def show_report(
    report: Any,
    provenance: Mapping[str, object],
    lines: Sequence[str],
    *,
    html: Path | None = None,
    pictures: PictureOptions = NO_PICTURES,
    as_json: bool = False,
    brief: bool = False,
    files: FileOptions | None = None,
) -> None:
    """Show a report of either kind; only `print_report` stays."""
    from sonde.cli import former_report
    from sonde.reports.model import Report

    files = files or FileOptions(html=html, as_json=as_json, all_tables=not brief)
    if isinstance(report, Report):
        return print_report(report, lines, files, pictures.figures)
    if files.csv or files.latex or files.markdown:
        raise UsageError("this report is only shown in the terminal, as HTML and as JSON")
    return former_report.show_report(
        report,
        provenance,
        lines,
        html=files.html,
        pictures=pictures,
        as_json=files.as_json,
        brief=not files.all_tables,
    )


def print_report(
    report: Report, lines: Sequence[str], files: FileOptions, figures: Path | None = None
) -> None:
    """Print a report and write its files; `lines` state at the end where it comes from."""
    written = write_files(report, files, figures)
    if files.as_json:
        print_json(report.to_json())
    elif files.markdown:
        say(report.to_markdown(), soft_wrap=True)
    else:
        from sonde.reports.terminal import show

        show(report, output(), brief=not files.all_tables)
        for line in (*lines, *written):
            say(line, soft_wrap=True)


def write_files(report: Report, files: FileOptions, figures: Path | None = None) -> list[str]:
    """Write what is wanted; a line for each file or folder."""
    written = []
    if files.html is not None:
        with waiting("writing the HTML report"):
            page = report.to_html()
        with writing(files.html), whole(files.html) as file:
            file.write(page.encode())
        written.append(f"report: {files.html}")
    folders = ((files.csv, report.to_csv), (files.latex, report.to_latex), (figures, report.to_svg))
    for folder, write in folders:
        if folder is not None:
            with writing(folder):
                written += [f"file: {path}" for path in write(folder)]
    return written
