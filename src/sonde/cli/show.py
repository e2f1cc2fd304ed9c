"""`sonde show RUN FACT`: one fact of a run in depth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sonde.cli.console import waiting
from sonde.cli.options import JSON, PAGE, argument, option, verb


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowOptions:
    """Which fact is shown of which run."""

    folder: Path = argument("The folder of a finished run.")
    fact: str = argument("The id of a fact, or the name of its subject.")
    html: Path | None = option(PAGE, None)
    as_json: bool = option(JSON, False, "--json")


@verb
def show(wanted: ShowOptions) -> None:
    """Print the prompts of one fact with their top answers.

    Example: sonde show runs/demo Iceland
    """
    from sonde.cli.report import FileOptions, print_report
    from sonde.runs.run import open_run

    run = open_run(wanted.folder)
    with waiting("reading the answers"):
        report = run.show(wanted.fact)
    files = FileOptions(html=wanted.html, as_json=wanted.as_json, all_tables=True)
    print_report(report, [f"run: {run.path}"], files)
