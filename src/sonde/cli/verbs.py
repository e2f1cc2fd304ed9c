"""The verbs of `sonde`, gathered into one command line; each is imported when it is named."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Annotated, Any

import typer

from sonde import __version__
from sonde.cli.options import group

VERBS = {
    "report": "sonde.cli.report:report",
    "analyse": "sonde.cli.analyse:analyse",
    "attribute": "sonde.cli.attribute:attribute",
    "models": "sonde.cli.run:models",
    "probes": "sonde.cli.run:probes",
    "demo": "sonde.cli.run:demo",
    "doctor": "sonde.cli.doctor:doctor",
    "run": "sonde.cli.run:app",
    "sweep": "sonde.cli.run:sweep",
    "plan": "sonde.cli.plan:app",
    "optimise": "sonde.cli.optimise:app",
    "data": "sonde.cli.data:app",
    "lab": "sonde.cli.lab:app",
}
"""Where the command of each verb is, in the order of the help text."""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


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


def _find(name: str) -> Any:
    module, attribute = VERBS[name].split(":")
    return getattr(import_module(module), attribute)


app = group(
    "What does this language model actually know, and how far can you trust it?",
    VERBS,
    _find,
    flags=options,
    epilog="Start with: sonde demo. Exit codes are listed in docs/exit-codes.md.",
)
