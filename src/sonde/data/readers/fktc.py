"""Read FKTC, the corpus of MONITOR: question frames, facts and wrong objects, a file a relation.

    P17-subclass.json   first line  {"relations": ["Where is [X]?", …]}, the frames, base first
                        then rows   {"subject", "object", "taxonomy": [wrong objects]}

One fact per subject and object; rows that repeat one are dropped and counted, and the first says
what is wrong. Wrong objects stay as published, also those that are right: they are counted here,
and left out where they are used. FKTC has no statements; the atlas's are added to its frames.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from sonde.core.errors import DataError
from sonde.core.fact_frames import frame_of
from sonde.core.facts import ANSWER_SLOT, Card, Dataset, Entity, Fact, Kind, Relation, Template
from sonde.core.fingerprints import fingerprint
from sonde.data.format import hash_files
from sonde.data.joining import summed
from sonde.data.known import kind_of, known_relations, known_statements
from sonde.data.lines import Row, read_rows
from sonde.data.wordings import Wording, gather

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
        """Open the folder; facts are read when they are asked for."""
        paths = _paths(folder)
        surveys = {id: _survey(path, id) for id, path in paths.items()}
        templates, counts = gather(self.name, _wordings(surveys))
        relations = tuple(_relation(id, s, templates.get(id, ())) for id, s in surveys.items())
        borrowed = (t.text for r in relations for t in r.templates if t.style == "statement")
        files = hash_files(folder, list(paths.values()))
        return Dataset(
            card=Card(
                name=self.name,
                licence="Apache-2.0",
                sources=("FKTC (MONITOR)", "statements: sonde's atlas"),
            ),
            relations=relations,
            read=lambda id: surveys[id].facts,
            fingerprint=fingerprint([files, *borrowed]),
            notes=summed(_notes(surveys), counts),
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
    """The file of each relation, by the relation's number."""
    found: dict[str, Path] = {}
    names = sorted((path.name for path in folder.iterdir()), key=_order)
    for path in map(folder.joinpath, names):
        if named := FILE.fullmatch(path.name):
            if named[1] in found:
                raise DataError(f"{path} and {found[named[1]].name} hold the same relation")
            found[named[1]] = path
    if not found:
        raise DataError(f"{folder} holds no file of FKTC, such as P17-subclass.json")
    return found


def _order(name: str) -> tuple[int, str]:
    """P17 before P101."""
    return len(name.partition("-")[0]), name


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
    wrong = ((fact.subject.id, [entity.id for entity in fact.wrong]) for fact in rows)
    return _Survey(
        frames=frames,
        facts=frame_of(firsts.values()),
        rows=len(rows),
        mistaken=sum(not right[subject].isdisjoint(ids) for subject, ids in wrong),
        kind=kind_of(right.values()),
    )


def _notes(surveys: Mapping[str, _Survey]) -> dict[str, int]:
    found = surveys.values()
    return {
        "rows_read": sum(survey.rows for survey in found),
        "duplicate_rows": sum(survey.rows - survey.facts.height for survey in found),
        "rows_with_a_right_object_as_wrong": sum(survey.mistaken for survey in found),
        "relations_without_seven_frames": sum(len(survey.frames) != FRAMES for survey in found),
    }


def _wordings(surveys: Mapping[str, _Survey]) -> Iterator[Wording]:
    """The frames as templates that answer after the question; the base frame is the original."""
    for id, survey in surveys.items():
        for place, frame in enumerate(survey.frames):
            text = frame if ANSWER_SLOT in frame else f"{frame.strip()} {ANSWER_SLOT}."
            yield Wording(relation=id, text=text, source="paraphrase" if place else "manual")


def _relation(id: str, survey: _Survey, frames: Sequence[Template]) -> Relation:
    grouped = (replace(frame, group=frames[0].id) for frame in frames)
    return replace(
        known_relations().get(id) or Relation(id=id, label=id, kind=survey.kind),
        templates=(*grouped, *known_statements().get(id, ())),
    )


def _fact(row: Row, relation: str) -> Fact:
    subject, object = (Entity.named(row.text(key)) for key in ("subject", "object"))
    return Fact(
        id=f"{relation}:{subject.id}:{object.id}",
        relation=relation,
        subject=subject,
        objects=(object,),
        wrong=tuple(map(Entity.named, _wrong(row))),
    )


def _wrong(row: Row) -> tuple[str, ...]:
    """The wrong objects, each once; a list that is there may be empty."""
    return tuple(dict.fromkeys(row.texts("taxonomy", empty="taxonomy" in row.values)))


COMPONENT = FktcReader()
