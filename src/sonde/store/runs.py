"""A run folder: opened, locked, appended to shard by shard, read back.

manifest.json    what decides the answers, and what was around
dataset/         the dataset as it was asked, so that the run can be read anywhere
shards/00000.parquet …   answered prompts; a shard is there whole or not at all
timings.jsonl    one line per session: when, how long, how many prompts
complete.json    written last: number of shards and prompts
quarantine/      shards that did not read back
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sonde.core.answers import Answered
from sonde.core.errors import CorruptShard, RunMismatch, StoreError
from sonde.store.manifest import Manifest, differences
from sonde.store.rows import SCHEMA, from_table, to_table

OURS = {
    "manifest.json",
    "dataset",
    "shards",
    "timings.jsonl",
    "complete.json",
    "quarantine",
    "report.html",
}
NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class RunFolder:
    """The files of one run. Reading needs no lock; writing goes through `writing()`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def dataset(self) -> Path:
        """Where the run's own copy of its dataset stands."""
        return self.path / "dataset"

    def shard(self, number: int) -> Path:
        """Where a shard stands, or will."""
        return self.path / "shards" / f"{number:05d}.parquet"

    def shards(self) -> list[Path]:
        """The shards there are, in order."""
        return sorted((self.path / "shards").glob("[0-9]*.parquet"))

    def manifest(self) -> Manifest:
        """The run's manifest."""
        try:
            return Manifest.from_json((self.path / "manifest.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise StoreError(f"{self.path} is no run folder: it has no manifest.json") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{self.path / 'manifest.json'} cannot be read: {error}") from None

    def completed(self) -> dict[str, int] | None:
        """Number of shards and prompts of a finished run; None while it is unfinished."""
        try:
            body: dict[str, int] = json.loads((self.path / "complete.json").read_text())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.path / 'complete.json'} cannot be read: {error}") from None
        return body

    def answered(self) -> Iterator[Answered]:
        """Every answered prompt, shard by shard; a shard that does not read back is named."""
        for path in self.shards():
            yield from from_table(read_shard(path))

    def seconds(self) -> float:
        """How long the run has been computed, over all its sessions."""
        return sum(float(entry.get("seconds", 0)) for entry in self.timings())

    def timings(self) -> list[dict[str, Any]]:
        """One entry per session that computed something."""
        try:
            lines = (self.path / "timings.jsonl").read_text().splitlines()
        except FileNotFoundError:
            return []
        entries = []
        for line in lines:
            try:
                entries.append(json.loads(line))
            except ValueError:
                continue  # a line cut off by a kill
        return entries

    @contextmanager
    def writing(self, manifest: Manifest) -> Iterator[Writer]:
        """Open the folder for this run and no other, alone, making it where it is missing."""
        self._refuse_foreign()
        with told(self.path):
            (self.path / "shards").mkdir(parents=True, exist_ok=True)
            lock = (self.path / "shards" / ".lock").open("w")
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StoreError(f"{self.path} is being written by another process") from None
            self._admit(manifest)
            for left in (self.path / "shards").glob("*.partial"):
                left.unlink()
            yield Writer(self)

    def _refuse_foreign(self) -> None:
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise StoreError(f"{self.path} is a file; give a folder for the run")
        strangers = sorted(p.name for p in self.path.iterdir() if p.name not in OURS)
        if not (self.path / "manifest.json").exists() and strangers:
            raise StoreError(
                f"{self.path} is not empty and holds no run ({strangers[0]!r} is in it); "
                "give a new folder with -o"
            )

    def _admit(self, manifest: Manifest) -> None:
        if not (self.path / "manifest.json").exists():
            with told(self.path):
                write_whole(self.path / "manifest.json", manifest.to_json().encode())
            return
        unlike = differences(self.manifest(), manifest)
        if unlike:
            raise RunMismatch(
                f"{self.path} holds a different run:\n  "
                + "\n  ".join(unlike)
                + "\ngive another folder with -o, or the settings of the run that is there"
            )


class Writer:
    """Appends shards to a run folder that is locked for it."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    def holds(self, number: int, keys: Sequence[tuple[str, ...]]) -> bool:
        """Whether a shard is there and answers these prompts; a bad one is put aside."""
        path = self.folder.shard(number)
        if not path.exists():
            return False
        try:
            table = read_shard(path)
        except CorruptShard:
            self.quarantine(path)
            return False
        if shard_keys(table) != list(keys):
            self.quarantine(path)
            return False
        return True

    def quarantine(self, path: Path) -> Path:
        """Put a shard aside, keeping it for whoever wants to look."""
        aside = self.folder.path / "quarantine"
        with told(self.folder.path):
            aside.mkdir(exist_ok=True)
            target = aside / f"{path.name}.{len(list(aside.iterdir()))}"
            path.rename(target)
        return target

    def append(self, number: int, rows: Sequence[Answered]) -> None:
        """Write a shard whole or not at all."""
        sink = pa.BufferOutputStream()
        pq.write_table(
            to_table(rows), sink, compression="zstd", write_page_checksum=True, version="2.6"
        )
        with told(self.folder.path):
            write_whole(self.folder.shard(number), sink.getvalue().to_pybytes())

    def finish(self, shards: int, prompts: int) -> None:
        """Say that the run is whole."""
        body = json.dumps({"shards": shards, "prompts": prompts}) + "\n"
        with told(self.folder.path):
            write_whole(self.folder.path / "complete.json", body.encode())

    def log(self, entry: dict[str, Any]) -> None:
        """Add a line to the timings."""
        with told(self.folder.path), (self.folder.path / "timings.jsonl").open("a") as file:
            file.write(json.dumps(entry) + "\n")


def read_shard(path: Path) -> pa.Table:
    """A shard's table, every page checked against its checksum."""
    try:
        table = pq.ParquetFile(path, page_checksum_verification=True).read()
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = (str(error).splitlines() or ["unreadable"])[0]
        raise CorruptShard(
            f"shard {path} is corrupt ({reason}); run the same 'sonde run' again: it is put aside "
            "and computed anew"
        ) from None
    if table.schema.names != SCHEMA.names:
        raise CorruptShard(f"shard {path} has other columns than this version of sonde writes")
    return table


def shard_keys(table: pa.Table) -> list[tuple[str, ...]]:
    """The join keys of a shard's rows, with the text around the answer."""
    names = ("fact", "relation", "template", "subject", "context", "prefix", "suffix")
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all, even if the machine stops."""
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Say what a failed write means for the run."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_SPACE:
            raise StoreError(
                f"no space left for {path} ({error.strerror}); what was finished is kept: free "
                "some space and run the same command again"
            ) from error
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
