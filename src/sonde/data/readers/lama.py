"""Read LAMA's T-REx files: `relations.jsonl`, `facts/ID.jsonl` and a vocabulary of allowed answers.

One fact per row: only that row's object counts. Rows that repeat a (subject, object) pair are
dropped and counted, as are rows with an empty label; relations without facts are passed over. Where
the folder has `train/ID/`, the rows of its `train.jsonl` and `dev.jsonl` are facts of the splits
`train` and `dev`. These name things and have no identifiers; all of them are kept, since to count
is what they are for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from sonde.core.errors import DataError
from sonde.core.fact_frames import completed, no_facts
from sonde.core.facts import APART, LAMA, Card, Dataset, Kind, Relation
from sonde.data.format import hash_files, read_vocabulary, template_of
from sonde.data.lines import Row, read_rows, read_texts
from sonde.data.readers import Published

if TYPE_CHECKING:
    from polars import DataFrame, Expr, LazyFrame

VOCABULARY = "common_vocab_cased.txt"
TRAINING = ("train", "dev")


def _read(folder: Path) -> Dataset:
    """Open the folder; all facts are read now, since they are counted."""
    relations = tuple(_relations(folder))
    if not relations:
        raise DataError(f"{folder}: no relation of relations.jsonl has a file in facts/")
    paths = {r.id: _facts_path(folder, r.id) for r in relations}
    trained = {r.id: _training_paths(folder, r.id) for r in relations}
    incomplete: Counter[str] = Counter()
    rows = _test_rows(paths, incomplete)
    read = rows.height + incomplete.total()
    pair = ("relation", "subject", "object")
    once = rows.lazy().unique(pair, keep="first", maintain_order=True)
    facts, training = _by_relation(once), _by_relation(_training_rows(trained, incomplete))
    more = [path for splits in trained.values() for path in splits.values()]
    hashed = [folder / "relations.jsonl", folder / VOCABULARY, *paths.values(), *more]
    return Dataset(
        card=Card(name="lama", licence="CC-BY-NC 4.0", sources=("LAMA T-REx",)),
        relations=relations,
        read=lambda id: facts[id].vstack(training.get(id, no_facts())),
        fingerprint=hash_files(folder, hashed),
        vocabulary=read_vocabulary(folder / VOCABULARY),
        notes={
            "rows_read": read,
            "duplicate_rows": rows.height - sum(kept.height for kept in facts.values()),
            **(_training_notes(training.values()) if more else {}),
            **incomplete,
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


def _by_relation(rows: LazyFrame) -> dict[str, DataFrame]:
    """Facts of all relations, worked out together."""
    facts = completed(rows).collect().partition_by("relation", maintain_order=True, as_dict=True)
    return {str(id): frame for (id,), frame in facts.items()}


def _test_rows(paths: Mapping[str, Path], counts: Counter[str]) -> DataFrame:
    """The rows of relations, as the columns of a fact; 27 have no identifiers."""
    import polars
    from polars import col, format, lit

    needed, optional = ("sub_label", "obj_label"), ("sub_uri", "obj_uri")
    parts = [
        read_texts(path, needed, optional, counts).with_columns(relation=lit(id))
        for id, path in paths.items()
    ]
    columns = polars.concat(parts).select(
        "relation",
        subject="sub_label",
        subject_id=col("sub_uri").fill_null(col("sub_label")),
        object="obj_label",
        object_id=col("obj_uri").fill_null(col("obj_label")),
    )
    return columns.with_columns(fact=format("{}:{}:{}", "relation", "subject_id", "object_id"))


def _training_rows(trained: Mapping[str, Mapping[str, Path]], counts: Counter[str]) -> LazyFrame:
    """The training facts of relations; rows of one text may be of two things with these names."""
    import polars
    from polars import format, lit

    parts = [
        read_texts(path, ("sub", "obj"), (), counts).with_columns(
            relation=lit(id), split=lit(split)
        )
        for id, splits in trained.items()
        for split, path in splits.items()
    ]
    if not parts:
        return no_facts().lazy()
    columns = (
        polars.concat(parts)
        .lazy()
        .select(
            "relation",
            "split",
            subject="sub",
            subject_id="sub",
            object="obj",
            object_id="obj",
            tags=lit([APART], polars.List(polars.String)),
            fact=format("{}:{}:{}:{}", "relation", "split", "sub", "obj"),
        )
    )
    return columns.with_columns(fact=_numbered("fact"))


def _numbered(column: str) -> Expr:
    """Names of which those that were there before have their number behind them."""
    from polars import format, int_range, len, when

    again = int_range(1, len() + 1).over(column)
    return when(again == 1).then(column).otherwise(format("{}:{}", column, again))


def _training_notes(training: Iterable[DataFrame]) -> dict[str, int]:
    rows: Counter[str] = Counter()
    pairs = 0
    for facts in training:
        rows.update(facts["split"])
        pairs += facts.select("split", "subject_id", "object_ids").n_unique()
    counts = {f"{split}_rows": rows[split] for split in TRAINING}
    return {**counts, "repeated_training_rows": rows.total() - pairs}


COMPONENT = Published(
    name="lama",
    summary="LAMA T-REx: relations.jsonl, facts/P*.jsonl, common_vocab_cased.txt",
    recognises=lambda path: (path / "relations.jsonl").is_file() and (path / "facts").is_dir(),
    read=_read,
)
