"""One shard as bytes and back, with a digest beside it so that no changed bit is read as an answer.

Parquet's own checksums cover its pages, but neither their headers nor the footer.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sonde.core.errors import CorruptShard, StoreError
from sonde.store.files import add_line, write_whole
from sonde.store.schema import heads_of
from sonde.store.sound import unsound


class Digests:
    """The SHA-256 of every shard, a line each; `sha256sum -c shards.sha256` reads it too.

    A shard's line is written before the shard, so that no shard stands without one. What a
    finished run is held against stands in its complete.json.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, shard: Path, data: bytes) -> str:
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


def shard_bytes(table: pa.Table) -> bytes:
    """Answered prompts as a Parquet file; equal rows, equal bytes."""
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        compression="zstd",
        write_page_checksum=True,
        version="2.6",
        use_dictionary=[leaf for field in table.schema for leaf in _names(field)],
    )
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _names(field: pa.Field) -> Iterator[str]:
    """Where a column holds names, by Parquet's name; numbers and texts hardly repeat."""
    if pa.types.is_dictionary(field.type):
        yield field.name
    elif pa.types.is_list(field.type) and pa.types.is_dictionary(field.type.value_type):
        yield f"{field.name}.list.element"


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
