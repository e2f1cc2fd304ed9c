"""Read LAMA's T-REx files: `relations.jsonl`, `facts/ID.jsonl` and a vocabulary of allowed answers.

One fact per row: only that row's object counts. Rows that repeat a (subject, object) pair are
dropped and counted; relations without facts are passed over. Where the folder has `train/ID/`, the
rows of its `train.jsonl` and `dev.jsonl` are facts of the splits `train` and `dev`. These name
things and have no identifiers; all of them are kept, since to count is what they are for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import ClassVar, cast, get_args

from sonde.core.errors import DataError, TemplateError
from sonde.core.facts import APART, LAMA, Card, Dataset, Entity, Fact, Kind, Relation, Template
from sonde.data.format import hash_files
from sonde.data.lines import Row, read_lines, read_rows

VOCABULARY = "common_vocab_cased.txt"
TRAINING = ("train", "dev")


@dataclass(frozen=True, slots=True)
class LamaReader:
    """LAMA's own files, as published."""

    name: ClassVar[str] = "lama"
    summary: ClassVar[str] = "LAMA T-REx: relations.jsonl, facts/P*.jsonl, common_vocab_cased.txt"

    def recognises(self, folder: Path) -> bool:
        """Whether the folder looks like LAMA's."""
        return (folder / "relations.jsonl").is_file() and (folder / "facts").is_dir()

    def read(self, folder: Path) -> Dataset:
        """Open the folder; facts are read when they are asked for."""
        relations = tuple(_relations(folder))
        if not relations:
            raise DataError(f"{folder}: no relation of relations.jsonl has a file in facts/")
        paths = [_facts_path(folder, r.id) for r in relations]
        read = sum(sum(1 for _ in read_rows(path)) for path in paths)
        kept = sum(sum(1 for _ in _facts(folder, r.id)) for r in relations)
        trained = [p for r in relations for p in _training_paths(folder, r.id).values()]
        vocabulary = folder / VOCABULARY
        extra = [vocabulary] if vocabulary.is_file() else []
        return Dataset(
            card=Card(name="lama", licence="CC-BY-NC 4.0", sources=("LAMA T-REx",)),
            relations=relations,
            read=lambda id: chain(_facts(folder, id), _training(folder, id)),
            fingerprint=hash_files(folder, [folder / "relations.jsonl", *extra, *paths, *trained]),
            vocabulary=tuple(w for _, w in read_lines(vocabulary) if w) if extra else None,
            notes={
                "rows_read": read,
                "duplicate_rows": read - kept,
                **(_training_notes(folder, relations) if trained else {}),
            },
        )


def _relations(folder: Path) -> Iterator[Relation]:
    for row in read_rows(folder / "relations.jsonl"):
        id = row.text("relation")
        if _facts_path(folder, id).is_file():
            kind = cast(Kind, row.choice("type", get_args(Kind)))
            yield Relation(id=id, label=row.text("label"), kind=kind, templates=(_template(row),))


def _template(row: Row) -> Template:
    id = f"{row.text('relation')}-lama"
    try:
        return Template(id=id, text=row.text("template"), group=id, origin=LAMA)
    except TemplateError as error:
        raise TemplateError(f"{row.where}: {error}") from None


def _facts_path(folder: Path, relation: str) -> Path:
    return folder / "facts" / f"{relation}.jsonl"


def _facts(folder: Path, relation: str) -> Iterator[Fact]:
    seen: set[tuple[str, str]] = set()
    for row in read_rows(_facts_path(folder, relation)):
        pair = (row.text("sub_label"), row.text("obj_label"))
        if pair not in seen:
            seen.add(pair)
            yield _fact(row, relation)


def _fact(row: Row, relation: str) -> Fact:
    subject = row.optional("sub_uri") or row.text("sub_label")  # 27 rows have no identifiers
    object = row.optional("obj_uri") or row.text("obj_label")
    return Fact(
        id=f"{relation}:{subject}:{object}",
        relation=relation,
        subject=Entity(id=subject, names=(row.text("sub_label"),)),
        objects=(Entity(id=object, names=(row.text("obj_label"),)),),
    )


def _training_paths(folder: Path, relation: str) -> dict[str, Path]:
    """The files of training facts that a relation has, by split."""
    paths = {split: folder / "train" / relation / f"{split}.jsonl" for split in TRAINING}
    return {split: path for split, path in paths.items() if path.is_file()}


def _training(folder: Path, relation: str) -> Iterator[Fact]:
    for split, path in _training_paths(folder, relation).items():
        seen: Counter[str] = Counter()
        for row in read_rows(path):
            fact = _training_fact(row, relation, split)
            seen[fact.id] += 1
            again = seen[fact.id]  # rows of one text may be of two things with the same names
            yield fact if again == 1 else replace(fact, id=f"{fact.id}:{again}")


def _training_fact(row: Row, relation: str, split: str) -> Fact:
    subject, object = row.text("sub"), row.text("obj")
    return Fact(
        id=f"{relation}:{split}:{subject}:{object}",
        relation=relation,
        subject=Entity(id=subject, names=(subject,)),
        objects=(Entity(id=object, names=(object,)),),
        split=split,
        tags=(APART,),
    )


def _training_notes(folder: Path, relations: tuple[Relation, ...]) -> dict[str, int]:
    rows: Counter[str] = Counter()
    pairs = 0
    for relation in relations:
        found = [(f.split, f.subject.id, f.objects[0].id) for f in _training(folder, relation.id)]
        rows.update(split for split, _, _ in found)
        pairs += len(set(found))
    counts = {f"{split}_rows": rows[split] for split in TRAINING}
    return {**counts, "repeated_training_rows": rows.total() - pairs}


COMPONENT = LamaReader()
