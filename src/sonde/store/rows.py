"""Answered prompts as Arrow tables and back: the schema of a shard (see docs/run-format.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from sonde.core.answers import Answer, Answered, Filled, Scored
from sonde.core.prompts import Key

KEYS = ("fact", "relation", "template", "subject", "context")

NAMES = pa.dictionary(pa.int32(), pa.string())
FLOATS = pa.list_(pa.float32())

SCHEMA = pa.schema(
    [
        *((name, NAMES) for name in KEYS),
        ("prefix", pa.string()),
        ("suffix", pa.string()),
        ("kind", NAMES),
        # scored: one list of token log-probabilities per option, and of what follows it
        ("options", pa.list_(NAMES)),
        ("logps", pa.list_(FLOATS)),
        ("suffix_logps", pa.list_(FLOATS)),
        # filled: the likeliest tokens, and the watched names (rank 0: not one allowed token)
        ("top", pa.list_(NAMES)),
        ("top_logps", FLOATS),
        ("watched", pa.list_(NAMES)),
        ("watched_logps", FLOATS),
        ("watched_ranks", pa.list_(pa.int32())),
        ("mass", pa.float32()),
    ]
)


def to_table(rows: Sequence[Answered]) -> pa.Table:
    """One Arrow row per answered prompt."""
    columns: dict[str, Any] = {
        name: _dictionary([getattr(row.key, name) for row in rows]) for name in KEYS
    }
    columns["prefix"] = pa.array([row.prefix for row in rows], pa.string())
    columns["suffix"] = pa.array([row.suffix for row in rows], pa.string())
    columns["kind"] = _dictionary([type(row.answer).__name__.lower() for row in rows])
    scored = [row.answer if isinstance(row.answer, Scored) else None for row in rows]
    filled = [row.answer if isinstance(row.answer, Filled) else None for row in rows]
    columns["options"] = _names([None if a is None else a.options for a in scored])
    columns["logps"] = pa.array([a and a.logps for a in scored], pa.list_(FLOATS))
    columns["suffix_logps"] = pa.array([a and a.suffix_logps for a in scored], pa.list_(FLOATS))
    columns["top"] = _names([None if a is None else a.top for a in filled])
    columns["top_logps"] = pa.array([a and a.top_logps for a in filled], FLOATS)
    columns["watched"] = _names([None if a is None else a.watched for a in filled])
    columns["watched_logps"] = pa.array([a and a.watched_logps for a in filled], FLOATS)
    columns["watched_ranks"] = pa.array(
        [a and tuple(rank or 0 for rank in a.watched_ranks) for a in filled], pa.list_(pa.int32())
    )
    columns["mass"] = pa.array([None if a is None else a.mass for a in filled], pa.float32())
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def from_table(table: pa.Table) -> Iterator[Answered]:
    """The answered prompts of an Arrow table, one at a time."""
    for batch in table.to_batches(max_chunksize=1024):
        columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
        for i in range(batch.num_rows):
            row = {name: values[i] for name, values in columns.items()}
            yield Answered(
                key=Key(**{name: row[name] for name in KEYS}),
                prefix=row["prefix"],
                suffix=row["suffix"],
                answer=_answer(row),
            )


def _answer(row: dict[str, Any]) -> Answer:
    if row["kind"] == "scored":
        return Scored(
            options=tuple(row["options"]),
            logps=tuple(tuple(tokens) for tokens in row["logps"]),
            suffix_logps=tuple(tuple(tokens) for tokens in row["suffix_logps"]),
        )
    return Filled(
        top=tuple(row["top"]),
        top_logps=tuple(row["top_logps"]),
        watched=tuple(row["watched"]),
        watched_logps=tuple(row["watched_logps"]),
        watched_ranks=tuple(rank or None for rank in row["watched_ranks"]),
        mass=row["mass"],
    )


def _dictionary(values: Sequence[str]) -> pa.DictionaryArray:
    return pa.array(values, pa.string()).dictionary_encode()


def _names(lists: Sequence[tuple[str, ...] | None]) -> pa.ListArray:
    """Lists of names; each distinct list is looked up once, since prompts share them."""
    index: dict[str, int] = {}
    known: dict[tuple[str, ...], list[int]] = {}
    flat: list[int] = []
    offsets: list[int | None] = []
    for names in lists:
        offsets.append(None if names is None else len(flat))
        if names is None:
            continue
        if names not in known:
            known[names] = [index.setdefault(name, len(index)) for name in names]
        flat.extend(known[names])
    offsets.append(len(flat))
    values = pa.DictionaryArray.from_arrays(
        pa.array(flat, pa.int32()), pa.array(list(index), pa.string())
    )
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)
