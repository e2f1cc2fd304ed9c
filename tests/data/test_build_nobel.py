"""Building the Nobel dataset from a table, and the bundled one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import sonde
from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Fact
from sonde.data.builders.nobel import build
from sonde.data.check import problems

HEAD = "full_name,born,gender,year,category\n"
ROWS = """\
Marie Curie,1867-11-07,female,1911,Chemistry
Marie Curie,1867-11-07,female,1903,Physics
Niels Bohr,1885-10-07,male,1922,Physics
Red Cross,NULL,org,1917,Peace
Nobody Known,,male,1950,Peace
Two Dates,1900-01-01,male,1950,Peace
Two Dates,1901-01-01,male,1960,Peace
Born Late,1950-01-01,male,1950,Peace
Toni Morrison,1931-02-18,female,1993,Literature
"""


def table(folder: Path, text: str) -> Path:
    path = folder / "laureates.csv"
    path.write_text(text, encoding="utf-8")
    return path


def facts_of(path: Path) -> dict[str, Fact]:
    return {f.subject.name: f for f in build(path).dataset.facts("birth-year")}


def test_every_row_is_a_laureate_or_counted(tmp_path: Path) -> None:
    built = build(table(tmp_path, HEAD + ROWS))
    assert list(built.left_out.values()) == [1, 1, 1, 2, 1]
    assert built.read == sum(built.left_out.values()) + built.laureates == 9


def test_a_laureate_stands_once_with_every_prize(tmp_path: Path) -> None:
    facts = facts_of(table(tmp_path, HEAD + ROWS))
    assert set(facts) == {"Marie Curie", "Niels Bohr", "Toni Morrison"}
    curie = facts["Marie Curie"]
    assert [entity.names for entity in curie.objects] == [("1867",)]
    assert curie.details == {
        "award_year": "1903, 1911",
        "field": "Physics, Chemistry",
        "gender": "female",
    }


def test_the_order_of_rows_changes_nothing(tmp_path: Path) -> None:
    there = build(table(tmp_path, HEAD + ROWS)).dataset
    backwards = "\n".join(reversed(ROWS.splitlines()))
    back = build(table(tmp_path, HEAD + backwards)).dataset
    assert list(there.facts("birth-year")) == list(back.facts("birth-year"))


def test_at_most_half_of_the_laureates_are_examples(tmp_path: Path) -> None:
    path = table(tmp_path, HEAD + ROWS)
    assert (build(path).train, build(path).test) == (1, 2)
    assert build(path, train=0).test == 3
    assert build(path, limit=2).test == 1
    with pytest.raises(UsageError):
        build(path, limit=1)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (HEAD, "has no row"),
        ("", "has no row"),
        (
            "full_name,gender\nA,male\n",
            r"lacks columns \(born: .*; year: .*it has full_name, gender",
        ),
        (HEAD + "A,1900-01-01,male,soon,Peace\n", "line 2: expected a name and the year"),
        (HEAD + "A,1900-01-01,male,1950,Peace\n", "1 laureates with a year of birth; 2 needed"),
    ],
)
def test_a_table_that_will_not_do_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        build(table(tmp_path, text))


def test_the_bundled_laureates_are_plausible() -> None:
    nobel = sonde.dataset("nobel")
    facts = list(nobel.facts("birth-year"))
    assert len(facts) >= 300
    assert len({fact.subject.name for fact in facts}) == len(facts)
    assert Counter(fact.split for fact in facts)["train"] >= 250  # a sequence of 200 and spares
    for fact in facts:
        (born,) = (int(entity.name) for entity in fact.objects)
        for year in fact.details["award_year"].split(", "):
            assert 17 <= int(year) - born <= 100, fact.id
            assert 1901 <= int(year) <= 2024
        assert set(fact.details["field"].split(", ")) <= FIELDS
        assert fact.details["gender"] in ("female", "male")
    assert not list(problems(nobel))


FIELDS = {"Physics", "Chemistry", "Medicine", "Literature", "Peace", "Economics"}


def test_well_known_laureates_have_their_years() -> None:
    facts = {f.subject.name: f for f in sonde.dataset("nobel").facts("birth-year")}
    for name, born, award in (
        ("Albert Einstein", "1879", "1921"),
        ("Marie Curie", "1867", "1903, 1911"),
        ("Nelson Mandela", "1918", "1993"),
        ("Toni Morrison", "1931", "1993"),
    ):
        assert (facts[name].objects[0].name, facts[name].details["award_year"]) == (born, award)


@pytest.mark.shared
def test_the_real_table_adds_up(shared: Path) -> None:
    built = build(shared / "data" / "nobel" / "nobel.csv")
    assert (built.read, built.laureates) == (1012, 976)
    assert list(built.left_out.values()) == [31, 0, 0, 0, 5]
