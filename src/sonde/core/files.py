"""Files that are there whole or not at all, or for good; locks, and JSON of any kind.

Says what a failed write means. Knows no content.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn

from sonde.core.errors import StoreError

PARTIAL = ".partial"
DEEPEST = 32
"""More levels than any JSON of ours has."""

TOO_DEEP = "it is nested too deeply"


@contextmanager
def whole(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that takes its place when it is finished.

    A link in its place, or in that of its half, is replaced and not followed.
    """
    partial = path.with_name(path.name + PARTIAL)
    partial.unlink(missing_ok=True)
    try:
        with partial.open("xb") as file:
            yield file
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def take_lock(path: Path, busy: str = "") -> IO[bytes]:
    """Lock a file until it is closed, leaving what is in it.

    Waits for whoever has it; or fails at once, with the words for one that is `busy`.
    """
    file = opened(path)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
    except OSError as error:
        file.close()
        if isinstance(error, BlockingIOError):
            raise StoreError(busy) from None
        raise
    return file


def opened(path: Path, flags: int = 0) -> IO[bytes]:
    """A file to read and write, made where it is missing; never one behind a link."""
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o666)
    return os.fdopen(number, "rb+")


def parsed(text: str) -> Any:
    """The value of a JSON text; raises ValueError on anything else.

    >>> parsed('{"a": NaN}')
    Traceback (most recent call last):
    ValueError: NaN is no number
    """
    try:
        value = json.loads(text, parse_constant=_refused, parse_float=_finite)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for each in level for inner in _inside(each)]
    if level:
        raise ValueError(TOO_DEEP)
    return value


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _refused(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _finite(digits: str) -> float:
    value = float(digits)
    return value if abs(value) != float("inf") else _refused(digits)


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
