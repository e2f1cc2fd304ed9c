"""Files that are there whole or not at all, and what a failed write means. Knows no run."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sonde.core.errors import StoreError

NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
PARTIAL = ".partial"


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all, even if the machine stops."""
    partial = path.with_name(path.name + PARTIAL)
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def add_line(path: Path, line: str) -> None:
    """Add a line to a file; one that a kill cut off before it is closed first."""
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            line = line if file.read(1) == b"\n" else "\n" + line
        file.write(line.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


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
