"""Numbers and dates are compared by what they mean, as exactly as the name is."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sonde.prompting.matching import is_same_number_or_date, parse_date, parse_number

DAYS = st.dates(min_value=date(100, 1, 1), max_value=date(9998, 12, 31))


@given(DAYS)
@example(date(2000, 2, 29))  # which the next year has not
def test_every_way_to_write_a_day_is_that_day(day: date) -> None:
    month = day.strftime("%B")
    ways = (
        f"{day.day} {month} {day.year}",
        f"{month} {day.day}, {day.year}",
        f"{day.day}th of {month.lower()} {day.year}",
        f"{day.day} {month[:3]}. {day.year}",
    )
    for way in ways:
        assert parse_date(way) == (day.year, day.month, day.day), way
        assert is_same_number_or_date(way, str(day.year)) and is_same_number_or_date(
            way, f"{month} {day.year}"
        )
        assert is_same_number_or_date(str(day.year), way) is False
        assert is_same_number_or_date(way, f"1 {month} {day.year + 1}") is False


@given(st.integers(0, 10**9), st.sampled_from([",", " ", "\u202f"]))
def test_thousands_may_be_parted(number: int, mark: str) -> None:
    parted = f"{number:,}".replace(",", mark)
    assert parse_number(parted) == number == parse_number(f"{number}.0")
    assert is_same_number_or_date(parted, str(number)) is True
    assert is_same_number_or_date(parted, str(number + 1)) is False
    assert is_same_number_or_date(f"-{number + 1}", str(number + 1)) is False


@pytest.mark.parametrize("text", ["", "x", "3 km", "03/12/1950", "1950s", "31 June 1950", "12,34"])
def test_other_texts_are_neither(text: str) -> None:
    assert parse_date(text) is None and parse_number(text) is None
    assert (
        is_same_number_or_date(text, "1950") is None
        and is_same_number_or_date("1950", text) is None
    )
