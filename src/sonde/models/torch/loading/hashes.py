"""Hashes of files of weights, each computed once.

A hash of a large file is remembered while nothing has happened to the file: size and time of change
can be set back; inode and time of status change cannot.
"""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

from sonde.core.fingerprints import file_hash
from sonde.models.options import cache_folder


def remembered_hash(path: Path) -> str:
    """SHA-256 of a file, in hex, out of the cache where it is there."""
    stat = path.stat()
    memory = cache_folder() / "hashes.json"
    marks = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_dev, stat.st_ino)
    key = ":".join(map(str, (path.resolve(), *marks)))
    known = _remembered(memory)
    if key not in known:
        known[key] = file_hash(path)
        _remember(memory, known)
    return known[key]


def _remembered(memory: Path) -> dict[str, str]:
    try:
        known = json.loads(memory.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {key: value for key, value in known.items() if isinstance(value, str)}


def _remember(memory: Path, known: dict[str, str]) -> None:
    partial = memory.with_suffix(f".{os.getpid()}")
    try:
        memory.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(known))
        partial.replace(memory)
    except OSError:
        warnings.warn(f"{memory} cannot be written; hashes are not remembered", stacklevel=3)
