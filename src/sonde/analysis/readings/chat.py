"""What to try where a model has a chat template, was not asked by it, and answers nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sonde.core.abilities import TEMPLATE
from sonde.core.reports import Report
from sonde.reporting.build.written import SILENT

ADVICE = "The model has a chat template: ask it in turns, with --chat always."


def advise_chat(report: Report, model: Mapping[str, Any]) -> Report:
    """A report with that advice in its finding about empty answers; `model`: the manifest's."""
    if model.get("chat") or not model["details"].get(TEMPLATE):
        return report
    told = (f"{each} {ADVICE}" if each.startswith(SILENT) else each for each in report.findings)
    return replace(report, findings=tuple(told))
