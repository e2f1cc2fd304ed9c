"""`sonde demo`: the whole line once, on what comes with sonde."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sonde.cli.console import training
from sonde.cli.lab_validate import shipped_models
from sonde.cli.run import run_probe
from sonde.cli.show import show_report
from sonde.runs.run import find_probe

LIMIT = 12


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to keep the run.")] = Path(
        "runs/demo"
    ),
    limit: Annotated[
        int, typer.Option(help="Facts asked of SmolLM2 per relation; more take longer.")
    ] = LIMIT,
) -> None:
    """Probe SmolLM2-135M, a real language model, on the bundled facts.

    Then a small model whose knowledge is known, to see how far the probe is right.

    Example: sonde demo --limit 30 -o runs/longer
    """
    run_probe(find_probe("lama"), {}, model="smollm2", data="atlas", out=out, limit=limit)
    show_known(out / "lab")


def show_known(out: Path) -> None:
    """Put the same probe to the masked model that comes with sonde, and show it with the truth."""
    from sonde.lab.evaluation.validating import Order, validate
    from sonde.lab.report.brief import brief

    masked = next(path for path in shipped_models() if path.name == "masked")
    [trial] = validate([masked], out, Order(names=("lama",)), training).trials
    if trial.verdicts:  # else a warning has said why not
        show_report(
            brief(trial, "lama", beside="SmolLM2"),
            {},
            html=None,
            figures=None,
            format="svg",
            as_json=False,
            lines=[f"folder: {out}"],
        )
