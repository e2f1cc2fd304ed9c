"""A run folder: opened, locked, appended to shard by shard, read back.

manifest.json    what decides the answers, and what was around
dataset/         the dataset as it was asked, so that the run can be read anywhere
shards/00000.parquet …   answered prompts; a shard is there whole or not at all
shards.sha256    the digest of every shard
timings.jsonl    one line per session: when, how long, how many prompts
complete.json    written last: number of shards and prompts
quarantine/      shards that did not read back
"""

from __future__ import annotations

import fcntl
import json
import logging
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from sonde.core.answers import Answered
from sonde.core.errors import CorruptShard, NotFinite, RunMismatch, StoreError
from sonde.store.files import PARTIAL, add_line, told, write_whole
from sonde.store.manifest import Manifest, differences
from sonde.store.rows import from_table, to_table
from sonde.store.shards import Digests, read_shard, shard_bytes, shard_keys
from sonde.store.sound import unsound

NAMES = ("manifest.json", "complete.json", "report.html")
"""The files that are written whole, and may leave a partial one when killed."""

FRESH = {"manifest.json", "dataset", "shards", "shards.sha256"}
"""What a run has made before its first answer is kept."""

log = logging.getLogger(__name__)


class RunFolder:
    """The files of one run. Reading needs no lock; writing goes through `writing()`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def dataset(self) -> Path:
        """Where the run's own copy of its dataset stands."""
        return self.path / "dataset"

    @property
    def digests(self) -> Digests:
        """The digests of the shards."""
        return Digests(self.path / "shards.sha256")

    def shard(self, number: int) -> Path:
        """Where a shard stands, or will."""
        return self.path / "shards" / f"{number:05d}.parquet"

    def shards(self) -> list[Path]:
        """The shards there are, in order."""
        found = (self.path / "shards").glob("*.parquet")
        ours = (path for path in found if re.fullmatch(r"\d{5,}", path.stem))
        return sorted(ours, key=lambda path: int(path.stem))

    def manifest(self) -> Manifest:
        """The run's manifest."""
        path = self.path / "manifest.json"
        try:
            return Manifest.from_json(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise StoreError(f"{self.path} is no run folder: it has no manifest.json") from None
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise StoreError(
                f"{path} is no manifest of a run ({error}); give another folder"
            ) from None

    def completed(self) -> dict[str, int] | None:
        """Number of shards and prompts of a finished run; None while it is unfinished."""
        path = self.path / "complete.json"
        try:
            body = json.loads(path.read_text(encoding="utf-8"))
            return {name: int(body[name]) for name in ("shards", "prompts")}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"{path} cannot be read ({error}); run the same 'sonde run' again to write it anew"
            ) from None

    def tables(self) -> Iterator[pa.Table]:
        """The shards as Arrow tables; one that does not read back is named."""
        digests = self.digests.read()
        for path in self.shards():
            try:
                yield read_shard(path, digests.get(path))
            except CorruptShard as error:
                raise CorruptShard(
                    f"{error}; run the same 'sonde run' again: it is put aside and computed anew"
                ) from None

    def answered(self) -> Iterator[Answered]:
        """Every answered prompt, shard by shard."""
        for table in self.tables():
            yield from from_table(table)

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
        with told(self.path):
            self._refuse_foreign()
            (self.path / "shards").mkdir(parents=True, exist_ok=True)
            lock = (self.path / "shards" / ".lock").open("w")
        with lock:
            self._take(lock)
            with told(self.path):
                self._sweep()
                self._admit(manifest)
            yield Writer(self)

    def _refuse_foreign(self) -> None:
        """Refuse a folder that holds anything but a run, before touching it."""
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise StoreError(f"{self.path} is a file; give a folder for the run")
        if (self.path / "manifest.json").exists():
            self.manifest()
            return
        begun = {"shards", "manifest.json" + PARTIAL}  # what a run killed at once leaves
        strangers = {p.name for p in self.path.iterdir()} - begun
        strangers |= {f"shards/{p.name}" for p in self.path.glob("shards/*")} - {"shards/.lock"}
        if strangers:
            raise StoreError(
                f"{self.path} is not empty and holds no run ({min(strangers)!r} is in it); "
                "give a new folder with -o"
            )

    def _take(self, lock: IO[str]) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(
                f"{self.path} is being written by another process; wait for it, or give another "
                "folder with -o"
            ) from None
        except OSError as error:
            raise StoreError(f"{self.path} cannot be locked: {error.strerror}") from None

    def _sweep(self) -> None:
        """Remove what a killed process left half written."""
        left = [self.path / (name + PARTIAL) for name in NAMES]
        for path in (*left, *(self.path / "shards").glob("*" + PARTIAL)):
            path.unlink(missing_ok=True)

    def _admit(self, manifest: Manifest) -> None:
        path = self.path / "manifest.json"
        if path.exists():
            unlike = differences(self.manifest(), manifest)
            if not unlike:
                return
            if self.shards() or {p.name for p in self.path.iterdir()} - FRESH:
                raise RunMismatch(
                    f"{self.path} holds a different run:\n  "
                    + "\n  ".join(unlike)
                    + "\ngive another folder with -o, or the settings of the run that is there"
                )
            shutil.rmtree(self.dataset, ignore_errors=True)  # that run never answered anything
        write_whole(path, manifest.to_json().encode())


class Writer:
    """Appends shards to a run folder that is locked for it."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._digests = folder.digests.read()

    def holds(self, number: int, keys: Sequence[tuple[str, ...]]) -> bool:
        """Whether a shard is there and answers these prompts; a bad one is put aside, aloud."""
        path = self.folder.shard(number)
        if not path.exists():
            return False
        try:
            if shard_keys(read_shard(path, self._digests.get(path))) == list(keys):
                return True
            fault = f"shard {path} answers other prompts than this run asks"
        except CorruptShard as error:
            fault = str(error)
        log.warning("%s; put aside as %s and computed anew", fault, self.quarantine(path))
        return False

    def quarantine(self, path: Path) -> Path:
        """Put a shard aside, keeping it for whoever wants to look."""
        aside = self.folder.path / "quarantine"
        with told(self.folder.path):
            aside.mkdir(exist_ok=True)
            target = aside / f"{path.name}.{len(list(aside.iterdir()))}"
            path.rename(target)
        return target

    def append(self, number: int, rows: Sequence[Answered]) -> None:
        """Write a shard whole or not at all; one with a number that cannot be one is refused."""
        path, table = self.folder.shard(number), to_table(rows)
        if found := unsound(table):
            model = self.folder.manifest().model
            raise NotFinite(f"{model['name']} ({model['dtype'] or 'no dtype'}) gives {found}")
        data = shard_bytes(table)
        with told(self.folder.path):
            self.folder.digests.add(path, data)
            write_whole(path, data)

    def finish(self, shards: int, prompts: int) -> None:
        """Say that the run is whole."""
        body = json.dumps({"shards": shards, "prompts": prompts}) + "\n"
        with told(self.folder.path):
            write_whole(self.folder.path / "complete.json", body.encode())

    def log(self, entry: dict[str, Any]) -> None:
        """Add a line to the timings; a full disk must not hide what stopped the run."""
        with suppress(OSError):
            add_line(self.folder.path / "timings.jsonl", json.dumps(entry))
