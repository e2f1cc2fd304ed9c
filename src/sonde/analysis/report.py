"""The report of several runs: side by side, and of MONITOR where all of them measured it."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.analysis.comparison.report import comparison_report
from sonde.analysis.reliability.report import with_reliability
from sonde.analysis.runs import Compared, Reading
from sonde.core.reports import Report


def analyse(runs: Sequence[Compared], reading: Reading | None = None) -> Report:
    """Everything that can be said about runs of one dataset on what all of them were asked."""
    reading = reading or Reading()
    return with_reliability(comparison_report(runs, reading), runs, reading)
