"""Tables on pages: numbers of things in columns of their own, and rows packed small."""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sonde.core.reports import Cell, Column, Estimate, Table
from sonde.reporting.render.cells import brief, browsable_data, share, with_n
from sonde.reporting.render.html import packed, page

from .sample import PROVENANCE, lama

A, B, C = (Column(title=title, kind="percent") for title in "ABC")


def measured(n: int) -> Estimate:
    return Estimate(value=0.5, low=0.4, high=0.6, n=n)


def made(columns: tuple[Column, ...], *rows: tuple[Cell, ...]) -> Table:
    return with_n(Table(id="t", title="T", columns=columns, rows=rows))


def titles(table: Table) -> list[str]:
    return [column.title for column in table.columns]


def test_columns_that_rest_on_the_same_numbers_share_one_column_of_them() -> None:
    table = made((A, B), (measured(7), measured(7)), (measured(8), Estimate.not_measured()))
    assert titles(table) == ["A", "B", "n"]
    assert [row[2] for row in table.rows] == [7, 8]


def test_columns_that_rest_on_others_have_their_own_behind_them() -> None:
    table = made((A, B, C), (measured(7), measured(7), measured(90)))
    assert titles(table) == ["A", "B", "n", "C", "n"]
    assert [column.help.partition(": ")[2] for column in table.columns if column.title == "n"] == [
        "A, B",
        "C",
    ]
    assert table.rows[0][2] == 7 and table.rows[0][4] == 90


def test_numbers_behind_estimates_of_other_numbers_say_whose_they_are() -> None:
    table = made((A, B, C), (measured(7), measured(90), measured(7)))
    assert titles(table) == ["A", "B", "n of B", "C", "n"]
    assert table.rows[0][2] == 90 and table.rows[0][4] == 7


def test_numbers_that_a_column_shows_already_are_not_repeated() -> None:
    pairs = Column(title="pairs", kind="count")
    table = made((pairs, A, B), (7, measured(7), measured(90)))
    assert titles(table) == ["pairs", "A", "B", "n of B"]
    assert titles(made((pairs, A), (7, measured(7)))) == ["pairs", "A"]


def test_a_table_without_estimates_has_no_such_column() -> None:
    assert titles(made((A,), (0.5,), (None,))) == ["A"]
    assert titles(made((A,))) == ["A"]


def test_words_that_come_again_are_kept_once() -> None:
    columns = (Column(title="Relation"), Column(title="Subject"))
    rows = tuple((f"P{k % 3}", f"subject {k}") for k in range(30))
    data: Any = browsable_data(Table(id="t", title="T", columns=columns, rows=rows))
    first, second = data["columns"]
    assert [first["names"][code] for code in first["codes"]] == [row[0] for row in rows]
    assert second["values"] == [row[1] for row in rows] and data["count"] == 30


@given(st.floats(min_value=-1e6, max_value=1e6, allow_nan=False))
def test_a_shorter_number_is_told_as_the_whole_one_would_be(value: float) -> None:
    assert abs(brief(value) - value) <= 1e-5 * abs(value)
    if value in (0.0, 1.0) or not 0 < value < 1:
        return
    assert (share(brief(value)) in ("0.0%", "100.0%")) is False


def test_packed_data_is_letters_alone_and_reads_back_the_same() -> None:
    value = {"words": ["</script>", "\u2028", "é"], "numbers": [1.5, None]}
    found = re.fullmatch(r"<script [^>]*>([A-Za-z0-9+/=]*)</script>", packed(value))
    assert found is not None
    assert json.loads(zlib.decompress(base64.b64decode(found[1]))) == value


def test_fifty_thousand_facts_make_a_page_of_a_few_megabytes() -> None:
    assert len(page(lama(50_000), PROVENANCE)) < 4_000_000
