"""Hash large files once: a hash is remembered while its file's size and time stay the same."""

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
    key = f"{path.resolve()}:{stat.st_size}:{stat.st_mtime_ns}"
    known = _read(memory)
    if key not in known:
        known[key] = file_hash(path)
        _write(memory, known)
    return known[key]


def _read(memory: Path) -> dict[str, str]:
    try:
        known = json.loads(memory.read_text())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _write(memory: Path, known: dict[str, str]) -> None:
    partial = memory.with_suffix(f".{os.getpid()}")
    try:
        memory.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(known))
        partial.replace(memory)
    except OSError:
        warnings.warn(f"{memory} cannot be written; hashes are not remembered", stacklevel=3)
