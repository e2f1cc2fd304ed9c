"""How long a run took: a line for each session that computed something. For the record alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sonde.core.errors import StoreError
from sonde.core.files import parsed
from sonde.core.shapes import fits

FIELDS: dict[str, Any] = {
    "began": int | float,
    "seconds": int | float,
    "prompts": int,
    "model": dict[str, str | int | float | bool | None],
    "versions": dict[str, str],
}
LONGEST = 2**40  # seconds


def read_timings(path: Path) -> list[dict[str, Any]]:
    """The sessions; a line that is none, cut off by a kill or damaged, is passed over."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}; remove it") from None
    return [entry for line in lines if (entry := _session(line)) is not None]


def _session(line: str) -> dict[str, Any] | None:
    try:
        found = parsed(line)
    except ValueError:
        return None
    if not isinstance(found, dict) or "seconds" not in found:
        return None
    entry = {name: found[name] for name in FIELDS if name in found}
    sound = all(fits(value, FIELDS[name]) for name, value in entry.items())
    return entry if sound and 0 <= entry["seconds"] < LONGEST else None
