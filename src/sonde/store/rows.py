"""Answered prompts as Arrow tables and back: the schema of a shard (see docs/run-format.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa

from sonde.core.answers import Answer, Answered, Filled, Generated, Sampled, Scored, Traced
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
        # traced: one list of token log-probabilities per span, in `logps` too
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
        # generated: one text, its tokens, and the token that ended it
        ("text", pa.string()),
        ("text_logps", FLOATS),
        ("end_logp", pa.float32()),
        ("finished", pa.bool_()),
        # sampled: distinct texts and how often each was drawn
        ("texts", pa.list_(pa.string())),
        ("counts", pa.list_(pa.int32())),
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
    columns |= _rated_columns(
        [a if isinstance(a := r.answer, Scored | Traced) else None for r in rows]
    )
    columns |= _filled_columns([a if isinstance(a := r.answer, Filled) else None for r in rows])
    columns |= _written_columns([a if isinstance(a := r.answer, Generated) else None for r in rows])
    columns |= _drawn_columns([a if isinstance(a := r.answer, Sampled) else None for r in rows])
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def from_table(table: pa.Table) -> Iterator[Answered]:
    """The answered prompts of an Arrow table, one at a time."""
    for batch in table.combine_chunks().to_batches(max_chunksize=1024):
        columns = {name: _values(batch.column(name)) for name in batch.schema.names}
        for i in range(batch.num_rows):
            yield Answered(
                key=Key(**{name: columns[name][i] for name in KEYS}),
                prefix=columns["prefix"][i],
                suffix=columns["suffix"][i],
                answer=_answer(columns, i),
            )


def _rated_columns(answers: Sequence[Scored | Traced | None]) -> dict[str, Any]:
    nested = pa.list_(FLOATS)
    scored = [a if isinstance(a, Scored) else None for a in answers]
    return {
        "options": _names([None if a is None else a.options for a in scored]),
        "logps": pa.array([a and a.logps for a in answers], nested),
        "suffix_logps": pa.array([a and a.suffix_logps for a in scored], nested),
    }


def _filled_columns(answers: Sequence[Filled | None]) -> dict[str, Any]:
    ranks = [None if a is None else [rank or 0 for rank in a.watched_ranks] for a in answers]
    return {
        "top": _names([None if a is None else a.top for a in answers]),
        "top_logps": pa.array([a and a.top_logps for a in answers], FLOATS),
        "watched": _names([None if a is None else a.watched for a in answers]),
        "watched_logps": pa.array([a and a.watched_logps for a in answers], FLOATS),
        "watched_ranks": pa.array(ranks, pa.list_(pa.int32())),
        "mass": pa.array([None if a is None else a.mass for a in answers], pa.float32()),
    }


def _written_columns(answers: Sequence[Generated | None]) -> dict[str, Any]:
    return {
        "text": pa.array([None if a is None else a.text for a in answers], pa.string()),
        "text_logps": pa.array([a and a.logps for a in answers], FLOATS),
        "end_logp": pa.array([a and a.end_logp for a in answers], pa.float32()),
        "finished": pa.array([a and a.finished for a in answers], pa.bool_()),
    }


def _drawn_columns(answers: Sequence[Sampled | None]) -> dict[str, Any]:
    return {
        "texts": pa.array([a and a.texts for a in answers], pa.list_(pa.string())),
        "counts": pa.array([a and a.counts for a in answers], pa.list_(pa.int32())),
    }


def _answer(columns: dict[str, list[Any]], i: int) -> Answer:
    kind = columns["kind"][i]
    if kind == "generated":
        return Generated(
            text=columns["text"][i],
            logps=tuple(columns["text_logps"][i]),
            end_logp=columns["end_logp"][i],
            finished=columns["finished"][i],
        )
    if kind == "sampled":
        return Sampled(texts=tuple(columns["texts"][i]), counts=tuple(columns["counts"][i]))
    if kind == "traced":
        return Traced(logps=tuple(map(tuple, columns["logps"][i])))
    if kind == "scored":
        return Scored(
            options=columns["options"][i],
            logps=tuple(map(tuple, columns["logps"][i])),
            suffix_logps=tuple(map(tuple, columns["suffix_logps"][i])),
        )
    return Filled(
        top=columns["top"][i],
        top_logps=tuple(columns["top_logps"][i]),
        watched=columns["watched"][i],
        watched_logps=tuple(columns["watched_logps"][i]),
        watched_ranks=tuple([rank or None for rank in columns["watched_ranks"][i]]),
        mass=columns["mass"][i],
    )


def _values(column: pa.Array) -> list[Any]:
    """A column as Python values; lists of names as tuples, each distinct list made once."""
    if pa.types.is_dictionary(column.type):
        return column.cast(pa.string()).to_pylist()  # type: ignore[no-any-return]
    if not pa.types.is_list(column.type) or not pa.types.is_dictionary(column.type.value_type):
        return column.to_pylist()  # type: ignore[no-any-return]
    words = column.values.dictionary.to_pylist()
    indices = column.values.indices.to_numpy(zero_copy_only=False)
    offsets = column.offsets.to_pylist()
    known: dict[bytes, tuple[str, ...]] = {}
    lists = []
    for start, stop in pairwise(offsets):
        part = indices[start:stop]
        key = part.tobytes()
        if key not in known:
            known[key] = tuple(words[index] for index in part)
        lists.append(known[key])
    return lists


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
