"""`sonde report DIR`: recompute and show the report of a finished run; no model is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sonde.cli.show import show_run
from sonde.runner import open_run


def report(
    folder: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print every estimate with its stable name.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="Write the self-contained HTML report here.")
    ] = None,
) -> None:
    """Recompute a run's report from its stored answers.

    Example: sonde report runs/demo --json
    """
    show_run(open_run(folder), html=html, as_json=as_json)
