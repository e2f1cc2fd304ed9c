"""A report as plain data.

values      estimates with their n, and counts
intervals   the ends of their intervals, apart, so that these can be compared otherwise

What depends on the clock is left out. Sentences, tables and figures show the same numbers.
"""

from __future__ import annotations

import re
from typing import Any

from .inside import Report

Plain = Any
"""What JSON can hold."""

Document = dict[str, Plain]
"""Plain data by section."""

CLOCK = re.compile(r"seconds|a second$")


def plain_report(report: Report) -> Document:
    """The numbers of a report."""
    numbers = report.to_json()
    estimates = {n: e for n, e in numbers["estimates"].items() if not CLOCK.search(n)}
    return {
        "values": {
            "counts": numbers["counts"],
            "estimates": {n: [e.get("value"), e.get("n", 0)] for n, e in estimates.items()},
        },
        "intervals": {
            name: [e["low"], e["high"]]
            for name, e in estimates.items()
            if e.get("low") is not None and e.get("high") is not None
        },
    }
