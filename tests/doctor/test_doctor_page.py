"""The page says what the program checks, and how far numbers may differ."""

from __future__ import annotations

from sonde.doctor import numbers, texts
from sonde.doctor.agreement import AGAIN, CHOOSING, KINDS, TOLERANCES
from sonde.doctor.diagnose import PATH
from tests.docs.pages import DOCS, first_cells, rows

PAGE = DOCS / "doctor.md"


def test_every_check_stands_in_the_page() -> None:
    compared = [
        [f"{name} vs naive", *([f"{name}, choices"] if kind in CHOOSING else [])]
        for kind, (_, name) in KINDS.items()
    ]
    known = [
        texts.OPENING,
        texts.BOUNDARY,
        texts.LENGTH,
        texts.KNOWN,
        texts.UNKNOWN,
        texts.ANSWERED,
        numbers.WEIGHTS,
        numbers.FINITE,
        numbers.SUMS,
        numbers.VARIED,
        numbers.ALIGNED,
        numbers.LIKELY,
        numbers.BETTER_OPENED,
        AGAIN,
        PATH,
        *(check for checks in compared for check in checks),
    ]
    assert first_cells(PAGE, "Checks") == known


def test_the_tolerances_stand_in_the_page() -> None:
    shown = {row[0].strip("`"): float(row[1].rstrip("| ")) for row in rows(PAGE, "Tolerance")}
    assert shown == dict(TOLERANCES)
