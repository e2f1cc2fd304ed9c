"""Builders of datasets, one file each, and how their folders are written: whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sonde.core.errors import UsageError
from sonde.core.facts import Dataset
from sonde.data.format import is_dataset, write_dataset


def check_place(folder: Path, *, force: bool) -> None:
    """Refuse a folder that must not be written to, before any work is done."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError(f"{folder} is a file; give a new folder")
    if not any(folder.iterdir()):
        return
    if not is_dataset(folder):
        raise UsageError(f"{folder} holds something else than a dataset; give a new folder")
    if not force:
        raise UsageError(f"{folder} holds a dataset; give a new folder, or --force to replace it")


def write_whole(dataset: Dataset, folder: Path, *, force: bool = False) -> None:
    """Write a dataset beside its place and move it there once it is complete."""
    with placed(folder, force=force) as beside:
        write_dataset(dataset, beside)


@contextmanager
def placed(folder: Path, *, force: bool = False) -> Iterator[Path]:
    """A place beside the folder to write to; what is written moves there once it is complete."""
    check_place(folder, force=force)
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        new = aside / "new"
        yield new
        if folder.exists():
            folder.rename(aside / "replaced")
        new.rename(folder)
    except BaseException:
        if (aside / "replaced").exists() and not folder.exists():
            (aside / "replaced").rename(folder)
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
