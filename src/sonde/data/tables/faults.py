"""What is wrong with a table or with sentences: gathered, and told all at once."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sonde.core.errors import DataError
from sonde.core.facts import ANSWER_SLOT, SUBJECT_SLOT

SHOWN = 10
"""How many faults are told one by one; the rest is counted."""


class Faults:
    """Faults of one source, each told once; `advice` is what to do about them."""

    def __init__(self, source: str, advice: str) -> None:
        self.source, self.advice = source, advice
        self._texts: dict[str, None] = {}

    def add(self, fault: DataError | str, where: str = "") -> None:
        """Remember a fault, and where it stands."""
        text = f"{where}: {fault}" if where else str(fault)
        self._texts[text.removeprefix(f"{self.source}, ")] = None

    def refuse(self) -> None:
        """End here, if there was any fault."""
        if self._texts:
            raise DataError(self._told(sorted(self._texts, key=_line)))

    def _told(self, texts: Sequence[str]) -> str:
        if len(texts) == 1:
            [text] = texts
            named = text if text.startswith(self.source) else f"{self.source}: {text}"
            return f"{named}. {self.advice}"
        lines = [f"{self.source} has {len(texts):,} faults:", *(f"  {t}" for t in texts[:SHOWN])]
        if len(texts) > SHOWN:
            lines.append(f"  … and {len(texts) - SHOWN:,} more")
        return "\n".join([*lines, self.advice])


def _line(text: str) -> int:
    """The line or row that a fault names first; 0 for none."""
    found = re.search(r"(?:line|row) (\d+)", text)
    return int(found[1]) if found else 0


def slot_faults(text: str) -> list[str]:
    """What is wrong with the slots of a sentence.

    >>> slot_faults("The capital of [X] is [Y]."), len(slot_faults("[X] and [X]"))
    ([], 2)
    """
    faults = []
    for slot, role in ((SUBJECT_SLOT, "subject"), (ANSWER_SLOT, "answer")):
        if not text.count(slot):
            faults.append(f"{text!r} has no {slot}; write {slot} where the {role} belongs")
        elif text.count(slot) > 1:
            faults.append(f"{text!r} has {text.count(slot)} {slot}; keep one")
    return faults
