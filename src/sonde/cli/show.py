"""Show a run's report: in the terminal, as HTML, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sonde.cli.console import output, waiting
from sonde.controls import beside
from sonde.core.errors import StoreError
from sonde.core.reports import Report
from sonde.runner import Run

if TYPE_CHECKING:
    from sonde.report.pictures import Format


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
        report = beside(run, run.report(**(reading or {})), reading)
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
        from sonde.report.json import as_json as to_json

        typer.echo(json.dumps(to_json(report, provenance), indent=2, ensure_ascii=False))
        return
    from sonde.report.terminal import show

    show(report, output())
    for line in lines:
        output().print(line, highlight=False, markup=False, soft_wrap=True)
    if html is not None:
        output().print(f"report: {html}", highlight=False, markup=False, soft_wrap=True)
    for path in drawn:
        output().print(f"figure: {path}", highlight=False, markup=False, soft_wrap=True)
    if figures is not None and not drawn:
        output().print(
            "figures: this report has none", highlight=False, markup=False, soft_wrap=True
        )


def write_pictures(report: Report, folder: Path, format: Format) -> list[Path]:
    """Write every figure as a picture of its own."""
    from sonde.cli.figures import write_figures

    return write_figures(report, folder, format)


def write_html(report: Report, provenance: Mapping[str, object], path: Path) -> None:
    """Write the self-contained page."""
    from sonde.report.html import page

    with waiting("writing the HTML report"):
        text = page(report, provenance)
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)
