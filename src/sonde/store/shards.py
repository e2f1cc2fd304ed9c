"""Shards: their columns and blocks (docs/formats.md), as bytes and back, and read as arrays.

What the prompts of a block share, the options that are scored or the names that are watched, stands
once in the table's metadata. Columns that no answer of a shard has are not there. A digest stands
beside each shard, so that no changed bit is read as an answer: Parquet's own checksums cover its
pages, but neither their headers nor the footer. Nor is a number read that cannot be one. Every
log-probability is finite: an answer that is not allowed has none (null), and a control gives what
it never saw a small one.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, repeat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sonde.core.answers import KINDS, Generated, Kind, Sampled
from sonde.core.columns import Answers, FilledColumns
from sonde.core.errors import CorruptShard, StoreError
from sonde.core.prompts import (
    KEY,
    OWN,
    TEXTS,
    Fill,
    Generate,
    Key,
    Sample,
    Score,
    Trace,
    Want,
    called,
)
from sonde.core.rated import RatedColumns

NAMES = pa.dictionary(pa.int32(), pa.string())
FLOATS = pa.list_(pa.float32())
SPANS = pa.list_(pa.list_(pa.int32()))

ANSWERS: Mapping[str, pa.DataType] = {
    "options": pa.list_(NAMES),
    "spans": SPANS,
    "logps": pa.list_(FLOATS),
    "suffix_logps": pa.list_(FLOATS),
    "top": pa.list_(NAMES),
    "top_logps": FLOATS,
    "mass": pa.float32(),
    "watched_logps": pa.binary(),
    "watched_ranks": pa.binary(),
    "text": pa.string(),
    "text_logps": FLOATS,
    "end_logp": pa.float32(),
    "finished": pa.bool_(),
    "thoughts": pa.string(),
    "texts": pa.list_(pa.string()),
    "counts": pa.list_(pa.int32()),
    "drawn_thoughts": pa.list_(pa.list_(pa.string())),
}
"""The columns that answers may have, in their order; those of the prompts come before them."""

RESERVED = frozenset({*ANSWERS, "kind", "watched"}) - {*OWN.values()}
"""Names that no column of a probe's own may have: those of answers, and what `friendly` adds."""

OF_KIND: Mapping[Kind, tuple[str, ...]] = {
    "scored": ("logps",),
    "traced": ("logps",),
    "filled": ("top", "top_logps", "mass"),  # and what is watched, if anything is
    "generated": ("text", "text_logps", "end_logp", "finished"),
    "sampled": ("texts", "counts"),
}
"""The columns that answers of a kind always have."""

KIND: Mapping[type, Kind] = {
    Score: "scored",
    Trace: "traced",
    Fill: "filled",
    Generate: "generated",
    Sample: "sampled",
}

BLOCKS = b"sonde.blocks"

LOOK = 2**16  # bytes by which a column is judged

LOGPS = ("logps", "suffix_logps", "top_logps", "mass", "text_logps", "end_logp")

SOUND: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(LOGPS, ("a log-probability", np.isfinite)),
    "counts": ("a count", lambda counts: counts > 0),
}
"""By column what its numbers are called, and whether each is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What a block of a shard is: so many rows, answered in a way, and the names they share."""

    rows: int
    kind: Kind
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, rows: int, want: Want) -> Head:
        """The head of a block that wants this."""
        names = want.options if isinstance(want, Score) else ()
        names = want.watched if isinstance(want, Fill) else names
        return cls(rows=rows, kind=KIND[type(want)], names=names)


def heads_of(table: pa.Table) -> list[Head]:
    """What the blocks of a table are; raises ValueError on anything that is none."""
    try:
        entries = json.loads((table.schema.metadata or {})[BLOCKS])
        heads = [Head(rows=int(n), kind=kind, names=tuple(names)) for n, kind, names in entries]
    except (KeyError, TypeError, ValueError):
        raise ValueError("it does not say what its blocks are") from None
    if sum(head.rows for head in heads) != table.num_rows:
        raise ValueError("its blocks have other rows than its columns")
    if any(head.kind not in KINDS for head in heads):
        raise ValueError("its blocks are answered in no known way")
    check_columns(table, heads)
    return heads


def check_columns(table: pa.Table, heads: Sequence[Head]) -> None:
    """Refuse a table that lacks a column, or has one of another type."""
    needed = {name for head in heads for name in OF_KIND[head.kind]} | {*KEY, *TEXTS}
    if any(head.kind == "filled" and head.names for head in heads):
        needed |= {"watched_logps", "watched_ranks"}
    missing = needed - set(table.column_names)
    wrong = [
        n for n in table.column_names if n in ANSWERS and table.schema.field(n).type != ANSWERS[n]
    ]
    if missing or wrong:
        raise ValueError(
            f"it has other columns than this version of sonde writes ({min([*missing, *wrong])})"
        )


