"""Build the Nobel dataset from a table of laureates: laureate → birth year.

The award year, the field and the gender are kept as details. Organisations and rows without a
date of birth are left out and counted; people with several prizes stand once. Knows no terminal.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Card, Dataset, Entity, Fact, Relation, Source, Style, Template
from sonde.core.fingerprints import draw_key
from sonde.data.lines import Row
from sonde.data.tables.files import read_table

if TYPE_CHECKING:
    from polars import DataFrame

RELATION = "birth-year"

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "name": ("full_name", "fullName", "Full Name", "name", "Name", "laureate"),
    "born": ("born", "birth_date", "Birth Date", "birthDate", "birth_year", "Birth Year"),
    "year": ("year", "Year", "award_year", "Award Year", "awardYear"),
    "field": ("category", "Category", "field", "Field"),
    "gender": ("gender", "Gender", "sex", "Sex"),
}
REQUIRED = ("name", "born", "year")
ORGANISED = ("org", "organisation", "organization")
ABSENT = ("", "null", "na", "nan", "none", "0000-00-00")

LEFT_OUT = ORGANISATIONS, DATELESS, IMPLAUSIBLE, CONTRADICTING, FURTHER = (
    "organisations",
    "without date of birth",
    "implausible years",
    "contradicting years",
    "further prizes",
)
"""Why a row brings no laureate."""

AGES = range(10, 111)
"""How old a laureate can be; a row that says otherwise is wrong."""

TEXTS: tuple[tuple[str, Source, Style, int], ...] = (
    ("[X] was born in the year [Y].", "manual", "statement", 1),
    ("The year of birth of [X] is [Y].", "manual", "statement", 2),
    ("[X] came into the world in [Y].", "manual", "statement", 3),
    ("In which year was [X] born? [Y].", "manual", "question", 4),
    ("The life of [X] began in [Y].", "paraphrase", "statement", 1),
    ("The birth of [X] fell in the year [Y].", "paraphrase", "statement", 2),
    ("What is the birth year of [X]? [Y].", "paraphrase", "question", 4),
)
TEMPLATES = tuple(
    Template(
        id=f"{RELATION}-{number}",
        text=text,
        source=source,
        style=style,
        group=f"{RELATION}-{group}",
    )
    for number, (text, source, style, group) in enumerate(TEXTS, 1)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """The dataset, and what became of the table's rows.

    Those `left_out`, by reason, and the laureates add up to the rows `read`.
    """

    dataset: Dataset
    read: int
    left_out: Mapping[str, int]
    laureates: int
    train: int
    test: int


def build(
    table: Path, *, train: int = 250, limit: int | None = None, seed: int = 0, name: str = "nobel"
) -> Built:
    """Read a table of laureates; `train` of them, half at most, are for examples.

    The rest is for tests. `limit` keeps that many laureates, drawn by seed.
    """
    if train < 0 or (limit is not None and limit < 2):
        raise UsageError("--train must be at least 0 and --limit at least 2")
    prizes = read_prizes(table)
    people, left_out = _people(prizes)
    if people.height < 2:
        raise DataError(f"{table}: {people.height} laureates with a year of birth; 2 needed")
    drawn = sorted(people.rows(), key=lambda person: (draw_key(seed, person[0]), person[0]))[:limit]
    size = min(train, len(drawn) // 2)
    facts = tuple(_fact(*person, train=i < size) for i, person in enumerate(drawn))
    dataset = Dataset(
        card=Card(
            name=name,
            sources=(table.name,),
            description=f"Nobel laureates and the year of their birth: {len(facts)} people; award "
            "year, field and gender as details.",
        ),
        relations=(Relation(id=RELATION, label="year of birth", kind="N-1", templates=TEMPLATES),),
        read=lambda id: facts,
        fingerprint="",
    )
    return Built(
        dataset=dataset,
        read=prizes.height,
        left_out=left_out,
        laureates=people.height,
        train=size,
        test=len(facts) - size,
    )


def read_prizes(path: Path) -> DataFrame:
    """The roles of `COLUMNS` as texts, a row for each prize, and why it is left out, if it is."""
    from polars import DataFrame, String

    rows = list(read_table(path))
    if not rows:
        raise DataError(f"{path} has no row; give a table of laureates, a prize a row")
    columns = _columns(rows[0], path)
    prizes = [
        _prize(row, {role: _cell(row, name) for role, name in columns.items()}) for row in rows
    ]
    return DataFrame(prizes, dict.fromkeys((*COLUMNS, "why"), String))


def _columns(row: Row, path: Path) -> dict[str, str]:
    """Which column of the table holds what."""
    columns = {
        role: next(name for name in names if name in row.values)
        for role, names in COLUMNS.items()
        if any(name in row.values for name in names)
    }
    if missing := [role for role in REQUIRED if role not in columns]:
        wanted = "; ".join(f"{role}: {' or '.join(COLUMNS[role])}" for role in missing)
        there = ", ".join(str(name) for name in row.values)
        raise DataError(f"{path} lacks columns ({wanted}); it has {there}")
    return columns


def _cell(row: Row, name: str) -> str:
    value = row.values.get(name)
    text = "" if value is None else " ".join(str(value).split())
    return "" if text.casefold() in ABSENT else text


def _year(text: str) -> str:
    year = re.match(r"\d{4}(?!\d)", text)
    return year[0] if year and year[0] != "0000" else ""


def _prize(row: Row, cells: Mapping[str, str]) -> dict[str, str]:
    """The cells of a row, by role, its years as four digits."""
    born, award = _year(cells["born"]), _year(cells["year"])
    why = ""
    if cells.get("gender", "").casefold() in ORGANISED:
        why = ORGANISATIONS
    elif not born:
        why = DATELESS
    elif not cells["name"] or not award:
        raise row.fault("expected a name and the year of the prize", cells["name"] or cells["year"])
    elif int(award) - int(born) not in AGES:
        why = IMPLAUSIBLE
    return {**dict.fromkeys(COLUMNS, ""), **cells, "born": born, "year": award, "why": why}


def _people(prizes: DataFrame) -> tuple[DataFrame, dict[str, int]]:
    """Every person once, with name, birth year, years and fields of all prizes, and gender.

    Beside them the number of rows that bring no laureate, by reason.
    """
    from polars import col, len

    people = (
        prizes.filter(col("why") == "")
        .sort("year", "field", "gender")
        .group_by("name")
        .agg(
            col("born").unique(),
            col("year").unique(maintain_order=True).str.join(", "),
            col("field").filter(col("field") != "").unique(maintain_order=True).str.join(", "),
            col("gender").first(),
            rows=len(),
        )
    )
    clear = people.filter(col("born").list.len() == 1).with_columns(col("born").list.first())
    rows = int(clear["rows"].sum())
    counts = Counter(prizes["why"])
    counts[CONTRADICTING] = int(people["rows"].sum()) - rows
    counts[FURTHER] = rows - clear.height
    return clear.drop("rows"), {why: counts[why] for why in LEFT_OUT}


def _fact(name: str, born: str, years: str, fields: str, gender: str, *, train: bool) -> Fact:
    details = {"award_year": years, "field": fields, "gender": gender}
    return Fact(
        id=f"{RELATION}:{name}",
        relation=RELATION,
        subject=Entity.named(name),
        objects=(Entity.named(born),),
        split="train" if train else "test",
        details={key: value for key, value in details.items() if value},
    )
