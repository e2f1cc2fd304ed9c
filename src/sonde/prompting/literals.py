"""Numbers and dates that were written out, compared by what they mean. Knows texts alone.

A date is as exact as it is written: a year, a month of a year, or a day. It is the one that a name
gives if it agrees with all that the name says: `12 March 1950` is right where the name is `1950` or
`1950-03-12`, but `1950` is not the day `12 March 1950`. Months are English. Days in digits are read
with the year first; `03/12/1950` has two meanings and is no date.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from functools import lru_cache

MONTHS = "january february march april may june july august september october november december"
NUMBERED = {name: number for number, name in enumerate(MONTHS.split(), 1)}
NUMBERED |= {name[:3]: number for name, number in NUMBERED.items()} | {"sept": 9}
MONTH = f"(?P<month>{'|'.join(sorted(NUMBERED, key=len, reverse=True))})\\.?"
DAY, YEAR = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?", r"(?P<year>\d{3,4})"
DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        YEAR,
        rf"{MONTH},? (?:of )?{YEAR}",
        rf"(?:the )?{DAY} (?:of )?{MONTH},? {YEAR}",
        rf"{MONTH} {DAY},? {YEAR}",
        r"(?P<year>\d{4})-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2}))?",
    )
)
NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:[, '\u00a0\u2009\u202f]\d{3})+|\d+)(?:\.\d+)?")

Date = tuple[int, ...]
"""A year, then a month and a day where they are told."""


@lru_cache(maxsize=1 << 16)
def dated(text: str) -> Date | None:
    """The date that a text is, if it is nothing else.

    >>> dated("12 March 1950"), dated("March 12th, 1950"), dated("1950-03"), dated("in 1950")
    ((1950, 3, 12), (1950, 3, 12), (1950, 3), None)
    """
    words = " ".join(text.split()).rstrip(".")
    for pattern in DATES:
        if found := pattern.fullmatch(words):
            parts = found.groupdict()
            month = parts.get("month") or "0"
            told = (int(parts["year"]), NUMBERED.get(month.lower()) or int(month))
            return _sound(*told, int(parts.get("day") or 0))
    return None


def _sound(year: int, month: int, day: int) -> Date | None:
    """The parts that are told; none where there is no such day."""
    try:
        date(year, month or 1, day or 1)
    except ValueError:
        return None
    return tuple(part for part in (year, month, day) if part)


@lru_cache(maxsize=1 << 16)
def numeric(text: str) -> Decimal | None:
    """The number that a text is, if it is nothing else; thousands may be parted.

    >>> numeric("1,000"), numeric("1000.0") == numeric("1 000"), numeric("−3"), numeric("3 km")
    (Decimal('1000'), True, Decimal('-3'), None)
    """
    plain = text.strip().replace("\u2212", "-").rstrip(".")
    return Decimal(re.sub(r"[^\d.+-]", "", plain)) if NUMBER.fullmatch(plain) else None


def same_literal(answer: str, name: str) -> bool | None:
    """Whether an answer is the number or the date that a name is; None where one is neither.

    >>> same_literal("1,000", "1000"), same_literal("12 March 1950", "1950"), same_literal("x", "1")
    (True, True, None)
    >>> same_literal("1950", "12 March 1950"), same_literal("-5", "5")
    (False, False)
    """
    wanted, told = dated(name), dated(answer)
    if wanted and told and told[: len(wanted)] == wanted:
        return True
    number, given = numeric(name), numeric(answer)
    if number is not None and given is not None:
        return number == given
    literal = (wanted or number is not None) and (told or given is not None)
    return False if literal else None
