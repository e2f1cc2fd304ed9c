"""The one on-disk form of a dataset: a folder of lines, in which facts may also be columns.

    dataset.json      name, version, licence, sources, description, notes (counts of what was left
                      out), hash (of the other files)
    relations.jsonl   {"id", "label", "kind", "tags", "answers", "language", "same"}
    templates.jsonl   {"id", "relation", "text", "source", "style", "group",
                       "weight", "origin"}
    facts/            a file for each relation (data/fact_files.py)
    vocabulary.txt    optional: one allowed answer a line

docs/formats.md describes each field. Knows nothing of probes or models.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

from sonde.core.errors import DataError, TemplateError
from sonde.core.facts import Card, Dataset, Entity, Kind, Relation, Source, Style, Template
from sonde.core.files import whole
from sonde.core.progress import told
from sonde.data.fact_files import Facts, entity_of, fact_files, facts_path, write_facts
from sonde.data.lines import (
    Complain,
    Row,
    read_each,
    read_lines,
    read_object,
    refuse,
    regular,
    write_rows,
)
from sonde.prompting.languages import add_answer_slot

FORMAT = 1
HASH_SIZE = 16


def is_dataset(folder: Path) -> bool:
    """Whether a folder holds a dataset in this form."""
    return (folder / "dataset.json").is_file()


def open_dataset(folder: Path) -> Dataset:
    """Open a dataset folder; templates are read now, facts when they are asked for."""
    head = read_object(folder / "dataset.json")
    card = card_of(head)
    relations = tuple(worded_relations(folder))
    for relation in relations:
        if not facts_path(folder, relation.id).exists():
            raise DataError(
                f"{facts_path(folder, relation.id)} is missing: relation {relation.id!r} stands "
                f"in {folder / 'relations.jsonl'} and needs its facts"
            )
    content, written = content_hash(folder), head.values.get("hash")
    if written not in (None, content):
        raise DataError(
            f"{folder}: the content has hash {content} but dataset.json says {written}; if you "
            f"changed it on purpose, run: sonde data check {folder} --seal"
        )
    return Dataset(
        card=card,
        relations=relations,
        read=Facts(folder),
        fingerprint=content,
        vocabulary=read_vocabulary(folder / "vocabulary.txt"),
        notes=notes_of(head),
    )


def content_hash(folder: Path) -> str:
    """Name the content of a dataset folder: everything but dataset.json, byte for byte."""
    paths = [folder / "relations.jsonl", folder / "templates.jsonl", folder / "vocabulary.txt"]
    return hash_files(folder, [*paths, *fact_files(folder)])


def hash_files(folder: Path, paths: Iterable[Path]) -> str:
    """Name the content of some files of a folder, those that are there, and their places in it."""
    digest = hashlib.sha256()
    for path in map(regular, filter(Path.exists, paths)):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:HASH_SIZE]


def write_dataset(dataset: Dataset, folder: Path, *, columns: bool = False) -> None:
    """Write a dataset in this form, sealed with its hash; facts a relation at a time, as lines
    for people or as columns for programs."""
    (folder / "facts").mkdir(parents=True, exist_ok=True)
    write_rows(folder / "relations.jsonl", map(_relation_row, dataset.relations))
    write_rows(folder / "templates.jsonl", _template_rows(dataset))
    for relation in told(dataset.relations, f"writing {folder.name}", len(dataset.relations)):
        write_facts(dataset.frame(relation.id), folder, relation.id, columns=columns)
    _write_vocabulary(folder / "vocabulary.txt", dataset.vocabulary)
    _write_head(folder, dataset.card, dataset.notes)


def seal(folder: Path) -> str:
    """Write the content's hash into dataset.json, and give it back."""
    head = read_object(folder / "dataset.json")
    return _write_head(folder, card_of(head), notes_of(head))


def _write_head(folder: Path, card: Card, notes: Mapping[str, int]) -> str:
    content = content_hash(folder)
    head = {
        "format": FORMAT,
        "name": card.name,
        "version": card.version,
        "licence": card.licence,
        "sources": list(card.sources),
        "description": card.description,
        **({"notes": dict(notes)} if notes else {}),
        "hash": content,
    }
    with whole(folder / "dataset.json") as file:  # so that no kill leaves half a head
        file.write((json.dumps(head, indent=2, ensure_ascii=False) + "\n").encode())
    return content


def _relation_row(relation: Relation) -> dict[str, Any]:
    row = {
        "id": relation.id,
        "label": relation.label,
        "kind": relation.kind,
        "tags": list(relation.tags),
        "answers": [{"id": e.id, "names": list(e.names)} for e in relation.answers],
        "language": relation.language,
        "same": relation.same,
    }
    return {key: value for key, value in row.items() if value}


