"""One shard as bytes and back, with a digest beside it so that no changed bit is read as an answer,
nor a number that cannot be one.

Parquet's own checksums cover its pages, but neither their headers nor the footer. Every
log-probability is finite: an answer that is not allowed has none (null), and a control gives what
it never saw a small one.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sonde.core.errors import CorruptShard, StoreError
from sonde.core.files import add_line, write_whole
from sonde.core.prompts import KEY, Key, called
from sonde.store.blocks import heads_of, watched_values

LOOK = 2**16  # bytes by which a column is judged

LOGPS = ("logps", "suffix_logps", "top_logps", "mass", "text_logps", "end_logp")

SOUND: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(LOGPS, ("a log-probability", np.isfinite)),
    "counts": ("a count", lambda counts: counts > 0),
}
"""By column what its numbers are called, and whether each is one."""


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


class Digests:
    """The SHA-256 of every shard, a line each; `sha256sum -c shards.sha256` reads it too.

    A shard's line is written before the shard, so that no shard stands without one. What a
    finished run is held against stands in its complete.json.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, shard: Path, data: bytes | memoryview) -> str:
        """Note the digest of a shard that is about to be written; the last line counts."""
        digest = hashlib.sha256(data).hexdigest()
        add_line(self.path, self._line(shard, digest))
        return digest

    def settle(self, digests: Mapping[Path, str]) -> None:
        """Let there be these lines and no others."""
        data = "".join(f"{self._line(*pair)}\n" for pair in digests.items()).encode()
        if not self.path.is_file() or self.path.read_bytes() != data:
            write_whole(self.path, data)

    def read(self) -> dict[Path, str]:
        """The digest of each shard."""
        try:
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror}; remove it") from None
        pairs = (line.split("  ", 1) for line in text.splitlines())
        return {self.path.parent / pair[1]: pair[0] for pair in pairs if len(pair) == 2}

    def _line(self, shard: Path, digest: str) -> str:
        return f"{digest}  {shard.relative_to(self.path.parent).as_posix()}"


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
