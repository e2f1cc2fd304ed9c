"""Show a run's report: in the terminal, as HTML, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sonde.cli.console import output, print_json, say, waiting
from sonde.core.errors import StoreError
from sonde.core.files import whole
from sonde.core.reports import Report
from sonde.runs.controls import attach_controls
from sonde.runs.run import Run

if TYPE_CHECKING:
    from sonde.reporting.render.pictures import Format


def show_run(
    run: Run,
    *,
    html: Path | None,
    figures: Path | None = None,
    format: Format = "svg",
    as_json: bool = False,
    reading: Mapping[str, Any] | None = None,
) -> None:
    """Read a run and show its report; `html` and `figures` name what to write, if anything."""
    with waiting("reading the answers"):
        report = attach_controls(run, run.report(**(reading or {})), reading)
    show_report(
        report,
        run.provenance(),
        html=html,
        figures=figures,
        format=format,
        as_json=as_json,
        lines=[f"run: {run.path}"],
    )


def show_report(
    report: Report,
    provenance: Mapping[str, object],
    *,
    html: Path | None,
    figures: Path | None,
    format: Format,
    as_json: bool,
    lines: Sequence[str],
) -> None:
    """Show a report and write what is wanted of it; `lines` say at the end where it comes from."""
    if html is not None:
        write_html(report, provenance, html)
    drawn = write_pictures(report, figures, format) if figures is not None else []
    if as_json:
        from sonde.reporting.render.json import as_json as to_json

        print_json(to_json(report, provenance))
        return
    from sonde.reporting.render.terminal import show

    show(report, output())
    for line in lines:
        say(line, soft_wrap=True)
    if html is not None:
        say(f"report: {html}", soft_wrap=True)
    for path in drawn:
        say(f"figure: {path}", soft_wrap=True)
    if figures is not None and not drawn:
        say("figures: this report has none")


def write_pictures(report: Report, folder: Path, format: Format) -> list[Path]:
    """Write every figure as a picture of its own."""
    from sonde.cli.figures import write_figures

    return write_figures(report, folder, format)


def write_html(report: Report, provenance: Mapping[str, object], path: Path) -> None:
    """Write the self-contained page."""
    from sonde.reporting.render.html import page

    with waiting("writing the HTML report"):
        text = page(report, provenance)
    try:
        with whole(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
