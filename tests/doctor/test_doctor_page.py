"""The page says what the program checks, and how far numbers may differ."""

from __future__ import annotations

from sonde.doctor.agreement import CHOOSING, KINDS, TOLERANCES
from sonde.doctor.diagnose import CHECKS
from tests.docs.pages import DOCS, first_cells, rows

PAGE = DOCS / "check-a-model.md"
LOADED = ("tokens at once", "quantised", "placement", "adapter", "chat template")
"""What is told of models that are loaded so, or have one."""


def test_every_check_stands_in_the_page() -> None:
    compared = [
        [f"{name} vs naive", *([f"{name}, choices"] if kind in CHOOSING else [])]
        for kind, (_, name) in KINDS.items()
    ]
    known = [
        *(check.name for check in CHECKS),
        *LOADED,
        *(name for names in compared for name in names),
    ]
    assert first_cells(PAGE, "Checks") == known


def test_the_tolerances_stand_in_the_page() -> None:
    shown = {row[0].strip("`"): float(row[1].rstrip("| ")) for row in rows(PAGE, "Tolerance")}
    assert shown == dict(TOLERANCES)
