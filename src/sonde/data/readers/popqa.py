"""Read PopQA, one table of questions about entities of known popularity.

    popQA.tsv   id, subj, prop, obj, subj_id, prop_id, obj_id, s_aliases, o_aliases, s_uri, o_uri,
                s_wiki_title, o_wiki_title, s_pop, o_pop, question, possible_answers

Every row is a fact. Its possible answers do not say which of them name the same thing, so they are
names of one object, `obj` first. Its numbers are the monthly views of the subject's and of the
object's page on Wikipedia. Where all questions of a property read alike but for the subject, that
is its template; else each fact is asked by its own question.
"""

from __future__ import annotations

from collections import defaultdict
from math import isfinite, nan
from pathlib import Path

from sonde.core.errors import DataError
from sonde.core.facts import SUBJECT_SLOT, Card, Dataset, Entity, Fact, Relation
from sonde.data.format import hash_files
from sonde.data.lines import Row, structure
from sonde.data.readers import Published
from sonde.data.tables.files import read_table
from sonde.data.wordings import asked_by, relation_ids

FILES = ("popQA.tsv", "test.tsv")
NUMBERS = {"popularity": "s_pop", "object_popularity": "o_pop"}
NEEDED = ("subj", "prop", "obj", "question", "possible_answers")


def _read(path: Path) -> Dataset:
    """Read the table, or that of a folder."""
    table = next((path / name for name in FILES if (path / name).is_file()), path)
    if table.is_dir():
        raise DataError(f"{path} holds no table of PopQA, such as {FILES[0]}; give the file")
    rows = defaultdict(list)
    for row in read_table(table):
        _check(row)
        rows[row.text("prop")].append(row)
    if not rows:
        raise DataError(f"{table} holds no rows")
    ids = relation_ids(rows)
    names = {id: prop for prop, id in ids.items()}
    return Dataset(
        card=Card(name="popqa", licence="MIT", sources=("PopQA",)),
        relations=tuple(_relation(ids[prop], prop, rows[prop]) for prop in rows),
        read=lambda id: [_fact(row, id) for row in rows[names[id]]],
        fingerprint=hash_files(table.parent, [table]),
    )


def _check(row: Row) -> None:
    if missing := [name for name in NEEDED if name not in row.values]:
        raise DataError(
            f"{row.where}: no column {', '.join(map(repr, missing))}; PopQA's table has "
            f"{', '.join(NEEDED)} and others"
        )


def _relation(id: str, prop: str, rows: list[Row]) -> Relation:
    texts = {row.text("question").replace(row.text("subj"), SUBJECT_SLOT, 1) for row in rows}
    text = texts.pop() if len(texts) == 1 else ""
    asked = text if text.count(SUBJECT_SLOT) == 1 else "[details.question]"
    return asked_by(id, "popqa", asked, label=prop)


def _fact(row: Row, relation: str) -> Fact:
    subject, object = row.text("subj"), row.text("obj")
    subject_id = row.values.get("subj_id") or subject
    return Fact(
        id=f"{relation}:{row.values.get('id') or f'{subject_id}:{object}'}",
        relation=relation,
        subject=Entity(id=str(subject_id), names=_names(row, subject, "s_aliases")),
        objects=(
            Entity(
                id=str(row.values.get("obj_id") or object),
                names=_names(row, object, "possible_answers"),
            ),
        ),
        details={"question": row.text("question")},
        numbers={name: _number(row, key) for name, key in NUMBERS.items() if row.values.get(key)},
    )


def _names(row: Row, usual: str, key: str) -> tuple[str, ...]:
    """A usual name, and the others that a cell lists."""
    listed = structure(row, key) if row.values.get(key) else []
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise row.fault(f"{key!r} must be a list of texts, as JSON", row.values.get(key))
    return tuple(dict.fromkeys(name.strip() for name in (usual, *listed) if name.strip()))


def _number(row: Row, key: str) -> float:
    try:
        number = float(row.values[key])
    except ValueError:
        number = nan
    if not isfinite(number):
        raise row.fault(f"{key!r} must be a number", row.values[key])
    return number


COMPONENT = Published(
    name="popqa",
    summary="PopQA: popQA.tsv, with the popularity of subject and object",
    recognises=lambda folder: (folder / FILES[0]).is_file(),
    read=_read,
    takes_file=True,
)
