"""Read LAMA's T-REx files: `relations.jsonl`, `facts/ID.jsonl` and a vocabulary of allowed answers.

One fact per row: only that row's object counts. Rows that repeat a (subject, object) pair are
dropped and counted; relations without facts are passed over. Where the folder has `train/ID/`, the
rows of its `train.jsonl` and `dev.jsonl` are facts of the splits `train` and `dev`. These name
things and have no identifiers; all of them are kept, since to count is what they are for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast, get_args

from sonde.core.errors import DataError
from sonde.core.fact_frames import completed, frame_of
from sonde.core.facts import APART, LAMA, Card, Dataset, Kind, Relation
from sonde.data.format import hash_files, read_vocabulary, template_of
from sonde.data.lines import Row, read_rows, read_texts

if TYPE_CHECKING:
    from polars import DataFrame

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
        """Open the folder; all facts are read now, since they are counted."""
        relations = tuple(_relations(folder))
        if not relations:
            raise DataError(f"{folder}: no relation of relations.jsonl has a file in facts/")
        paths = {r.id: _facts_path(folder, r.id) for r in relations}
        trained = {r.id: _training_paths(folder, r.id) for r in relations}
        rows = {id: _test_rows(path, id) for id, path in paths.items()}
        once = {
            id: frame.lazy().unique(("subject", "object"), keep="first", maintain_order=True)
            for id, frame in rows.items()
        }
        facts = {id: completed(frame).collect() for id, frame in once.items()}
        training = {id: _training(splits, id) for id, splits in trained.items()}
        more = [path for splits in trained.values() for path in splits.values()]
        hashed = [folder / "relations.jsonl", folder / VOCABULARY, *paths.values(), *more]
        read = sum(frame.height for frame in rows.values())
        return Dataset(
            card=Card(name="lama", licence="CC-BY-NC 4.0", sources=("LAMA T-REx",)),
            relations=relations,
            read=lambda id: facts[id].vstack(training[id]),
            fingerprint=hash_files(folder, hashed),
            vocabulary=read_vocabulary(folder / VOCABULARY),
            notes={
                "rows_read": read,
                "duplicate_rows": read - sum(kept.height for kept in facts.values()),
                **(_training_notes(training.values()) if more else {}),
            },
        )


def _relations(folder: Path) -> Iterator[Relation]:
    for row in read_rows(folder / "relations.jsonl"):
        id = row.text("relation")
        if _facts_path(folder, id).is_file():
            kind = cast(Kind, row.choice("type", get_args(Kind)))
            worded = {"id": f"{id}-lama", "text": row.text("template"), "origin": LAMA}
            template = template_of(Row(worded, row.where))
            yield Relation(id=id, label=row.text("label"), kind=kind, templates=(template,))


def _facts_path(folder: Path, relation: str) -> Path:
    return folder / "facts" / f"{relation}.jsonl"


def _training_paths(folder: Path, relation: str) -> dict[str, Path]:
    """The files of training facts that a relation has, by split."""
    paths = {split: folder / "train" / relation / f"{split}.jsonl" for split in TRAINING}
    return {split: path for split, path in paths.items() if path.is_file()}


def _test_rows(path: Path, relation: str) -> DataFrame:
    """The rows of a relation, as the columns of a fact; 27 have no identifiers."""
    from polars import col, format, lit

    rows = read_texts(path, ("sub_label", "obj_label"), ("sub_uri", "obj_uri"))
    columns = rows.select(
        relation=lit(relation),
        subject="sub_label",
        subject_id=col("sub_uri").fill_null(col("sub_label")),
        object="obj_label",
        object_id=col("obj_uri").fill_null(col("obj_label")),
    )
    return columns.with_columns(fact=format("{}:{}:{}", "relation", "subject_id", "object_id"))


def _training(paths: Mapping[str, Path], relation: str) -> DataFrame:
    """The training facts of a relation; rows of one text may be of two things with these names."""
    import polars
    from polars import format, int_range, len, lit, when

    parts = [frame_of([]).lazy()]
    for split, path in paths.items():
        rows = read_texts(path, ("sub", "obj")).lazy()
        columns = rows.select(
            relation=lit(relation),
            split=lit(split),
            subject="sub",
            subject_id="sub",
            object="obj",
            object_id="obj",
            tags=lit([APART], polars.List(polars.String)),
            fact=format("{}:{}:{}:{}", lit(relation), lit(split), "sub", "obj"),
        )
        again = int_range(1, len() + 1).over("fact")
        numbered = when(again == 1).then("fact").otherwise(format("{}:{}", "fact", again))
        parts.append(completed(columns.with_columns(fact=numbered)))
    return polars.concat(parts).collect()


def _training_notes(training: Iterable[DataFrame]) -> dict[str, int]:
    rows: Counter[str] = Counter()
    pairs = 0
    for facts in training:
        rows.update(facts["split"])
        pairs += facts.select("split", "subject_id", "object_ids").n_unique()
    counts = {f"{split}_rows": rows[split] for split in TRAINING}
    return {**counts, "repeated_training_rows": rows.total() - pairs}


COMPONENT = LamaReader()
