"""Read KAMEL: a question for each relation, and facts with all their answers.

    question-templates.csv   P103, What is the native language of [S]?
    P103/test.jsonl          {"sub_label", "obj_uri": […], "obj_label": [{"rdf", "alternative",
                             "chosen"}, …]}; rdf is null for numbers and dates
    P103/train.jsonl, dev.jsonl   {"sub_label", "obj_label": ["French", …]}: names alone

One fact per row, with every object; its usual name is the chosen one, its alternatives are further
names. Subjects have names and no identifiers. Of two questions for a relation the last counts, as
in KAMEL's own program. Relations without a question are left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from sonde.core.errors import DataError
from sonde.core.facts import APART, SUBJECT_SLOT, Card, Dataset, Entity, Fact
from sonde.data.format import hash_files
from sonde.data.lines import Row, read_lines, read_rows
from sonde.data.readers import Published
from sonde.data.wordings import asked_by

QUESTIONS = "question-templates.csv"
SUBJECT = "[S]"
SPLITS = ("test", "dev", "train")
EXPECTED = "'obj_label' must be a list of labels, or of {rdf, alternative, chosen}"


def _read(folder: Path) -> Dataset:
    """Open the folder; facts are read when they are asked for."""
    questions = _questions(folder / QUESTIONS)
    held = sorted(
        (path.parent.name for path in folder.glob("*/test.jsonl")),
        key=lambda id: (len(id), id),
    )
    asked = [id for id in held if id in questions]
    if not asked:
        raise DataError(f"{folder}: no relation of {QUESTIONS} has a file ID/test.jsonl")
    paths = {id: [folder / id / f"{split}.jsonl" for split in SPLITS] for id in asked}
    every = [folder / QUESTIONS, *(path for own in paths.values() for path in own)]
    return Dataset(
        card=Card(name="kamel", licence="none stated", sources=("KAMEL",)),
        relations=tuple(
            asked_by(id, "kamel", questions[id], label=questions[id].replace(SUBJECT_SLOT, "…"))
            for id in asked
        ),
        read=lambda id: _facts(id, paths[id]),
        fingerprint=hash_files(folder, every),
        notes={
            "relations_without_question": len(held) - len(asked),
            "questions_without_facts": len(questions) - len(asked),
        },
    )


def _questions(path: Path) -> dict[str, str]:
    """The question of each relation, with sonde's slot for the subject."""
    questions = {}
    for where, line in read_lines(path):
        id, comma, question = (part.strip() for part in line.partition(","))
        if not line.strip():
            continue
        if not id or not comma or question.count(SUBJECT) != 1:
            raise DataError(
                f"{where}: expected a relation, a comma and a question with {SUBJECT} in it once, "
                f"found {line[:80]!r}"
            )
        questions[id] = question.replace(SUBJECT, SUBJECT_SLOT)
    return questions


def _facts(relation: str, paths: list[Path]) -> Iterator[Fact]:
    for path in filter(Path.is_file, paths):
        for number, row in enumerate(read_rows(path), 1):
            split = path.stem
            yield Fact(
                id=f"{relation}:{split}:{number}",
                relation=relation,
                subject=Entity.named(row.text("sub_label")),
                objects=_objects(row),
                split=split,
                tags=() if split == "test" else (APART,),
            )


def _objects(row: Row) -> tuple[Entity, ...]:
    labels, ids = row.values.get("obj_label"), row.texts("obj_uri", empty=True)
    if not isinstance(labels, list) or not labels:
        raise row.fault(EXPECTED, labels)
    if ids and len(ids) != len(labels):
        raise row.fault(f"'obj_uri' must have an entry for each of {len(labels)} labels", ids)
    entities = (_object(row, label, id) for label, id in zip_longest(labels, ids, fillvalue=""))
    return tuple({entity.id: entity for entity in entities}.values())


def _object(row: Row, label: Any, id: str) -> Entity:
    """An object by its chosen label; that of a number or a date is its identifier, too."""
    given = [label]
    if isinstance(label, dict):
        more = label.get("alternative") or []
        if not isinstance(more, list):
            raise row.fault("'alternative' must be a list of labels", more)
        given = [label.get("chosen"), label.get("rdf"), *more]
    names = tuple(dict.fromkeys(n.strip() for n in given if isinstance(n, str) and n.strip()))
    if not names:
        raise row.fault(EXPECTED, label)
    return Entity(id=id if id.startswith("Q") else names[0], names=names)


COMPONENT = Published(
    name="kamel",
    summary="KAMEL: question-templates.csv, P*/train.jsonl, dev.jsonl, test.jsonl",
    recognises=lambda folder: (folder / QUESTIONS).is_file(),
    read=_read,
)
