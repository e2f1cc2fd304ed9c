"""The folder beside a dataset that is being built: what is kept until it is there, and a lock."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sonde.core.errors import StoreError
from sonde.core.files import take_lock

LOCK = ".lock"


def work_of(out: Path) -> Path:
    """Where a build keeps what it was answered."""
    named = out if out.name not in ("", "..") else out.resolve()
    return named.with_name(f"{named.name}.work")


@contextmanager
def working(out: Path) -> Iterator[Path]:
    """That folder, for nobody else meanwhile: another build into the same place is refused.

    A folder in which nothing is kept is gone afterwards.
    """
    work = work_of(out)
    busy = f"{out} is being built by another process; wait for it, or give another folder with -o"
    try:
        work.mkdir(parents=True, exist_ok=True)
        lock = take_lock(work / LOCK, busy)
    except OSError as error:
        raise StoreError(f"{work} cannot be written: {error.strerror or error}") from None
    with lock:
        if not _stands(work / LOCK, lock.fileno()):
            raise StoreError(busy)
        try:
            yield work
        finally:
            if work.is_dir() and {path.name for path in work.iterdir()} <= {LOCK}:
                shutil.rmtree(work, ignore_errors=True)


def _stands(path: Path, number: int) -> bool:
    """Whether an open file is still there; whoever had it before may have removed it."""
    try:
        return os.path.samestat(path.stat(), os.fstat(number))
    except OSError:
        return False
