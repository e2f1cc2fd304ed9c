"""Files written for good, and what a failed write means. Knows no run."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sonde.core.errors import StoreError
from sonde.core.files import opened, whole

NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def write_whole(path: Path, data: bytes | memoryview) -> None:
    """Write a file so that it is there whole or not at all, even if the machine stops."""
    with whole(path) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def add_line(path: Path, line: str) -> None:
    """Add a line to a file; one that a kill cut off before it is closed first."""
    with opened(path, os.O_APPEND) as file:
        if size := file.seek(0, os.SEEK_END):
            file.seek(size - 1)
            line = line if file.read(1) == b"\n" else "\n" + line
        file.write(line.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def refuse_link(path: Path) -> None:
    """Refuse to write to what may stand anywhere else."""
    if path.is_symlink():
        raise StoreError(
            f"{path} is a link, and a run writes into its own folder only; remove the link, or "
            "give another folder with -o"
        )


@contextmanager
def explain_os_errors(path: Path) -> Iterator[None]:
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
