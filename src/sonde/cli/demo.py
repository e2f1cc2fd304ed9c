"""`sonde demo`: the whole line once, on what comes with sonde."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sonde.cli.run import run_probe
from sonde.runner import find_probe

LIMIT = 12


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to keep the run.")] = Path(
        "runs/demo"
    ),
    limit: Annotated[int, typer.Option(help="Facts asked per relation; more take longer.")] = LIMIT,
) -> None:
    """Probe SmolLM2-135M, a real language model, on the bundled facts.

    Example: sonde demo --limit 30 -o runs/longer
    """
    run_probe(find_probe("lama"), {}, model="smollm2", data="atlas", out=out, limit=limit)
