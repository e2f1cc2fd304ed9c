"""`sonde report DIR`: the report of a finished run, in the terminal, as HTML, as JSON; no model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonde.cli.console import output, print_json, say, waiting, writing
from sonde.cli.figures import write_figures
from sonde.cli.options import JSON, PAGE, PictureOptions, argument, option, pairs, verb
from sonde.core.files import whole
from sonde.core.reports import Report
from sonde.core.settings import parse
from sonde.reporting.render.html import page
from sonde.reporting.render.json import as_json as to_json
from sonde.reporting.render.terminal import show
from sonde.runs.controls import attach_controls
from sonde.runs.run import Run, open_run
from sonde.runs.sweep import Sweep, is_sweep, open_sweep

NO_PICTURES = PictureOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """Which run is read, how, and what is shown of it."""

    folder: Path = argument("The folder of a finished run, or of a sweep.")
    as_json: bool = option(JSON, False, "--json")
    html: Path | None = option(PAGE, None)
    pictures: PictureOptions
    settings: list[str] | None = option(
        "Read with another setting: KEY=VALUE; repeatable.", None, "--set"
    )


@verb
def report(wanted: ReportOptions) -> None:
    """Recompute a run's report from its stored answers.

    Example: sonde report runs/demo --json
    """
    if is_sweep(wanted.folder):
        show_sweep(open_sweep(wanted.folder), wanted)
        return
    run = open_run(wanted.folder)
    reading = parse(type(run.probe()), pairs(wanted.settings))
    show_run(
        run,
        html=wanted.html,
        pictures=wanted.pictures,
        as_json=wanted.as_json,
        reading=reading,
    )


def show_sweep(sweep: Sweep, wanted: ReportOptions) -> None:
    """Read the runs of a sweep and show them side by side."""
    kind = type(sweep.cells[0][1].probe())
    with waiting("reading the answers"):
        found = sweep.report(**parse(kind, pairs(wanted.settings)))
    show_report(
        found,
        sweep.provenance(),
        [f"sweep: {sweep.path}"],
        html=wanted.html,
        pictures=wanted.pictures,
        as_json=wanted.as_json,
    )


def show_run(
    run: Run,
    *,
    html: Path | None,
    pictures: PictureOptions = NO_PICTURES,
    as_json: bool = False,
    reading: Mapping[str, Any] | None = None,
) -> None:
    """Read a run and show its report; `html` and `pictures` name what to write, if anything."""
    with waiting("reading the answers"):
        report = attach_controls(run, run.report(**(reading or {})), reading)
    lines = [f"run: {run.path}"]
    show_report(report, run.provenance(), lines, html=html, pictures=pictures, as_json=as_json)


def show_report(
    report: Report,
    provenance: Mapping[str, object],
    lines: Sequence[str],
    *,
    html: Path | None = None,
    pictures: PictureOptions = NO_PICTURES,
    as_json: bool = False,
) -> None:
    """Show a report and write what is wanted of it; `lines` say at the end where it comes from."""
    if html is not None:
        write_html(report, provenance, html)
    folder = pictures.figures
    drawn = [] if folder is None else write_figures(report, folder, pictures.format)
    if as_json:
        print_json(to_json(report, provenance))
        return
    show(report, output())
    written = [] if html is None else [f"report: {html}"]
    for line in (*lines, *written, *(f"figure: {path}" for path in drawn)):
        say(line, soft_wrap=True)
    if folder is not None and not drawn:
        say("figures: this report has none")


def write_html(report: Report, provenance: Mapping[str, object], path: Path) -> None:
    """Write the self-contained page."""
    with waiting("writing the HTML report"):
        text = page(report, provenance)
    with writing(path), whole(path) as file:
        file.write(text.encode())
