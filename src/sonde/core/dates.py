"""Dates of facts: texts YYYY, YYYY-MM or YYYY-MM-DD, which stand in order as texts do."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date

FORM = "YYYY, YYYY-MM or YYYY-MM-DD"


def is_date(text: str) -> bool:
    """Whether a text is a year, a month or a day that there is.

    >>> is_date("2015"), is_date("2016-02-29"), is_date("2015-02-29"), is_date("May 2015")
    (True, True, False, False)
    """
    if not re.fullmatch(r"\d{4}(-\d\d){0,2}", text):
        return False
    try:
        date.fromisoformat(text + "-01-01"[len(text) - 4 :] if len(text) < 10 else text)
    except ValueError:
        return False
    return True


def in_order(first: str, last: str) -> bool:
    """Whether one date does not come after another; an open end is never too early or late.

    >>> in_order("2015", "2015-03"), in_order("2015-04", "2015-03"), in_order("2015", "")
    (True, False, True)
    """
    size = min(len(first), len(last))
    return first[:size] <= last[:size]


def holds(date: str, valid_from: str, valid_to: str) -> bool:
    """Whether a date lies within two others, each counted whole.

    >>> holds("2015", "2015-03", ""), holds("2016", "2012", "2015"), holds("2012-05", "", "2012")
    (True, False, True)
    """
    return in_order(valid_from, date) and in_order(date, valid_to)


def adjacent(earlier: str, later: str) -> bool:
    """Whether no day lies between the end of one date and the begin of another.

    >>> adjacent("2010", "2011"), adjacent("2010", "2018"), adjacent("2019-06", "2019-07")
    (True, False, True)
    """
    year, month, day = (*map(int, earlier.split("-")), 0, 0)[:3]
    end = date(year, month or 12, day or monthrange(year, month or 12)[1])
    start = date.fromisoformat(later + "-01-01"[len(later) - 4 :] if len(later) < 10 else later)
    return (start - end).days <= 1
