"""Read FKTC, the corpus of MONITOR: question frames, facts and wrong objects, a file a relation.

    P17-subclass.json   first line  {"relations": ["Where is [X]?", …]}, the frames, base first
                        then rows   {"subject", "object", "taxonomy": [wrong objects]}

One fact per subject and object; rows that repeat one are dropped and counted, and the first says
what is wrong. Wrong objects stay as published, also those that are right: they are counted here,
and left out where they are used. FKTC has no statements; the atlas's are added to its frames.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from sonde.core.errors import DataError
from sonde.core.fact_frames import frame_of
from sonde.core.facts import ANSWER_SLOT, Card, Dataset, Entity, Fact, Kind, Relation, Template
from sonde.core.fingerprints import fingerprint
from sonde.data.format import hash_files
from sonde.data.lines import Row, read_rows
from sonde.data.wordings import Wording, atlas_relations, gather, kind_of, known_relation

if TYPE_CHECKING:
    from polars import DataFrame

FILE = re.compile(r"([\w-]+)-subclass\.+json")  # one published name has two dots
FRAMES = 7


@dataclass(frozen=True, slots=True)
class FktcReader:
    """FKTC's own files, as published."""

    name: ClassVar[str] = "fktc"
    summary: ClassVar[str] = "FKTC, the corpus of MONITOR: P*-subclass.json"

    def recognises(self, folder: Path) -> bool:
        """Whether some file has the name of FKTC's."""
        return any(FILE.fullmatch(path.name) for path in folder.iterdir())

    def read(self, folder: Path) -> Dataset:
        """Open the folder; all facts are read now, since they are counted."""
        paths = _paths(folder)
        surveys = {id: _survey(path, id) for id, path in paths.items()}
        frames, counts = gather(self.name, _wordings(surveys))
        relations = tuple(_relation(id, s, frames.get(id, ())) for id, s in surveys.items())
        borrowed = (t.text for r in relations for t in r.templates if t.style == "statement")
        files = hash_files(folder, paths.values())
        return Dataset(
            card=Card(
                name=self.name,
                licence="Apache-2.0",
                sources=("FKTC (MONITOR)", "statements: sonde's atlas"),
            ),
            relations=relations,
            read=lambda id: surveys[id].facts,
            fingerprint=fingerprint([files, *borrowed]),
            notes=_notes(surveys.values()) | counts,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Survey:
    """What a file holds: its frames as they stand, its facts, and counts of its rows."""

    frames: tuple[str, ...]
    facts: DataFrame
    rows: int
    mistaken: int
    kind: Kind


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


def _survey(path: Path, relation: str) -> _Survey:
    lines = read_rows(path)
    head = next(lines, None)
    if head is None:
        raise DataError(f'{path} is empty; its first line is {{"relations": [frames]}}')
    frames = head.texts("relations")
    rows = [_fact(row, relation) for row in lines]
    right: dict[str, set[str]] = {}
    firsts: dict[tuple[str, str], Fact] = {}
    for fact in rows:
        right.setdefault(fact.subject.id, set()).add(fact.objects[0].id)
        firsts.setdefault((fact.subject.id, fact.objects[0].id), fact)
    return _Survey(
        frames=frames,
        facts=frame_of(firsts.values()),
        rows=len(rows),
        mistaken=sum(any(e.id in right[fact.subject.id] for e in fact.wrong) for fact in rows),
        kind=kind_of(right.values()),
    )


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


def _notes(surveys: Collection[_Survey]) -> dict[str, int]:
    return {
        "rows_read": sum(survey.rows for survey in surveys),
        "duplicate_rows": sum(survey.rows - survey.facts.height for survey in surveys),
        "rows_with_a_right_object_as_wrong": sum(survey.mistaken for survey in surveys),
        "relations_without_seven_frames": sum(len(s.frames) != FRAMES for s in surveys),
    }


def _wordings(surveys: Mapping[str, _Survey]) -> Iterator[Wording]:
    """The frames as templates that answer after the question; the base frame is the original."""
    for id, survey in surveys.items():
        for place, frame in enumerate(survey.frames):
            text = frame if ANSWER_SLOT in frame else f"{frame.strip()} {ANSWER_SLOT}."
            yield Wording(id, text, "paraphrase" if place else "manual")


def _relation(id: str, survey: _Survey, frames: Sequence[Template]) -> Relation:
    """The relation with its frames, all of the base frame's group, and the atlas's statements."""
    grouped = (replace(frame, group=frames[0].id) for frame in frames)
    known = atlas_relations()[id].templates if id in atlas_relations() else ()
    statements = (template for template in known if template.style == "statement")
    return replace(known_relation(id, id, kind=survey.kind), templates=(*grouped, *statements))


COMPONENT = FktcReader()
