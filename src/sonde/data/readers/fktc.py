"""Read FKTC, the corpus of MONITOR: question frames, facts and wrong objects, a file a relation.

    P17-subclass.json   first line  {"relations": ["Where is [X]?", …]}, the frames, base first
                        then rows   {"subject", "object", "taxonomy": [wrong objects]}

One fact per subject and object; rows that repeat one and rows with an empty label are dropped and
counted, and the first says what is wrong. Wrong objects stay as published, also those that are
right: they are counted here, and left out where they are used. FKTC has no statements; the atlas's
are added to its frames.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sonde.core.errors import DataError
from sonde.core.fact_frames import frame_of
from sonde.core.facts import ANSWER_SLOT, Card, Dataset, Entity, Fact, Relation, Template
from sonde.core.fingerprints import fingerprint
from sonde.data.format import hash_files
from sonde.data.lines import Row, complete_rows, read_rows
from sonde.data.readers import Published
from sonde.data.wordings import Wording, atlas_relations, gather, kind_of, known_relation

if TYPE_CHECKING:
    from polars import DataFrame

FILE = re.compile(r"([\w-]+)-subclass\.+json")  # one published name has two dots
FRAMES = 7


def _read(folder: Path) -> Dataset:
    """Open the folder; all facts are read now, since they are counted."""
    paths, notes = _paths(folder), Counter[str]()
    relations, facts = [], {}
    for id, path in paths.items():
        relation, facts[id], counts = _read_file(path, id)
        relations.append(relation)
        notes.update(counts)
    borrowed = (t.text for r in relations for t in r.templates if t.style == "statement")
    files = hash_files(folder, paths.values())
    return Dataset(
        card=Card(
            name="fktc",
            licence="Apache-2.0",
            sources=("FKTC (MONITOR)", "statements: sonde's atlas"),
        ),
        relations=tuple(relations),
        read=facts.__getitem__,
        fingerprint=fingerprint([files, *borrowed]),
        notes=dict(notes),
    )


def _paths(folder: Path) -> dict[str, Path]:
    """The file of each relation, by the relation's number: P17 before P101."""
    paths: dict[str, Path] = {}
    for path in sorted(folder.iterdir(), key=lambda p: (len(p.name.partition("-")[0]), p.name)):
        if named := FILE.fullmatch(path.name):
            if named[1] in paths:
                raise DataError(f"{path} and {paths[named[1]].name} hold the same relation")
            paths[named[1]] = path
    if not paths:
        raise DataError(f"{folder} holds no file of FKTC, such as P17-subclass.json")
    return paths


def _read_file(path: Path, id: str) -> tuple[Relation, DataFrame, dict[str, int]]:
    """A relation, its facts, and what was counted in its file."""
    lines = read_rows(path)
    head = next(lines, None)
    if head is None:
        raise DataError(f'{path} is empty; its first line is {{"relations": [frames]}}')
    frames = head.texts("relations")
    incomplete: Counter[str] = Counter()
    rows = [_fact(row, id) for row in complete_rows(lines, ("subject", "object"), incomplete)]
    right: dict[str, set[str]] = {}
    firsts: dict[tuple[str, str], Fact] = {}
    for fact in rows:
        right.setdefault(fact.subject.id, set()).add(fact.objects[0].id)
        firsts.setdefault((fact.subject.id, fact.objects[0].id), fact)
    mistaken = (any(e.id in right[fact.subject.id] for e in fact.wrong) for fact in rows)
    notes = {
        "rows_read": len(rows) + incomplete.total(),
        "duplicate_rows": len(rows) - len(firsts),
        "rows_with_a_right_object_as_wrong": sum(mistaken),
        "relations_without_seven_frames": int(len(frames) != FRAMES),
        **incomplete,
    }
    templates, counts = _templates(id, frames)
    known = known_relation(id, id, kind=kind_of(right.values()))
    return replace(known, templates=templates), frame_of(firsts.values()), notes | counts


def _templates(id: str, frames: Sequence[str]) -> tuple[tuple[Template, ...], dict[str, int]]:
    """The frames, which answer after the question, and the atlas's statements; what was left out.

    The base frame is the original, and the group of all.
    """
    texts = (f if ANSWER_SLOT in f else f"{f.strip()} {ANSWER_SLOT}." for f in frames)
    wordings = (Wording(id, t, "paraphrase" if i else "manual") for i, t in enumerate(texts))
    gathered, counts = gather("fktc", wordings)
    asked = gathered.get(id, ())
    known = atlas_relations()[id].templates if id in atlas_relations() else ()
    statements = (template for template in known if template.style == "statement")
    return (*(replace(frame, group=asked[0].id) for frame in asked), *statements), counts


def _fact(row: Row, relation: str) -> Fact:
    """A row's fact; the wrong objects, each once, may be an empty list, but not be missing."""
    subject, object = row.text("subject"), row.text("object")
    wrong = dict.fromkeys(row.texts("taxonomy", empty="taxonomy" in row.values))
    return Fact(
        id=f"{relation}:{subject}:{object}",
        relation=relation,
        subject=Entity.named(subject),
        objects=(Entity.named(object),),
        wrong=tuple(map(Entity.named, wrong)),
    )


COMPONENT = Published(
    name="fktc",
    summary="FKTC, the corpus of MONITOR: P*-subclass.json",
    recognises=lambda folder: any(FILE.fullmatch(path.name) for path in folder.iterdir()),
    read=_read,
)
