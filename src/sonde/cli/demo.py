"""`sonde demo`: the whole line once, on what comes with sonde."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sonde.cli.console import training
from sonde.cli.lab import shipped_models
from sonde.cli.options import (
    AskOptions,
    FactOptions,
    LoadOptions,
    RunOptions,
    SelectOptions,
    option,
    verb,
)
from sonde.cli.report import show_report
from sonde.cli.run import BesideOptions, run_probe
from sonde.lab.evaluation.validating import Order, validate
from sonde.lab.report.report import brief
from sonde.runs.run import find_probe

LIMIT = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """How much is asked, and where it is kept."""

    out: Path = option("Where to keep the run.", Path("runs/demo"), "--out", "-o")
    limit: int = option("Facts asked of SmolLM2 per relation; more take longer.", LIMIT)


@verb
def demo(wanted: DemoOptions) -> None:
    """Probe SmolLM2-135M, a real language model, on the bundled facts.

    Then a small model whose knowledge is known, to see how far the probe is right.

    Example: sonde demo --limit 30 -o runs/longer
    """
    asked = RunOptions(
        ask=AskOptions(model="smollm2", facts=FactOptions()),
        out=wanted.out,
        select=SelectOptions(limit=wanted.limit),
        load=LoadOptions(),
    )
    run_probe(find_probe("lama")(), asked, BesideOptions())
    show_known(wanted.out / "lab")


def show_known(out: Path) -> None:
    """Put the same probe to the masked model that comes with sonde, and show it with the truth."""
    masked = next(path for path in shipped_models() if path.name == "masked")
    [trial] = validate([masked], out, Order(names=("lama",)), training).trials
    if trial.verdicts:  # else a warning has said why not
        show_report(brief(trial, beside="SmolLM2"), {}, [f"folder: {out}"])
