"""Read KAMEL, PopQA and EntityQuestions: sets of questions about entities, with lists of answers.

KAMEL has a question for each relation, and facts with all their answers:

    question-templates.csv   P103, What is the native language of [S]?
    P103/test.jsonl          {"sub_label", "obj_uri": […], "obj_label": [{"rdf", "alternative",
                             "chosen"}, …]}; rdf is null for numbers and dates
    P103/train.jsonl, dev.jsonl   {"sub_label", "obj_label": ["French", …]}: names alone

The folders of relations may also be in `data/KAMEL/` below the questions, as in KAMEL's repository.
One fact per row, with every object; its usual name is the chosen one, its alternatives are further
names. Subjects have names and no identifiers. Of two questions for a relation the last counts, as
in KAMEL's own program. Relations without a question are left out and counted.

PopQA is one table of questions about entities of known popularity:

    popQA.tsv   id, subj, prop, obj, subj_id, prop_id, obj_id, s_aliases, o_aliases, s_uri, o_uri,
                s_wiki_title, o_wiki_title, s_pop, o_pop, question, possible_answers

Every row is a fact. Its numbers are the monthly views of the subject's and of the object's page on
Wikipedia. Where all questions of a property read alike but for the subject, that is its template.

EntityQuestions has a file a relation and split:

    test/P17.test.json   [{"question": "Which country is … located in?", "answers": ["Mali"]}, …]
    train/, dev/         the same; the folder may also be the one that holds `dataset/`

Questions of a relation read alike but for the subject, which no field names: it is what stands
between the words that all of them begin and end with. Any further field that is a number is a
number of the fact.

Where questions of PopQA or EntityQuestions do not read alike, each fact is asked by its own. Their
answers do not say which of them name the same thing, so they are names of one object.

In all three, rows with an empty label are dropped and counted.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from math import isfinite, nan
from pathlib import Path
from typing import Any

from sonde.core.errors import DataError
from sonde.core.facts import APART, SUBJECT_SLOT, Card, Dataset, Entity, Fact, Relation
from sonde.data.format import hash_files
from sonde.data.lines import (
    INCOMPLETE,
    Row,
    complete_rows,
    read_lines,
    read_list,
    read_rows,
)
from sonde.data.readers import Published
from sonde.data.tables.columns import structure
from sonde.data.tables.files import read_table
from sonde.data.wordings import asked_by, relation_ids

QUESTIONS = "question-templates.csv"
REPOSITORY = Path("data", "KAMEL")
"""Where the repository has the folders of relations."""

SUBJECT = "[S]"
SPLITS = ("test", "dev", "train")
EXPECTED = "'obj_label' must be a list of labels, or of {rdf, alternative, chosen}"


def _kamel(folder: Path) -> Dataset:
    """Open the folder; facts are read when they are asked for."""
    questions = _kamel_questions(folder / QUESTIONS)
    root = folder / REPOSITORY if (folder / REPOSITORY).is_dir() else folder
    held = sorted(
        (path.parent.name for path in root.glob("*/test.jsonl")),
        key=lambda id: (len(id), id),
    )
    asked = [id for id in held if id in questions]
    if not asked:
        raise DataError(f"{folder}: no relation of {QUESTIONS} has a file ID/test.jsonl")
    paths = {id: [root / id / f"{split}.jsonl" for split in SPLITS] for id in asked}
    every = [folder / QUESTIONS, *(path for own in paths.values() for path in own)]
    notes = {  # rows are counted when their relation is read
        "relations_without_question": len(held) - len(asked),
        "questions_without_facts": len(questions) - len(asked),
    }
    incomplete: set[str] = set()
    return Dataset(
        card=Card(name="kamel", licence="none stated", sources=("KAMEL",)),
        relations=tuple(
            asked_by(id, "kamel", questions[id], label=questions[id].replace(SUBJECT_SLOT, "…"))
            for id in asked
        ),
        read=lambda id: _kamel_facts(id, paths[id], notes, incomplete),
        fingerprint=hash_files(folder, every),
        notes=notes,
    )


def _kamel_questions(path: Path) -> dict[str, str]:
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


def _kamel_facts(
    relation: str, paths: list[Path], notes: dict[str, int], incomplete: set[str]
) -> Iterator[Fact]:
    for path in filter(Path.is_file, paths):
        for number, row in enumerate(read_rows(path), 1):
            split, objects = path.stem, _objects(row)
            if row.is_blank("sub_label") or not objects:
                incomplete.add(row.where)  # a relation may be read twice
                notes[INCOMPLETE] = len(incomplete)
                continue
            yield Fact(
                id=f"{relation}:{split}:{number}",
                relation=relation,
                subject=Entity.named(row.text("sub_label")),
                objects=objects,
                split=split,
                tags=() if split == "test" else (APART,),
            )


def _objects(row: Row) -> tuple[Entity, ...]:
    """The objects of a row; none where one has no name."""
    labels, ids = row.values.get("obj_label"), row.texts("obj_uri", empty=True)
    if row.is_blank("obj_label"):
        return ()
    if not isinstance(labels, list):
        raise row.fault(EXPECTED, labels)
    if ids and len(ids) != len(labels):
        raise row.fault(f"'obj_uri' must have an entry for each of {len(labels)} labels", ids)
    entities = [_object(row, label, id) for label, id in zip_longest(labels, ids, fillvalue="")]
    named = {entity.id: entity for entity in entities if entity is not None}
    return () if None in entities else tuple(named.values())


def _object(row: Row, label: Any, id: str) -> Entity | None:
    """An object by its chosen label; that of a number or a date is its identifier, too."""
    if not isinstance(label, dict | str | None):
        raise row.fault(EXPECTED, label)
    given = [label]
    if isinstance(label, dict):
        more = label.get("alternative") or []
        if not isinstance(more, list):
            raise row.fault("'alternative' must be a list of labels", more)
        given = [label.get("chosen"), label.get("rdf"), *more]
    names = tuple(dict.fromkeys(n.strip() for n in given if isinstance(n, str) and n.strip()))
    if not names:
        return None
    return Entity(id=id if id.startswith("Q") else names[0], names=names)


KAMEL = Published(
    name="kamel",
    summary="KAMEL: question-templates.csv, P*/train.jsonl, dev.jsonl, test.jsonl",
    recognises=lambda folder: (folder / QUESTIONS).is_file(),
    read=_kamel,
)


FILES = ("popQA.tsv", "test.tsv")
NUMBERS = {"popularity": "s_pop", "object_popularity": "o_pop"}
NEEDED = ("subj", "prop", "obj", "question", "possible_answers")


def _popqa(path: Path) -> Dataset:
    """Read the table, or that of a folder."""
    table = next((path / name for name in FILES if (path / name).is_file()), path)
    if table.is_dir():
        raise DataError(f"{path} holds no table of PopQA, such as {FILES[0]}; give the file")
    rows = defaultdict(list)
    incomplete: Counter[str] = Counter()
    for row in complete_rows(map(_checked, read_table(table)), NEEDED[:4], incomplete):
        rows[row.text("prop")].append(row)
    if not rows:
        raise DataError(f"{table} holds no rows")
    ids = relation_ids(rows)
    names = {id: prop for prop, id in ids.items()}
    return Dataset(
        card=Card(name="popqa", licence="MIT", sources=("PopQA",)),
        relations=tuple(_popqa_relation(ids[prop], prop, rows[prop]) for prop in rows),
        read=lambda id: [_popqa_fact(row, id) for row in rows[names[id]]],
        fingerprint=hash_files(table.parent, [table]),
        notes=incomplete,
    )


def _checked(row: Row) -> Row:
    if missing := [name for name in NEEDED if name not in row.values]:
        raise DataError(
            f"{row.where}: no column {', '.join(map(repr, missing))}; PopQA's table has "
            f"{', '.join(NEEDED)} and others"
        )
    return row


def _popqa_relation(id: str, prop: str, rows: list[Row]) -> Relation:
    texts = {row.text("question").replace(row.text("subj"), SUBJECT_SLOT, 1) for row in rows}
    text = texts.pop() if len(texts) == 1 else ""
    asked = text if text.count(SUBJECT_SLOT) == 1 else "[details.question]"
    return asked_by(id, "popqa", asked, label=prop)


def _popqa_fact(row: Row, relation: str) -> Fact:
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


POPQA = Published(
    name="popqa",
    summary="PopQA: popQA.tsv, with the popularity of subject and object",
    recognises=lambda folder: (folder / FILES[0]).is_file(),
    read=_popqa,
    takes_file=True,
)


FILE = re.compile(r"(P\d+)\.(test|dev|train)\.json")


def _entityquestions(folder: Path) -> Dataset:
    """Open the folder; all questions are read now, since together they tell the subjects."""
    paths = _split_paths(folder)
    incomplete: Counter[str] = Counter()
    read = {
        id: [
            (split, row)
            for split, path in own
            for row in complete_rows(read_list(path), ("question", "answers"), incomplete)
        ]
        for id, own in paths.items()
    }
    rows = {id: own for id, own in read.items() if own}
    if not rows:
        raise DataError(f"{folder} holds no questions, such as test/P17.test.json")
    frames = {id: frame_of_questions([_question(row) for _, row in rows[id]]) for id in rows}
    return Dataset(
        card=Card(name="entityquestions", licence="none stated", sources=("EntityQuestions",)),
        relations=tuple(_framed(id, frames[id]) for id in rows),
        read=lambda id: [
            _entity_fact(id, number, split, row, frames[id])
            for number, (split, row) in enumerate(rows[id], 1)
        ],
        fingerprint=hash_files(folder, [path for own in paths.values() for _, path in own]),
        notes=incomplete,
    )


def _split_paths(folder: Path) -> dict[str, list[tuple[str, Path]]]:
    """The files of each relation with their splits, by the relation's number."""
    root = folder / "dataset" if (folder / "dataset" / "test").is_dir() else folder
    found: dict[str, list[tuple[str, Path]]] = {}
    for split in SPLITS:
        for path in sorted((root / split).glob(f"*.{split}.json")):
            if named := FILE.fullmatch(path.name):
                found.setdefault(named[1], []).append((split, path))
    return dict(sorted(found.items(), key=lambda entry: (len(entry[0]), entry[0])))


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


def _framed(id: str, frame: tuple[str, str]) -> Relation:
    text = SUBJECT_SLOT.join(frame) if any(frame) else "[details.question]"
    return asked_by(id, "entityquestions", text, label="…".join(frame) if any(frame) else id)


def _entity_fact(relation: str, number: int, split: str, row: Row, frame: tuple[str, str]) -> Fact:
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


ENTITYQUESTIONS = Published(
    name="entityquestions",
    summary="EntityQuestions: test/P*.test.json, also dev and train",
    recognises=lambda folder: bool(_split_paths(folder)),
    read=_entityquestions,
)