def blocks_of(table: pa.Table) -> Iterator[Answers]:
    """The blocks of a shard's table, one after the other."""
    heads = heads_of(table)
    table = table.combine_chunks()
    for head, start in zip(heads, accumulate((h.rows for h in heads), initial=0), strict=False):
        part = table.slice(start, head.rows)
        yield Answers(kind=head.kind, asked=asked_columns(part, head), columns=_answers(part, head))


def asked_columns(part: pa.Table, head: Head) -> pa.Table:
    """The columns that a block was asked with."""
    names = [n for n in part.column_names if n not in ANSWERS]
    if not head.names and head.kind == "scored":
        names.append("options")
    if head.kind == "traced":
        names.append("spans")
    return part.select(names)


def _answers(part: pa.Table, head: Head) -> Any:
    if head.kind == "filled":
        return read_filled(part, head)
    if head.kind in ("scored", "traced"):
        return read_rated(part, head)
    columns = [part.column(name).to_pylist() for name in OF_KIND[head.kind]]
    if head.kind == "generated":
        written = zip(*columns, _thoughts(part, "thoughts"), strict=True)
        return [
            Generated(text=text, logps=tuple(logps), end_logp=end, finished=ok, thoughts=own or "")
            for text, logps, end, ok, own in written
        ]
    drawn = zip(*columns, _thoughts(part, "drawn_thoughts"), strict=True)
    return [
        Sampled(texts=tuple(texts), counts=tuple(counts), thoughts=tuple(map(tuple, own or ())))
        for texts, counts, own in drawn
    ]


def _thoughts(part: pa.Table, name: str) -> Iterable[Any]:
    """What was thought before each answer; a shard without any has no such column."""
    there = name in part.column_names
    return part.column(name).to_pylist() if there else repeat(None, part.num_rows)


def read_filled(part: pa.Table, head: Head) -> FilledColumns:
    """The filled positions of a block."""
    lists, logps = _one(part, "top"), _one(part, "top_logps")
    ends = lists.offsets.to_numpy()
    lengths = np.diff(ends)
    width = int(lengths.max(initial=0))
    there = np.arange(width)[None] < lengths[:, None]
    top = np.full(there.shape, -1, dtype=np.int32)
    top[there] = lists.values.indices.to_numpy()[ends[0] : ends[-1]]
    values = np.full(there.shape, np.nan, dtype=np.float32)
    first = logps.offsets[0].as_py()
    values[there] = logps.values.to_numpy()[first : first + int(lengths.sum())]
    watched, ranks = watched_values(part, head)
    return FilledColumns(
        names=lists.values.dictionary.to_pylist(),
        top=top,
        top_logps=values,
        mass=_one(part, "mass").to_numpy(zero_copy_only=False),
        watched=head.names,
        watched_logps=watched,
        watched_ranks=ranks,
    )


def watched_values(part: pa.Table, head: Head) -> tuple[Any, Any]:
    """The log-probabilities and ranks of a block's watched names, [rows, names] each."""
    if not head.names:
        return np.zeros((head.rows, 0), np.float32), np.zeros((head.rows, 0), np.uint16)
    logps = _matrix(_one(part, "watched_logps"), len(head.names), "f")
    return logps, _matrix(_one(part, "watched_ranks"), len(head.names), "u")


def read_rated(part: pa.Table, head: Head) -> RatedColumns:
    """The scored options or traced spans of a block."""
    bounds, tokens, logps = _nested(_one(part, "logps"))
    after: tuple[Any, Any] = (None, None)
    if "suffix_logps" in part.column_names:
        column = _one(part, "suffix_logps")
        after = _nested(column)[1:] if column.null_count == 0 else after
    if head.kind == "traced":
        return RatedColumns(bounds=bounds, tokens=tokens, logps=logps)
    if head.names:
        names: Sequence[str] = head.names
        options = np.tile(np.arange(len(names), dtype=np.int32), head.rows)
    else:
        lists = _one(part, "options")
        names = lists.values.dictionary.to_pylist()
        start, stop = lists.offsets[0].as_py(), lists.offsets[-1].as_py()
        options = lists.values.indices.to_numpy()[start:stop]
    return RatedColumns(
        bounds=bounds,
        tokens=tokens,
        logps=logps,
        suffix_tokens=after[0],
        suffix_logps=after[1],
        names=names,
        options=options,
    )


def _nested(column: pa.ListArray) -> tuple[Any, Any, Any]:
    """Lists of lists laid end to end: where each begins, in both, and the values."""
    outer = column.offsets.to_numpy()
    inner = column.values.offsets.to_numpy()[outer[0] : outer[-1] + 1]
    values = column.values.values.to_numpy()[inner[0] : inner[-1]]
    return outer - outer[0], inner - inner[0], values


def _one(part: pa.Table, name: str) -> Any:
    column = part.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _matrix(column: Any, count: int, kind: str) -> Any:
    """The numbers of a column of bytes, `count` in each row."""
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[column.offset : column.offset + len(column) + 1]
    size = (ends[-1] - ends[0]) // max(len(column), 1) // count
    flat = np.frombuffer(data, dtype=f"<{kind}{size}", count=len(column) * count, offset=ends[0])
    return flat.reshape(len(column), count)


