"""Open a table as a dataset: facts, relations and, where rows have them, templates.

A row is a fact; rows of one subject and relation, without ids of their own, are one fact with all
their objects. What a table does not say is made up, always alike, and told: ids of relations and
facts, labels, and the types of relations, which are counted.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from sonde.core.dates import FORM, in_order, is_date
from sonde.core.errors import DataError
from sonde.core.fact_frames import frame_of
from sonde.core.facts import SUBJECT_SLOT, Card, Dataset, Entity, Fact, Relation, Template
from sonde.core.fingerprints import fingerprint
from sonde.core.words import counted
from sonde.data.fact_files import fact_lines
from sonde.data.lines import Row
from sonde.data.tables.columns import (
    MOST_TEXT,
    PAGE,
    QUESTIONS,
    SEPARATOR,
    Faults,
    Given,
    Roles,
    find_columns,
    finite,
    is_usual,
    plain,
    slot_faults,
    text_in,
    texts_in,
)
from sonde.data.tables.files import read_table
from sonde.data.wordings import Wording, gather, kind_of, known_relation, relation_ids

if TYPE_CHECKING:
    from polars import DataFrame


log = logging.getLogger(__name__)

ADVICE = f"Nothing was made of it; mend the rows or leave them out ({PAGE})"

NAMED = 5
"""Relations that are named when it is told what was made up."""

DATE_ROLES = {"date": "date", "valid_from": "from", "valid_to": "to"}

QUESTION = "[X] [Y]."
"""How a subject is asked that is a question itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under column names. `published`: incomplete rows are left out, for nobody can mend them.

    `source` names it in messages, `file` says where facts come from, `title` is the dataset's name.
    """

    source: str
    file: str
    title: str
    rows: Sequence[Row]
    published: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns, as they appear."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.values))


@dataclass(slots=True)
class _Told:
    """What rows say about one fact."""

    id: str
    subject: str
    split: str
    details: dict[str, str]
    numbers: dict[str, float]
    dates: dict[str, str]
    names: dict[str, None] = field(default_factory=dict)
    objects: dict[str, dict[str, None]] = field(default_factory=dict)
    wrong: dict[str, None] = field(default_factory=dict)

    def fact(self, relation: str) -> Fact:
        """The fact; an option that is right is not kept as a wrong one."""
        right = {name for names in self.objects.values() for name in names}
        more = [self.split] if self.split != "test" else []
        more += filter(None, [self.dates["date"]])
        return Fact(
            id=self.id or ":".join([relation, self.subject, *more]),
            relation=relation,
            subject=Entity(id=self.subject, names=tuple(self.names)),
            objects=tuple(Entity(id=id, names=tuple(n)) for id, n in self.objects.items()),
            split=self.split,
            wrong=tuple(Entity.named(name) for name in self.wrong if name not in right),
            details=self.details,
            numbers=self.numbers,
            date=self.dates["date"],
            valid_from=self.dates["valid_from"],
            valid_to=self.dates["valid_to"],
        )


class _Collector:
    """Takes rows in, one after the other, by the relation's name and then by fact."""

    def __init__(self, table: Table, roles: Roles, faults: Faults) -> None:
        self.table, self.roles, self.faults = table, roles, faults
        self.facts: dict[str, dict[Any, _Told]] = {}
        self.sentences: dict[tuple[str, str], None] = {}
        self.counts = Counter[str](rows_read=len(table.rows))
        self._ids: dict[str, str] = {}
        used = {column for columns in roles.values() for column in columns}
        self._others = [column for column in table.columns if column not in used]
        self._wide = len(roles["object"]) > 1
        [first, *_] = roles["object"]
        self._name = table.title if is_usual(first) else first
        self._columns, self._taken = table.columns, set[tuple[Any, ...]]()
        self._plain = not (self._wide or "id" in roles or "aliases" in roles)

    def take(self, row: Row) -> None:
        """Take one row in, with all its columns of objects; a repeated one is only counted."""
        self._check_id(row)
        cells = tuple(map(row.values.get, self._columns))
        plain = self._plain and all(type(cell) in (str, NoneType) for cell in cells)
        if plain and cells in self._taken:
            self.counts["rows_merged"] += 1
            return
        before = len(self.faults)
        for column in self.roles["object"]:
            relation = self._relation(row, column)
            subject, objects = self._text(row, "subject"), texts_in(row.values.get(column))
            if self._whole(row, {"subject": subject, "relation": relation}, column, objects):
                self._sentence(row, relation)
                self._add(row, relation, subject, objects)
                if plain and len(self.faults) == before:
                    self._taken.add(cells)

    def _check_id(self, row: Row) -> None:
        """Complain of a row whose id another has, or that has none, where rows have ids."""
        if "id" not in self.roles:
            return
        id, column = self._text(row, "id"), self.roles["id"][0]
        where = row.where.removeprefix(f"{self.table.source}, ")
        if not id:
            self.faults.add(f"{column!r} is empty", row.where)
        elif (first := self._ids.setdefault(id, where)) != where:
            self.faults.add(f"{column!r} is {id!r}, as in {first}", row.where)

    def _relation(self, row: Row, column: str) -> str:
        if self._wide:
            return column
        return self._text(row, "relation") if "relation" in self.roles else self._name

    def _whole(
        self, row: Row, texts: Mapping[str, str], column: str, objects: Sequence[str]
    ) -> bool:
        """Whether nothing is empty that a fact needs; what is, is told or counted."""
        empty = [self.roles[role][0] for role, text in texts.items() if not text]
        if self._wide and not objects and not empty:
            self.counts["cells_empty"] += 1  # the row says nothing about this relation
            return False
        empty += [] if objects else [column]
        if empty and self.table.published:
            self.counts["rows_incomplete"] += 1
            return False
        for name in empty:
            value = row.values.get(name)
            what = "holds an object, not a text" if isinstance(value, dict) else "is empty"
            self.faults.add(f"{name!r} {what}", row.where)
        return not empty

    def _sentence(self, row: Row, relation: str) -> None:
        text = self._text(row, "template")
        if not text:
            return
        for fault in slot_faults(text):
            self.faults.add(fault, row.where)
        self.sentences[relation, text] = None

    def _add(self, row: Row, relation: str, subject: str, objects: Sequence[str]) -> None:
        facts = self.facts.setdefault(relation, {})
        subject_id, split = (
            self._text(row, "subject_id") or subject,
            self._text(row, "split") or "test",
        )
        id = self._text(row, "id")
        if self._wide and id:
            id = f"{relation}:{id}"
        dates = self._dates(row)
        told = facts.get(key := id or (subject_id, split, dates["date"]))
        if told is None:
            more = self._details(row), self._numbers(row), dates
            told = facts[key] = _Told(id, subject_id, split, *more)
        else:
            self.counts["rows_merged"] += 1
        told.names |= dict.fromkeys([subject, *self._texts(row, "subject_aliases")])
        told.wrong |= dict.fromkeys(self._texts(row, "wrong"))
        ids, aliases = self._texts(row, "object_id"), self._texts(row, "aliases")
        if aliases and len(objects) > 1:
            self.counts["aliases_of_no_one_object"] += len(aliases)
        for n, name in enumerate(objects):
            names = told.objects.setdefault(ids[n] if len(ids) == len(objects) else name, {})
            names |= dict.fromkeys([name, *(aliases if n == 0 else ())])

    def marked(self) -> int:
        """How many objects look like several, separated by another mark."""
        told = (told for facts in self.facts.values() for told in facts.values())
        return sum(
            ";" in name for each in told for names in each.objects.values() for name in names
        )

    def _details(self, row: Row) -> dict[str, str]:
        """The other columns, as texts."""
        cells = {name: row.values.get(name) for name in self._others}
        texts = {n: SEPARATOR.join(texts_in(c)) for n, c in cells.items()}
        return {name: text for name, text in texts.items() if text}

    def _numbers(self, row: Row) -> dict[str, float]:
        """The columns of numbers; an empty cell has none."""
        numbers = {}
        for column in self.roles.get("number", ()):
            if text := text_in(row.values.get(column)):
                try:
                    numbers[column] = finite(text)
                except ValueError:
                    self.faults.add(f"{column!r} must be a number, not {text!r}", row.where)
        return numbers

    def _dates(self, row: Row) -> dict[str, str]:
        """The time that is asked about, since when and until when objects are right."""
        dates = {name: self._text(row, role) for name, role in DATE_ROLES.items()}
        for name, role in DATE_ROLES.items():
            if dates[name] and not is_date(dates[name]):
                column = self.roles[role][0]
                self.faults.add(
                    f"{column!r} must be a date, {FORM}, not {dates[name]!r}", row.where
                )
        if not in_order(dates["valid_from"], dates["valid_to"]):
            self.faults.add("it is valid to a date before that from which it is", row.where)
        dates["date"] = dates["date"] or dates["valid_to"] or dates["valid_from"]
        return dates

    def _text(self, row: Row, role: str) -> str:
        return text_in(row.values.get(self.roles[role][0])) if role in self.roles else ""

    def _texts(self, row: Row, role: str) -> list[str]:
        return texts_in(row.values.get(self.roles[role][0])) if role in self.roles else []


