"""`sonde report DIR`: recompute and show the report of a finished run; no model is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from sonde.cli.run import pairs
from sonde.cli.show import show_run
from sonde.core.settings import parse
from sonde.runs.run import open_run

Json = Annotated[bool, typer.Option("--json", help="Print every estimate with its stable name.")]
Figures = Annotated[
    Path | None,
    typer.Option(help="Write every figure as a picture into this folder (needs a browser)."),
]
PictureFormat = Annotated[Literal["svg", "png"], typer.Option(help="The format of the pictures.")]


def report(
    folder: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    as_json: Json = False,
    html: Annotated[
        Path | None, typer.Option(help="Write the self-contained HTML report here.")
    ] = None,
    figures: Figures = None,
    format: PictureFormat = "svg",
    set: Annotated[
        list[str] | None,
        typer.Option("--set", help="Read with another setting: KEY=VALUE; repeatable."),
    ] = None,
) -> None:
    """Recompute a run's report from its stored answers.

    Example: sonde report runs/demo --json
    """
    run = open_run(folder)
    reading = parse(type(run.probe()), pairs(set or []))
    show_run(run, html=html, figures=figures, format=format, as_json=as_json, reading=reading)
