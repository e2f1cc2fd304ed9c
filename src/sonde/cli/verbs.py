"""The verbs of `sonde`, gathered into one command line."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from sonde import __version__
from sonde.cli import (
    analyse,
    attribute,
    data,
    demo,
    doctor,
    lab,
    listing,
    optimise,
    plan,
    report,
    run,
)

app = typer.Typer(
    name="sonde",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="What does this language model actually know, and how far can you trust it?",
    epilog="Start with: sonde demo. Exit codes are listed in docs/exit-codes.md.",
)
app.add_typer(run.app, name="run")
app.add_typer(plan.app, name="plan")
app.add_typer(optimise.app, name="optimise")
app.command("report")(report.report)
app.command("analyse")(analyse.analyse)
app.command("attribute")(attribute.attribute)
app.add_typer(data.app, name="data")
app.add_typer(lab.app, name="lab")
app.command("models")(listing.models)
app.command("probes")(listing.probes)
app.command("demo")(demo.demo)
app.command("doctor")(doctor.doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show stack traces.")] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """What holds for every verb."""
    if debug:
        os.environ["SONDE_DEBUG"] = "1"