def dataset_of(table: Table, given: Given, faults: Faults) -> Dataset:
    """The dataset of a table's rows; all their faults, and those there are already, at once."""
    if not table.rows:
        faults.refuse()  # what rows there are may be unreadable
        faults.add("it has no row below its header")
        faults.refuse()
    roles = _with_wording(table, find_columns(table.source, table.columns, given), given)
    collected = _Collector(table, roles, faults)
    for row in table.rows:
        collected.take(row)
    faults.refuse()
    if not collected.facts:
        faults.add("no row of it makes a fact")
        faults.refuse()
    ids = relation_ids(collected.facts)
    frames = {
        ids[name]: frame_of(told.fact(ids[name]) for told in facts.values())
        for name, facts in collected.facts.items()
    }
    relations = tuple(_relations(collected, ids, plain(roles["subject"][0]) in QUESTIONS))
    dataset = Dataset(
        card=Card(
            name=table.title,
            licence="see its publisher" if table.published else "not stated",
            sources=(table.file,),
            description=f"made of {table.file}: {_columns_told(roles)}",
        ),
        relations=relations,
        read=frames.__getitem__,
        fingerprint=fingerprint(_content(relations, frames)),
        notes={name: count for name, count in collected.counts.items() if count},
        from_table=True,
    )
    _tell(table, dataset, roles, collected)
    return dataset


