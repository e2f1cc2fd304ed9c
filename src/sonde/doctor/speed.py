"""Check that a model is asked in the quickest way. Knows what it says of itself, and no clock."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.doctor.findings import Case, Finding

PATH = "fast path"


def path(cases: Sequence[Case]) -> Finding:
    """Which way texts go through the model; a warning where that is not the quickest one."""
    limits = next((case.shown.limits for case in cases if case.shown), None)
    if limits is None or not limits.path:
        return Finding(check=PATH, verdict="not checked", found="the model does not say")
    if not limits.slow:
        return Finding(check=PATH, verdict="ok", found=limits.path)
    return Finding(
        check=PATH,
        verdict="warning",
        found=limits.slow,
        advice="Answers are right all the same; 'sonde plan' says how long a run will take",
    )
