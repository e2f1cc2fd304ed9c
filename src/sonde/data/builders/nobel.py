"""Build the Nobel dataset from a table of laureates: laureate → birth year.

The award year, the field and the gender are kept as details. Organisations and rows without a
date of birth are left out and counted; people with several prizes stand once. Knows no terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Card, Dataset, Entity, Fact, Relation, Source, Style, Template
from sonde.core.fingerprints import draw_key
from sonde.data.lines import Row, read_table

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Laureate:
    """A person with the year of birth and every prize."""

    name: str
    born: str
    gender: str
    prizes: tuple[tuple[str, str], ...]

    def details(self) -> dict[str, str]:
        """What is kept beside the birth year; years and fields of several prizes in order."""
        years = ", ".join(dict.fromkeys(year for year, _ in self.prizes))
        fields = ", ".join(dict.fromkeys(field for _, field in self.prizes if field))
        found = {"award_year": years, "field": fields, "gender": self.gender}
        return {key: value for key, value in found.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What became of a table's rows: `left_out` by reason and laureates add up to `read`."""

    read: int
    left_out: Mapping[str, int]
    laureates: tuple[Laureate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """The dataset, and what became of the rows."""

    dataset: Dataset
    rows: Rows
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
    rows = read_laureates(read_table(table), table)
    if len(rows.laureates) < 2:
        raise DataError(f"{table}: {len(rows.laureates)} laureates with a year of birth; 2 needed")
    chosen = sorted(rows.laureates, key=lambda p: (draw_key(seed, p.name), p.name))[:limit]
    size = min(train, len(chosen) // 2)
    facts = tuple(_facts(chosen, size))
    dataset = Dataset(
        card=Card(
            name=name,
            sources=(table.name,),
            description=f"Nobel laureates and the year of their birth: {len(facts)} people; award "
            "year, field and gender as details.",
        ),
        relations=(
            Relation(id=RELATION, label="year of birth", kind="N-1", templates=tuple(_templates())),
        ),
        read=lambda id: facts,
        fingerprint="",
    )
    return Built(dataset=dataset, rows=rows, train=size, test=len(facts) - size)


def read_laureates(table: Iterable[Row], path: Path) -> Rows:
    """Every person of a table, once, with what was left out."""
    counts = dict.fromkeys(LEFT_OUT, 0)
    people: dict[str, list[Laureate]] = {}
    columns: dict[str, str] = {}
    read = 0
    for row in table:
        read += 1
        columns = columns or _columns(row, path)
        prize = _prize(row, columns)
        if isinstance(prize, str):
            counts[prize] += 1
        else:
            people.setdefault(prize.name, []).append(prize)
    if not read:
        raise DataError(f"{path} has no row; give a table of laureates, a prize a row")
    clear = [prizes for prizes in people.values() if len({p.born for p in prizes}) == 1]
    persons = sum(map(len, clear))
    counts[CONTRADICTING] = sum(map(len, people.values())) - persons
    counts[FURTHER] = persons - len(clear)
    return Rows(read=read, left_out=counts, laureates=tuple(map(_united, clear)))


def _columns(row: Row, path: Path) -> dict[str, str]:
    """Which column of the table holds what."""
    found = {
        role: next(name for name in names if name in row.values)
        for role, names in COLUMNS.items()
        if any(name in row.values for name in names)
    }
    if missing := [role for role in REQUIRED if role not in found]:
        wanted = "; ".join(f"{role}: {' or '.join(COLUMNS[role])}" for role in missing)
        there = ", ".join(str(name) for name in row.values)
        raise DataError(f"{path} lacks columns ({wanted}); it has {there}")
    return found


def _prize(row: Row, columns: Mapping[str, str]) -> Laureate | str:
    """A row's laureate with one prize, or why it is left out."""
    cells = {role: _cell(row, name) for role, name in columns.items()}
    if cells.get("gender", "").casefold() in ORGANISED:
        return ORGANISATIONS
    born, award = _year(cells["born"]), _year(cells["year"])
    if not born:
        return DATELESS
    if not cells["name"] or not award:
        raise row.fault("expected a name and the year of the prize", cells["name"] or cells["year"])
    if int(award) - int(born) not in AGES:
        return IMPLAUSIBLE
    return Laureate(
        name=cells["name"],
        born=born,
        gender=cells.get("gender", ""),
        prizes=((award, cells.get("field", "")),),
    )


def _united(prizes: Sequence[Laureate]) -> Laureate:
    first = min(prizes, key=lambda p: (p.prizes, p.gender))
    return replace(first, prizes=tuple(sorted(prize for p in prizes for prize in p.prizes)))


def _cell(row: Row, name: str) -> str:
    value = row.values.get(name)
    text = "" if value is None else " ".join(str(value).split())
    return "" if text.casefold() in ABSENT else text


def _year(text: str) -> str:
    found = re.match(r"\d{4}(?!\d)", text)
    return found[0] if found and found[0] != "0000" else ""


def _facts(people: Sequence[Laureate], train: int) -> Iterator[Fact]:
    for number, person in enumerate(people):
        yield Fact(
            id=f"{RELATION}:{person.name}",
            relation=RELATION,
            subject=Entity.named(person.name),
            objects=(Entity.named(person.born),),
            split="train" if number < train else "test",
            details=person.details(),
        )


def _templates() -> Iterator[Template]:
    for number, (text, source, style, group) in enumerate(TEXTS, 1):
        id = f"{RELATION}-{number}"
        yield Template(id=id, text=text, source=source, style=style, group=f"{RELATION}-{group}")
