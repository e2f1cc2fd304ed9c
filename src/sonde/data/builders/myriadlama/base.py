"""The facts to begin with: one for each subject and relation, with all its correct objects.

What can be guessed from names has been left out before, object by object (`runs/guessing.py`). What
a masked model judged is kept in the working folder, so that it is asked once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from sonde.core.errors import DataError
from sonde.core.fact_frames import is_apart
from sonde.core.facts import Dataset
from sonde.core.fingerprints import fingerprint
from sonde.data.builders import write_whole
from sonde.data.catalog import merged
from sonde.data.format import is_dataset, open_dataset

KEY = "base.key"


def pairs(dataset: Dataset) -> Dataset:
    """The same facts, those of one subject made one; facts collected apart are left out."""
    alone = replace(
        dataset,
        read=lambda id: dataset.frame(id).filter(~is_apart()),
        fingerprint=fingerprint([dataset.fingerprint, "without apart"]),
    )
    held = tuple(r for r in alone.relations if alone.frame(r.id).height)
    if not held:
        raise DataError(f"dataset {dataset.name!r} has no facts to build on")
    return merged(replace(alone, relations=held))


def kept(work: Path, key: str, make: Callable[[], Dataset]) -> Dataset:
    """A dataset that was made with this key before, or else is made, and kept in a folder."""
    folder, written = work / "base", work / KEY
    if is_dataset(folder) and written.is_file() and written.read_text(encoding="utf-8") == key:
        return open_dataset(folder)
    made = make()
    written.unlink(missing_ok=True)
    write_whole(made, folder, force=True)
    written.write_text(key, encoding="utf-8")
    return open_dataset(folder)
