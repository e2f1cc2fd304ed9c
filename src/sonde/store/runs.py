"""A run folder: opened, locked, appended to shard by shard, read back.

manifest.json    what decides the answers, and what was around
dataset/         the dataset as it was asked, so that the run can be read anywhere
shards/00000.parquet …   answered prompts; a shard is there whole or not at all
shards.sha256    the digest of every shard, written before it
timings.jsonl    one line per session: when, how long, how many prompts
certificate.json how the model's numbers compare with a reference's, where that is known
complete.json    written last: number of shards and prompts, and the digests of what is above
quarantine/      shards that did not read back
"""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from sonde.core.abilities import Identity
from sonde.core.answers import Answered
from sonde.core.certificates import Certificate
from sonde.core.columns import Answers
from sonde.core.costs import Batches
from sonde.core.errors import CorruptShard, ModelError, NotFinite, StoreError
from sonde.core.files import (
    PARTIAL,
    add_line,
    explain_os_errors,
    refuse_link,
    take_lock,
    write_whole,
)
from sonde.core.fingerprints import file_hash
from sonde.core.prompts import Prompts
from sonde.store.manifest import (
    DATASET,
    MANIFEST,
    Complete,
    Digests,
    Manifest,
    differences,
    mismatch,
    read_timings,
    shard_name,
)
from sonde.store.rows import Answering, same_prompts
from sonde.store.shards import blocks_of, read_shard, shard_bytes, unsound

CERTIFICATE = "certificate.json"

NAMES = ("manifest.json", "complete.json", "report.html", CERTIFICATE)
"""The files that are written whole, and may leave a partial one when killed."""

OWN = ("shards", "shards/.lock", "shards.sha256", "dataset", "timings.jsonl", "quarantine")
"""What is written into or added to where it stands, so that it must stand here."""

AGAIN = "start the same run again"

