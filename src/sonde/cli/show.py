"""`sonde show RUN FACT`: one fact of a run in depth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sonde.cli.console import print_json, waiting
from sonde.cli.options import argument, option, verb
from sonde.core.plain import plain


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowOptions:
    """Which fact is shown of which run."""

    folder: Path = argument("The folder of a finished run.")
    fact: str = argument("The id of a fact, or the name of its subject.")
    html: Path | None = option("Write the fact as an HTML page to this file.", None)
    as_json: bool = option("Print the prompts and answers as JSON.", False, "--json")


@verb
def show(wanted: ShowOptions) -> None:
    """Print the prompts of one fact with their top answers.

    Example: sonde show runs/demo Iceland
    """
    from sonde.cli.report import FileOptions, print_report, write_files
    from sonde.evaluation.layout import Exhibit
    from sonde.reports.model import text
    from sonde.runs.run import open_run

    run = open_run(wanted.folder)
    with waiting("reading the answers"):
        report = run.show(wanted.fact)
    files = FileOptions(html=wanted.html, all_tables=True)
    if not wanted.as_json:
        print_report(report, [f"run: {run.path}"], files)
        return
    write_files(report, files)
    items = [item for item in report.items() if isinstance(item, Exhibit)]
    prompts = [{"prompt": item.title, "answers": item.frame.to_dicts()} for item in items]
    print_json({"title": text(report.title), "prompts": plain(prompts)})