def _template_rows(dataset: Dataset) -> Iterator[dict[str, Any]]:
    for relation in dataset.relations:
        for t in relation.templates:
            row = {
                "id": t.id,
                "relation": relation.id,
                "text": t.text,
                "source": t.source,
                "style": t.style,
                "group": t.group or t.id,
            }
            further = {"weight": t.weight, "origin": t.origin or None}
            yield row | {key: value for key, value in further.items() if value is not None}


def card_of(head: Row) -> Card:
    """Where dataset.json says that the dataset comes from."""
    version = head.values.get("format")
    if version != FORMAT:
        raise head.fault(
            f"'format' must be {FORMAT}, the form this version of sonde reads", version
        )
    return Card(
        name=head.text("name"),
        version=head.text("version", "1"),
        licence=head.text("licence", "unknown"),
        sources=head.texts("sources", empty=True),
        description=head.text("description", ""),
    )


def notes_of(head: Row) -> dict[str, int]:
    """What dataset.json says was counted when the dataset was made."""
    return head.mapping("notes", int, "whole numbers")


def worded_relations(folder: Path) -> Iterator[Relation]:
    """The relations of a folder with their templates."""
    relations = read_relations(folder)
    if not relations:
        raise DataError(f"{folder / 'relations.jsonl'}: no relation in it")
    templates = read_templates(folder, relations)
    for id, (_, relation) in relations.items():
        yield replace(relation, templates=tuple(template for _, template in templates[id]))


def read_relations(folder: Path, complain: Complain = refuse) -> dict[str, tuple[str, Relation]]:
    """Relations by id, without templates, each with the place of its line."""
    relations: dict[str, tuple[str, Relation]] = {}

    def relation_of(row: Row) -> Relation:
        id = row.text("id")
        if not re.fullmatch(r"[\w.-]+", id):
            raise row.fault("'id' must be made of letters, digits, '.', '_' and '-'", id)
        if id in relations:
            raise row.fault("each relation stands once", id)
        return Relation(
            id=id,
            label=row.text("label"),
            kind=cast(Kind, row.choice("kind", get_args(Kind))) if "kind" in row.values else None,
            tags=row.texts("tags", empty=True),
            answers=_answers(row),
            language=row.text("language", ""),
            same=row.text("same", ""),
        )

    for where, relation in read_each(folder / "relations.jsonl", relation_of, complain):
        relations[relation.id] = (where, relation)
    return relations


def _answers(row: Row) -> tuple[Entity, ...]:
    """The answer space of a relation, each answer once."""
    if "answers" not in row.values:
        return ()
    answers = tuple(map(entity_of, row.rows("answers")))
    often = Counter(entity.id for entity in answers)
    if twice := [id for id, count in often.items() if count > 1]:
        raise row.fault("'answers' must list each id once", twice[0])
    return answers


def read_templates(
    folder: Path, relations: Collection[str], complain: Complain = refuse
) -> dict[str, list[tuple[str, Template]]]:
    """The templates of relations by their ids, each with the place of its line."""

    def worded(row: Row) -> tuple[str, Template]:
        id = row.text("relation")
        if id not in relations:
            raise row.fault("'relation' must stand in relations.jsonl", id)
        return id, template_of(row)

    templates: dict[str, list[tuple[str, Template]]] = {id: [] for id in relations}
    for where, (id, template) in read_each(folder / "templates.jsonl", worded, complain):
        templates[id].append((where, template))
    return templates


def template_of(row: Row) -> Template:
    """A template from its row, with the row's place in every complaint."""
    id, written = row.text("id"), row.text("text")
    text = add_answer_slot(written)  # of a question
    style = "question" if text != written else "statement"
    try:
        return Template(
            id=id,
            text=text,
            source=cast(Source, row.choice("source", get_args(Source), "manual")),
            style=cast(Style, row.choice("style", get_args(Style), style)),
            group=row.text("group", id),
            weight=row.number("weight"),
            origin=row.text("origin", ""),
        )
    except TemplateError as error:
        raise TemplateError(f"{row.where}: {error}") from None


def _write_vocabulary(path: Path, words: tuple[str, ...] | None) -> None:
    if words is None:
        path.unlink(missing_ok=True)
    else:
        path.write_text("".join(f"{word}\n" for word in words), encoding="utf-8")


def read_vocabulary(path: Path) -> tuple[str, ...] | None:
    """The allowed answers of a file, one a line; None where it is not there."""
    if not path.is_file():
        return None
    try:
        lines = regular(path).read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError):
        # several times slower, but names the faulty line
        lines = [line for _, line in read_lines(path)]
    return tuple(filter(None, lines))