def unsound(table: pa.Table) -> str:
    """What is wrong with the first answer that holds such a number; empty where all are sound."""
    found = []
    for name, (noun, test) in SOUND.items():
        if name in table.column_names:
            bad = _first(table.column(name).combine_chunks(), test)
            found += [] if bad is None else [(bad[0], f"{bad[1]} where {noun} belongs")]
    if "watched_logps" in table.column_names:
        bad = _first_watched(table)
        found += [] if bad is None else [(bad[0], f"{bad[1]} where a log-probability belongs")]
    if not found:
        return ""
    row, told = min(found)
    key = Key(**{name: table.column(name)[row].as_py() for name in KEY})
    prefix, suffix = (table.column(name)[row].as_py() for name in ("prefix", "suffix"))
    return f"{told}, in the answer to {called(key, prefix, suffix)}"


def _first_watched(table: pa.Table) -> tuple[int, str] | None:
    """The first row with a watched name that may be answered and has no number."""
    start = 0
    for head in heads_of(table):
        if head.kind == "filled" and head.names:
            logps, ranks = watched_values(table.slice(start, head.rows), head)
            bad = ~np.isfinite(logps)
            bad &= ranks > 0
            if bad.any():
                row, name = (int(i) for i in np.argwhere(bad)[0])
                return start + row, str(float(logps[row, name])).replace("nan", "NaN")
        start += head.rows
    return None


def _first(column: Any, test: Callable[[Any], Any]) -> tuple[int, str] | None:
    """The first row of a column of numbers, or of lists of them, with one that fails the test."""
    bounds = []
    while pa.types.is_list(column.type):
        ends = column.offsets.to_numpy()
        bounds.append(ends - ends[0])
        column = column.values.slice(ends[0], bounds[-1][-1])
    if column.null_count:  # where there is no number there is nothing wrong with it
        values = np.array([1 if value is None else value for value in column.to_pylist()])
    else:
        values = column.to_numpy()
    fine = test(values)
    if fine.all():
        return None
    place = int(fine.argmin())
    told = str(values[place].item()).replace("nan", "NaN")
    for ends in reversed(bounds):
        place = int(np.searchsorted(ends, place, side="right")) - 1
    return place, told


def shard_bytes(table: pa.Table) -> memoryview:
    """Answered prompts as a Parquet file; equal rows, equal bytes."""
    sink = pa.BufferOutputStream()
    leaves = dict(leaf for field in table.schema for leaf in _leaves(field.name, field.type))
    plain = [name for name, type in leaves.items() if not pa.types.is_binary(type)]
    pq.write_table(
        table,
        sink,
        compression={name: "zstd" for name in leaves if name in plain or _packs(table[name])},
        write_statistics=plain,
        write_page_checksum=True,
        version="2.6",
        # numbers and texts hardly repeat
        use_dictionary=[name for name in plain if pa.types.is_dictionary(leaves[name])],
    )
    return memoryview(sink.getvalue())


def _leaves(name: str, type: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """What a column holds in the end, by Parquet's name."""
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        yield from _leaves(f"{name}.list.element", type.value_type)
    else:
        yield name, type


def _packs(column: pa.ChunkedArray) -> bool:
    """Whether the numbers of watched names become half as large, by their first bytes.

    Those of counting models do. A gigabyte of a real model's would take longer to pack than a GPU
    needs to compute it, for a few percent.
    """
    first = b"".join(column.slice(0, 16).drop_null().to_pylist())[:LOOK]
    return 2 * len(pa.compress(first, codec="zstd")) < len(first)


def read_shard(path: Path, digest: str | None) -> pa.Table:
    """A shard's table, if its bytes have the digest that was noted for it."""
    data = _read(path)
    if digest is None:
        raise CorruptShard(f"shard {path} has no digest by which it could be known")
    if hashlib.sha256(data).hexdigest() != digest:
        raise CorruptShard(f"shard {path} is corrupt (its bytes are not those that were written)")
    return table_of(path, data)


def prompt_count(path: Path) -> int:
    """How many prompts a shard holds, by its footer alone; none where it cannot be read."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError):
        return 0


def table_of(path: Path, data: bytes) -> pa.Table:
    """The table in a shard's bytes."""
    try:
        file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        # Arrow's threads may still hold Python bytes when the interpreter ends, and abort it
        table = file.read(use_threads=False)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = (str(error).splitlines() or ["unreadable"])[0]
        raise CorruptShard(f"shard {path} is corrupt ({reason})") from None
    try:
        heads_of(table)
    except ValueError as error:
        raise CorruptShard(
            f"shard {path} is not as this version of sonde writes it: {error}"
        ) from None
    if found := unsound(table):
        raise CorruptShard(f"shard {path} holds {found}")
    return table


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        if error.errno == errno.EIO:
            raise CorruptShard(f"shard {path} is corrupt ({error.strerror})") from None
        raise StoreError(f"shard {path} cannot be read: {error.strerror}") from None
