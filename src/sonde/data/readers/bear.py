"""Read BEAR's files: a file of facts for each relation, and what relations allow as answers.

    metadata_relations.json   {"P36": {"templates": […], "answer_space_labels": […],
                               "answer_space_ids": […], "domains": […]}, …}
    P36.jsonl                 {"sub_id", "sub_label", "sub_aliases", "obj_id", "obj_label",
                               "answer_idx"}

A fact's object is the answer at `answer_idx` of its relation's space. BEAR-big names no spaces: its
answers are all objects of a relation. Rows with an empty label and rows that repeat a subject and
an object are dropped and counted. Domains, where they are given, are the relation's tags. A fault
in a relation's file is raised when the facts of this relation are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sonde.core.errors import DataError
from sonde.core.fact_frames import frame_of
from sonde.core.facts import Card, Dataset, Entity, Fact, Relation, Template
from sonde.data.format import hash_files, template_of
from sonde.data.lines import Row, complete_rows, read_object, read_rows
from sonde.data.readers import Published
from sonde.data.wordings import kind_of, known_relation, style_of

if TYPE_CHECKING:
    from polars import DataFrame

METADATA = "metadata_relations.json"
LABELS = ("sub_id", "sub_label", "obj_id", "obj_label")


def _read(folder: Path) -> Dataset:
    """Open the folder; all facts are read now, since types and answers of relations need them."""
    metadata = read_object(folder / METADATA)
    paths = {id: folder / f"{id}.jsonl" for id in metadata.values}
    asked = {id: path for id, path in paths.items() if path.is_file()}
    _refuse_others(folder, paths)
    relations, notes = [], Counter[str](rows_read=0, duplicate_rows=0)
    facts: dict[str, DataFrame | DataError] = {}

    def read(id: str) -> DataFrame:
        if isinstance(frame := facts[id], DataError):
            raise frame
        return frame

    for id, path in asked.items():
        described = metadata.row(id)
        relation = replace(
            known_relation(id, id),
            templates=_templates(described, id),
            answers=_space(described),
            tags=_domains(described),
            language="en",
        )
        try:
            relation, own = _with_facts(relation, path, notes)
            facts[id] = frame_of(own)
        except DataError as fault:
            facts[id] = fault
        relations.append(relation)
    return Dataset(
        card=Card(name="bear", licence="none stated", sources=("BEAR (LM Pub Quiz)",)),
        relations=tuple(relations),
        read=read,
        fingerprint=hash_files(folder, [folder / METADATA, *asked.values()]),
        notes={**notes, "relations_without_facts": len(paths) - len(asked)},
    )


def _refuse_others(folder: Path, paths: dict[str, Path]) -> None:
    """Refuse a folder without facts, and facts whose relation is not described."""
    found = sorted(folder.glob("*.jsonl"))
    for path in found:
        if path.stem not in paths:
            raise DataError(f"{path}: relation {path.stem!r} is not in {METADATA}")
    if not found:
        raise DataError(f"{folder} has no facts of BEAR, such as P36.jsonl")


def _with_facts(relation: Relation, path: Path, notes: Counter[str]) -> tuple[Relation, list[Fact]]:
    """A relation with its type and its answers, and its facts."""
    counts: Counter[str] = Counter()
    rows = list(complete_rows(read_rows(path), LABELS, counts))
    space = relation.answers or _objects(rows)
    known = {entity.id: entity for entity in space}
    facts: dict[str, Fact] = {}
    for row in rows:
        fact = _fact(row, relation.id, space, known)
        facts.setdefault(fact.id, fact)
    notes.update(counts)
    notes.update(rows_read=len(rows) + counts.total(), duplicate_rows=len(rows) - len(facts))
    kind = kind_of([[entity.id for entity in fact.objects] for fact in facts.values()])
    return replace(relation, kind=kind, answers=space), list(facts.values())


def _space(described: Row) -> tuple[Entity, ...]:
    """The answers that a relation allows; none where it does not say."""
    if "answer_space_labels" not in described.values:
        return ()
    labels, ids = described.texts("answer_space_labels"), described.texts("answer_space_ids")
    if len(labels) != len(ids):
        raise DataError(
            f"{described.where}: {len(labels)} answer_space_labels and {len(ids)} answer_space_ids "
            "cannot be paired; give each answer one of both"
        )
    for names in (labels, ids):
        again = [name for name, count in Counter(names).items() if count > 1]
        if again:
            raise DataError(
                f"{described.where}: {again[0]!r} stands in the answer space twice; answers must "
                "be told apart"
            )
    return tuple(Entity(id=i, names=(label,)) for i, label in zip(ids, labels, strict=True))


def _objects(rows: Sequence[Row]) -> tuple[Entity, ...]:
    """All objects of a relation's rows, as they appear."""
    found: dict[str, Entity] = {}
    for row in rows:
        id = row.text("obj_id")
        found.setdefault(id, Entity(id=id, names=(row.text("obj_label"),)))
    return tuple(found.values())


def _templates(described: Row, id: str) -> tuple[Template, ...]:
    texts = described.texts("templates")
    worded = (
        {"id": f"{id}-bear-{number}", "text": text, "style": style_of(text)}
        for number, text in enumerate(texts, 1)
    )
    return tuple(template_of(Row(values, f"{described.where}, templates")) for values in worded)


def _domains(described: Row) -> tuple[str, ...]:
    """The relation's domains: beside its templates, or where lm-pub-quiz itself writes them."""
    told = described.row("relation_info") if "relation_info" in described.values else described
    return told.texts("domains", empty=True)


def _fact(row: Row, relation: str, space: Sequence[Entity], known: dict[str, Entity]) -> Fact:
    """A row's fact; its object is given by its place in the answer space, or else by its id."""
    subject, place = row.text("sub_id"), row.values.get("answer_idx")
    names = dict.fromkeys((row.text("sub_label"), *row.texts("sub_aliases", empty=True)))
    if place is None:
        object = known.get(row.text("obj_id"))
        if object is None:
            raise row.fault("'obj_id' must be one of the answer space", row.values["obj_id"])
    elif type(place) is not int or not 0 <= place < len(space):
        expected = f"'answer_idx' must be a place in the answer space, 0 to {len(space) - 1}"
        raise row.fault(expected, place)
    else:
        object = space[place]
        if (given := row.text("obj_id", object.id)) != object.id:
            raise row.fault(f"'obj_id' must be that of answer {place}, {object.id!r}", given)
    return Fact(
        id=f"{relation}:{subject}:{object.id}",
        relation=relation,
        subject=Entity(id=subject, names=tuple(names)),
        objects=(object,),
    )


COMPONENT = Published(
    name="bear",
    summary="BEAR: metadata_relations.json, P*.jsonl",
    recognises=lambda folder: (folder / METADATA).is_file(),
    read=_read,
)
