"""Read EntityQuestions: questions about entities, a file a relation and split.

    test/P17.test.json   [{"question": "Which country is … located in?", "answers": ["Mali"]}, …]
    train/, dev/         the same; the folder may also be the one that holds `dataset/`

Questions of a relation read alike but for the subject, which no field names: it is what stands
between the words that all of them begin and end with. Where nothing is left of a question so, the
relation is asked by each fact's own question. Answers do not say which of them name the same thing,
so they are names of one object. Any further field that is a number is a number of the fact.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from sonde.core.errors import DataError
from sonde.core.facts import SUBJECT_SLOT, Card, Dataset, Entity, Fact, Relation
from sonde.data.format import hash_files
from sonde.data.lines import UNSOUND, Row
from sonde.data.readers import Published
from sonde.data.wordings import asked_by

SPLITS = ("test", "dev", "train")
FILE = re.compile(r"(P\d+)\.(test|dev|train)\.json")


def _read(folder: Path) -> Dataset:
    """Open the folder; all questions are read now, since together they tell the subjects."""
    paths = _paths(folder)
    read = {
        id: [(split, row) for split, path in own for row in _rows(path)]
        for id, own in paths.items()
    }
    rows = {id: own for id, own in read.items() if own}
    if not rows:
        raise DataError(f"{folder} holds no questions, such as test/P17.test.json")
    frames = {id: frame_of_questions([_question(row) for _, row in rows[id]]) for id in rows}
    return Dataset(
        card=Card(name="entityquestions", licence="none stated", sources=("EntityQuestions",)),
        relations=tuple(_relation(id, frames[id]) for id in rows),
        read=lambda id: [
            _fact(id, number, split, row, frames[id])
            for number, (split, row) in enumerate(rows[id], 1)
        ],
        fingerprint=hash_files(folder, [path for own in paths.values() for _, path in own]),
    )


def _paths(folder: Path) -> dict[str, list[tuple[str, Path]]]:
    """The files of each relation with their splits, by the relation's number."""
    root = folder / "dataset" if (folder / "dataset" / "test").is_dir() else folder
    found: dict[str, list[tuple[str, Path]]] = {}
    for split in SPLITS:
        for path in sorted((root / split).glob(f"*.{split}.json")):
            if named := FILE.fullmatch(path.name):
                found.setdefault(named[1], []).append((split, path))
    return dict(sorted(found.items(), key=lambda entry: (len(entry[0]), entry[0])))


def _rows(path: Path) -> list[Row]:
    try:
        listed: Any = msgspec.json.decode(path.read_bytes())
    except UNSOUND as error:
        raise DataError(f"{path}: expected a JSON list of questions, but {error}") from None
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise DataError(f"{path}: expected a JSON list of {{question, answers}}")
    return [Row(each, f"{path}, question {number}") for number, each in enumerate(listed, 1)]


def _question(row: Row) -> str:
    return " ".join(row.text("question").split())


def frame_of_questions(questions: Iterable[str]) -> tuple[str, str]:
    """The words that all questions begin with, and those that they end with.

    Nothing on either side where some question has no words of its own between them.

    >>> frame_of_questions(["Where was Ann Lee born?", "Where was Bo born?"])
    ('Where was ', ' born?')
    """
    distinct = list(dict.fromkeys(questions))
    if len(distinct) < 2:
        return "", ""
    first, last = _beginning(distinct), _beginning([text[::-1] for text in distinct])[::-1]
    before = first[: first.rfind(" ") + 1]
    at = re.search(r"\W", last)  # one may end with its subject: What is the capital of Peru?
    after = last[at.start() :] if at else ""
    fits = all(len(question) > len(before) + len(after) for question in distinct)
    return (before, after) if fits and (before or after) else ("", "")


def _beginning(texts: Sequence[str]) -> str:
    """What all texts begin with: the first and the last of them in order do."""
    first, last = min(texts), max(texts)
    same = (i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    return first[: next(same, len(first))]


def _relation(id: str, frame: tuple[str, str]) -> Relation:
    text = SUBJECT_SLOT.join(frame) if any(frame) else "[details.question]"
    return asked_by(id, "entityquestions", text, label="…".join(frame) if any(frame) else id)


def _fact(relation: str, number: int, split: str, row: Row, frame: tuple[str, str]) -> Fact:
    question, (before, after) = _question(row), frame
    subject = question[len(before) : len(question) - len(after)]
    answers = tuple(dict.fromkeys(row.texts("answers")))
    return Fact(
        id=f"{relation}:{split}:{number}",
        relation=relation,
        subject=Entity.named(subject),
        objects=(Entity(id=answers[0], names=answers),),
        split=split,
        details={"question": question},
        numbers=_numbers(row.values),
    )


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Fields that are numbers; true and false are none."""
    return {name: float(value) for name, value in values.items() if type(value) in (int, float)}


COMPONENT = Published(
    name="entityquestions",
    summary="EntityQuestions: test/P*.test.json, also dev and train",
    recognises=lambda folder: bool(_paths(folder)),
    read=_read,
)