FRESH = {"manifest.json", "dataset", "shards", "shards.sha256", CERTIFICATE}
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
        return self.path / shard_name(number)

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
            raise StoreError(
                f"{self.path} is no run folder: it has no manifest.json; give another folder"
            ) from None
        except OSError as error:
            raise StoreError(
                f"{path} cannot be read: {error.strerror}; give another folder"
            ) from None
        except ValueError as error:
            raise StoreError(
                f"{path} is no manifest of a run ({error}); give another folder"
            ) from None

    def completed(self) -> Complete | None:
        """What a finished run says of itself; None while it is unfinished."""
        path = self.path / "complete.json"
        try:
            return Complete.from_json(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise StoreError(f"{path} cannot be read ({error}); {AGAIN} to write it anew") from None

    def finished(self) -> Complete:
        """The same of a run that is whole and as it was when it ended; any other is refused."""
        complete = self.completed()
        if complete is None:
            raise StoreError(
                f"{self.path} holds an unfinished run ({len(self.shards())} shards so far); "
                f"{AGAIN} to finish it"
            )
        self._refuse_shards(complete.shards)
        if not self.keeps(complete, MANIFEST):
            raise StoreError(
                f"{self.path / MANIFEST} is not as it was when the run ended; {AGAIN} to write it "
                "anew"
            )
        if not self.keeps(complete, DATASET):
            raise self.damaged_dataset()
        return complete

    def _refuse_shards(self, count: int) -> None:
        """Refuse a folder that has other shards than so many from the first."""
        for path in map(self.shard, range(count)):
            if not path.exists():
                raise StoreError(f"{path} is missing; {AGAIN} to compute it")
        for path in self.beyond(count):
            raise StoreError(
                f"{path} is none of the run's {count} shards; {AGAIN}: it is put aside"
            )

    def beyond(self, shards: int) -> list[Path]:
        """The shards there are beside those of a run of so many."""
        ours = {self.shard(number) for number in range(shards)}
        return [path for path in self.shards() if path not in ours]

    def keeps(self, complete: Complete, name: str) -> bool:
        """Whether a file is as it was when the run ended, as far as that is known."""
        try:
            return complete.sealed.get(name) in (None, file_hash(self.path / name))
        except OSError:
            return False

    def damaged_dataset(self) -> StoreError:
        """What to say of a copy of the dataset that is not what was asked."""
        return StoreError(
            f"{self.dataset}, the run's own copy of its dataset, is damaged; {AGAIN} to write it "
            "anew"
        )

    def sealed(self) -> Complete | None:
        """What is known of how the run ended, if it was sealed with the manifest that is there."""
        with suppress(StoreError):
            complete = self.completed()
            if complete and complete.sealed and self.keeps(complete, MANIFEST):
                return complete
        return None

    def known(self) -> dict[Path, str]:
        """The digest of each shard: as the run was sealed, or else as they were written."""
        complete = self.sealed()
        if complete is None:
            return self.digests.read()
        return {self.shard(n): complete.sealed[shard_name(n)] for n in range(complete.shards)}

    def keeps_dataset(self) -> bool:
        """Whether the copy of the dataset is known to be the one that was asked."""
        complete = self.sealed()
        return complete is not None and self.keeps(complete, DATASET)

    def tables(self) -> Iterator[pa.Table]:
        """The shards as Arrow tables; one that does not read back is named."""
        complete, digests, prompts = self.finished(), self.known(), 0
        for path in map(self.shard, range(complete.shards)):
            try:
                table = read_shard(path, digests.get(path))
            except CorruptShard as error:
                raise CorruptShard(f"{error}; {AGAIN}: it is put aside and computed anew") from None
            prompts += table.num_rows
            yield table
        if prompts != complete.prompts:
            raise StoreError(
                f"{self.path / 'complete.json'} tells of {complete.prompts} prompts, but the "
                f"shards hold {prompts}; {AGAIN} to write it anew"
            )

    def shard_answers(self) -> Iterator[list[Answers]]:
        """The blocks of answered prompts of each shard."""
        return (list(blocks_of(table)) for table in self.tables())

    def answers(self) -> Iterator[Answers]:
        """Every block of answered prompts, shard by shard."""
        return chain.from_iterable(self.shard_answers())

    def answered(self) -> Iterator[Answered]:
        """Every answered prompt, one after the other."""
        for block in self.answers():
            yield from block.each()

    def seconds(self) -> float:
        """How long the run has been computed, over all its sessions."""
        return float(sum(entry["seconds"] for entry in self.timings()))

    def timings(self) -> list[dict[str, Any]]:
        """One entry per session that computed something."""
        return read_timings(self.path / "timings.jsonl")

    @contextmanager
    def writing(self, manifest: Manifest) -> Iterator[Writer]:
        """Open the folder for this run and no other, alone, making it where it is missing.

        One that was made for a model which then answers nothing goes again.
        """
        with explain_os_errors(self.path):
            made = not self.path.exists()
            self._refuse_foreign()
            (self.path / "shards").mkdir(parents=True, exist_ok=True)
            lock = take_lock(
                self.path / "shards" / ".lock",
                f"{self.path} is being written by another process; wait for it, or give another "
                "folder with -o",
            )
        with lock:
            with explain_os_errors(self.path):
                self._sweep()
                self._admit(manifest)
            try:
                yield Writer(self)
            except ModelError:
                if made and not self.shards():
                    shutil.rmtree(self.path, ignore_errors=True)
                raise

    def _refuse_foreign(self) -> None:
        """Refuse a folder that holds anything but a run, before touching it."""
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise StoreError(f"{self.path} is a file; give a folder for the run")
        for name in OWN:
            refuse_link(self.path / name)
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

    def _sweep(self) -> None:
        """Remove what a killed process left half written."""
        left = [self.path / (name + PARTIAL) for name in NAMES]
        for path in (*left, *(self.path / "shards").glob("*" + PARTIAL)):
            path.unlink(missing_ok=True)

    def _admit(self, manifest: Manifest) -> None:
        path = self.path / "manifest.json"
        if path.exists():
            found = self.manifest()
            unlike = differences(found, manifest)
            if not unlike and not self._altered():
                return
            if unlike and (self.shards() or {p.name for p in self.path.iterdir()} - FRESH):
                raise mismatch(self.path, unlike)
            shutil.rmtree(self.dataset, ignore_errors=True)  # that run never answered anything
            if not unlike:
                # the shards there go by it, and were answered with it
                manifest = replace(manifest, batches=found.batches, certificate=found.certificate)
        self.write(manifest)

    def write(self, manifest: Manifest) -> None:
        """Write the manifest whole or not at all."""
        data = manifest.to_json().encode(errors="backslashreplace")
        write_whole(self.path / MANIFEST, data)

    def _altered(self) -> bool:
        """Whether the manifest is not the one that the run was sealed with."""
        try:
            complete = self.completed()
        except StoreError:
            return False
        return complete is not None and not self.keeps(complete, MANIFEST)


def encoded(answers: Answering, model: Identity) -> memoryview:
    """A shard as it is written; one with a number that cannot be one is refused, with the model."""
    table = answers.table()
    if found := unsound(table):
        raise NotFinite(f"{model.name} ({model.dtype or 'no dtype'}) gives {found}")
    return shard_bytes(table)


class Writer:
    """Appends shards to a run folder that is locked for it."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._digests = folder.known()
        self.appended: list[Path] = []

    def holds(self, number: int, prompts: Prompts) -> bool:
        """Whether a shard is there and answers these prompts; a bad one is put aside, aloud."""
        path = self.folder.shard(number)
        if not path.exists():
            return False
        try:
            if same_prompts(read_shard(path, self._digests.get(path)), prompts):
                return True
            fault = f"shard {path} answers other prompts than this run asks"
        except CorruptShard as error:
            fault = str(error)
        log.warning("%s; put aside as %s and computed anew", fault, self.quarantine(path))
        return False

    def quarantine(self, path: Path) -> Path:
        """Put a shard aside, keeping it for whoever wants to look."""
        aside = self.folder.path / "quarantine"
        with explain_os_errors(self.folder.path):
            aside.mkdir(exist_ok=True)
            number = len(list(aside.iterdir()))
            while (target := aside / f"{path.name}.{number}").exists():
                number += 1
            path.rename(target)
        return target

    def append(self, number: int, data: memoryview) -> None:
        """Write a shard whole or not at all."""
        path = self.folder.shard(number)
        with explain_os_errors(self.folder.path):
            (self.folder.path / "complete.json").unlink(missing_ok=True)
            self._digests[path] = self.folder.digests.add(path, data)
            write_whole(path, data)
        self.appended.append(path)

    def finish(self, shards: int, prompts: int) -> None:
        """Say that the run is whole, and seal it; shards that are none of its own are put aside."""
        folder = self.folder
        for path in folder.beyond(shards):
            aside = self.quarantine(path)
            log.warning("%s is none of the run's %d shards; put aside as %s", path, shards, aside)
        digests = {path: self._digests[path] for path in map(folder.shard, range(shards))}
        with explain_os_errors(folder.path):
            folder.digests.settle(digests)
            sealed = {name: file_hash(folder.path / name) for name in (MANIFEST, DATASET)}
            sealed |= {shard_name(n): digest for n, digest in enumerate(digests.values())}
            complete = Complete(shards=shards, prompts=prompts, sealed=sealed)
            write_whole(folder.path / "complete.json", complete.to_json().encode())

    def fix(self, batches: Batches) -> None:
        """Say in the manifest how much goes through the model at once."""
        manifest = replace(self.folder.manifest(), batches=batches.entry())
        with explain_os_errors(self.folder.path):
            self.folder.write(manifest)

    def certify(self, found: Certificate, *, later: bool) -> None:
        """Keep the model's certificate, and say so in the manifest.

        `later`: there are answers for which it may not hold.
        """
        folder, manifest = self.folder, self.folder.manifest()
        data = found.to_json().encode(errors="backslashreplace")
        entry = {**found.entry, **({"later": "there were answers before"} if later else {})}
        with explain_os_errors(folder.path):
            write_whole(folder.path / CERTIFICATE, data)
            if manifest.certificate.get("digest") != found.digest:
                # a run that was whole is so again when it is sealed with this manifest
                (folder.path / "complete.json").unlink(missing_ok=True)
                folder.write(replace(manifest, certificate=entry))

    def log(self, entry: dict[str, Any]) -> None:
        """Add a line to the timings; a full disk must not hide what stopped the run."""
        with suppress(OSError):
            add_line(self.folder.path / "timings.jsonl", json.dumps(entry))
