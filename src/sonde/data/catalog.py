"""Find a dataset by the name or path a user gives."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, cast

from sonde.core.components import find
from sonde.core.errors import DataError, UsageError, nearest
from sonde.core.facts import Dataset
from sonde.data.format import is_dataset, open_dataset

BUNDLED = Path(__file__).parent / "bundled"


class Reader(Protocol):
    """Reads one public dataset's files."""

    name: str
    summary: str

    def recognises(self, folder: Path) -> bool:
        """Whether a folder looks like this dataset."""

    def read(self, folder: Path) -> Dataset:
        """Open it."""


def readers() -> dict[str, Reader]:
    """Every reader by name."""
    return cast(dict[str, Reader], find("sonde.data.readers", "sonde.readers"))


def bundled() -> dict[str, Path]:
    """The datasets that come with sonde, by name."""
    return {p.name: p for p in sorted(BUNDLED.iterdir()) if is_dataset(p)}


def load(reference: str) -> Dataset:
    """Open a dataset: a bundled name, a folder, or READER:FOLDER."""
    if reference in bundled():
        return open_dataset(bundled()[reference])
    scheme, colon, rest = reference.partition(":")
    if colon and scheme in readers():
        return readers()[scheme].read(_folder(rest))
    if colon and scheme.isidentifier() and not Path(reference).exists():
        raise UsageError(f"no reader called {scheme!r}; {nearest(scheme, readers())}")
    if not Path(reference).exists() and "/" not in reference:
        raise UsageError(
            f"no dataset called {reference!r}, and no folder of that name; "
            f"{nearest(reference, [*bundled(), *readers()])}"
        )
    folder = _folder(reference)
    if is_dataset(folder):
        return open_dataset(folder)
    for reader in readers().values():
        if reader.recognises(folder):
            return reader.read(folder)
    raise DataError(
        f"{folder} is no dataset: it has no dataset.json, and no reader knows its files "
        f"(readers: {', '.join(sorted(readers()))}); see 'sonde data --help'"
    )


def _folder(text: str) -> Path:
    path = Path(text).expanduser()
    if not path.is_dir():
        raise DataError(f"{path} is not a folder; give the folder that holds the dataset")
    return path