def _with_wording(table: Table, roles: Roles, given: Given) -> Roles:
    """The roles, without that of templates where a column by such a name has none."""
    if "template" not in roles or "template" in given:
        return roles
    [column] = roles["template"]
    single = len(roles["object"]) == 1  # else it does not say which relation it words
    if single and any(SUBJECT_SLOT in text_in(row.values.get(column)) for row in table.rows):
        return roles
    return {role: columns for role, columns in roles.items() if role != "template"}


def _relations(
    collected: _Collector, ids: Mapping[str, str], questions: bool
) -> Iterator[Relation]:
    wordings = [Wording(ids[name], text, "manual") for name, text in collected.sentences]
    templates = gather("table", wordings)[0]
    for name, facts in collected.facts.items():
        id = ids[name]
        objects = [tuple(told.objects) for told in facts.values()]
        relation = known_relation(id, name, kind=kind_of(objects))
        own = templates.get(id, ())
        if questions and not own:
            own = (Template(id=f"{id}-question", text=QUESTION, group=f"{id}-question"),)
        yield replace(relation, templates=own)


def _content(relations: Iterable[Relation], frames: Mapping[str, DataFrame]) -> Iterator[str]:
    for relation in relations:
        yield from (relation.id, relation.label, *(t.text for t in relation.templates))
        yield "".join(fact_lines(frames[relation.id]))


def _columns_told(roles: Roles) -> str:
    return ", ".join(f"{role} {' and '.join(map(repr, names))}" for role, names in roles.items())


def _tell(table: Table, dataset: Dataset, roles: Roles, collected: _Collector) -> None:
    """Say which columns were taken, what was made up, and what may not be meant so."""
    counts, relations = collected.counts, dataset.relations
    log.info(
        "%s: %s from %s%s; columns: %s",
        *(table.source, counted(dataset.size, "fact", "facts")),
        *(counted(len(table.rows), "row", "rows"), _left_out(counts), _columns_told(roles)),
    )
    kinds = ", ".join(f"{r.id} ({r.kind})" for r in relations[:NAMED])
    more = f" and {len(relations) - NAMED:,} more" if len(relations) > NAMED else ""
    what = "types" if "relation" in roles or len(roles["object"]) > 1 else "relation"
    first = next(dataset.facts(relations[0].id)).id
    ids = "" if "id" in roles else f", and ids such as {first!r}"
    log.info("made up: %s %s%s%s", what, kinds, more, ids)
    if count := collected.marked():
        holds = counted(count, "object holds", "objects hold")
        log.warning("%s ';'; to name several objects in a cell, put %r between them", holds, "|")


def _left_out(counts: Mapping[str, int]) -> str:
    words = {
        "rows_merged": ("row was added to another's fact", "rows were added to others' facts"),
        "cells_empty": ("empty cell was passed over", "empty cells were passed over"),
        "rows_incomplete": ("incomplete row was left out", "incomplete rows were left out"),
        "aliases_of_no_one_object": (
            "alias is the first object's",
            "aliases are the first object's",
        ),
    }
    told = [counted(counts[key], *forms) for key, forms in words.items() if counts[key]]
    return f" ({'; '.join(told)})" if told else ""


def open_table(path: Path, given: Given) -> Dataset:
    """The dataset of a file; `given` says which column is what where their names do not."""
    if not path.exists():
        raise DataError(f"{path} is missing; give the path of a table that is there ({PAGE})")
    faults = Faults(str(path), ADVICE)
    rows, size = [], 0
    for row in read_table(path, faults.add):
        size += sum(map(_characters, row.values.values()))
        if size > MOST_TEXT:
            raise DataError(
                f"{path} has more than {MOST_TEXT:,} characters; split it, or drop columns ({PAGE})"
            )
        rows.append(row)
    table = Table(source=str(path), file=path.name, title=path.stem, rows=rows)
    return dataset_of(table, given, faults)


def _characters(cell: object) -> int:
    """The length of a cell's text, or of all texts of a list or an object."""
    if isinstance(cell, dict):
        return sum(map(_characters, cell.values()))
    if isinstance(cell, list):
        return sum(map(_characters, cell))
    return len(cell) if isinstance(cell, str) else 0
