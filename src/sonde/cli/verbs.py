"""The verbs of `sonde`, gathered into one command line; each is imported when it is named."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Annotated, Any

import typer

from sonde import __version__
from sonde.cli.groups import group

VERBS = {
    "demo": (
        "sonde.cli.run:demo",
        "Probe SmolLM2-135M, a real model, on the bundled facts.",
    ),
    "run": (
        "sonde.cli.run:app",
        "Put a probe's questions to a model and report what it knows.",
    ),
    "report": (
        "sonde.cli.report:report",
        "Recompute a run's report from its stored answers.",
    ),
    "compare": (
        "sonde.cli.compare:compare",
        "Say which of two or more finished runs is better, and on what.",
    ),
    "plan": (
        "sonde.cli.plan:app",
        "Say what a run would cost, without making it.",
    ),
    "doctor": (
        "sonde.cli.doctor:doctor",
        "Check that sonde talks to a model correctly.",
    ),
    "data": (
        "sonde.cli.data:app",
        "List, show, check, count, convert, judge and build datasets.",
    ),
    "probes": (
        "sonde.cli.run:probes",
        "List the probes and their settings.",
    ),
    "models": (
        "sonde.cli.run:models",
        "List the ways to name a model.",
    ),
    "sweep": (
        "sonde.cli.run:sweep",
        "Run a probe over a grid of settings, the runs side by side.",
    ),
    "optimise": (
        "sonde.cli.optimise:app",
        "Make templates out of training facts, to ask with.",
    ),
    "attribute": (
        "sonde.cli.attribute:attribute",
        "Show which words of a prompt an answer comes from.",
    ),
    "lab": (
        "sonde.cli.lab:app",
        "Do the probes tell the truth? Ask models taught invented facts.",
    ),
}
"""In order of use, where the command of each verb is and the first line of its help text.

The lines stand here too, so that the list is written without importing any verb.
"""

FORMER = {"analyse": "compare"}
"""What verbs were called before; no list has these names."""


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
    module, attribute = VERBS[name][0].split(":")
    return getattr(import_module(module), attribute)


app = group(
    "What does this language model actually know, and how far can you trust it?",
    VERBS,
    _find,
    flags=options,
    former=FORMER,
    summaries={name: line for name, (_, line) in VERBS.items()},
    epilog="Start with: sonde demo. Exit codes are listed in docs/exit-codes.md.",
)
