"""All that golden values need of sonde's inner modules, because users have no function for it.

A refactoring that moves these changes this file and nothing else of these tests.
"""

from __future__ import annotations

from pathlib import Path

from sonde.cli.lab import SHIPPED, reported
from sonde.cli.main import main
from sonde.lab.evaluation.validating import Order, validate
from sonde.lab.report.report import lab_report
from sonde.reports.legacy import to_report
from sonde.reports.model import Report
from tests.lab import trials

__all__ = ["SHIPPED", "Report", "command", "lab", "made_up_lab", "to_report"]


def command(words: list[str]) -> int:
    """Run the command line; its exit code."""
    return main(words)


def lab(models: list[Path], out: Path, estimators: tuple[str, ...], limit: int) -> Report:
    """The report of `sonde lab validate`."""
    order = Order(names=estimators, limit=limit, device="cpu")
    return to_report(reported(validate(models, out, order)))


def made_up_lab(names: tuple[str, ...]) -> Report:
    """The lab's report on made-up trials: these estimators, two worlds, a model's checkpoints."""
    study = trials.study(("skew",), 2, 12, names)
    checkpoints = [
        trials.likely("plain-1", "masked", facts=12, step=s, names=names) for s in (100, 500)
    ]
    return to_report(lab_report(study, checkpoints))
