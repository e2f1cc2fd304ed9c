"""Names of things by identifier, from a table. Knows nothing of facts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from sonde.core.errors import DataError
from sonde.data.builders.triples import clean
from sonde.data.readers.aliases import read_names


class Named(NamedTuple):
    """What a thing is called, and the identifier that it goes by now: items are merged at times."""

    names: tuple[str, ...]
    same: str


Names = Mapping[str, Named]


def table_names(folder: Path, language: str, wanted: Collection[str]) -> Names:
    """The names that the table of a language has for some identifiers: `en.tsv`."""
    rows = read_names(names_path(folder, language))
    return {id: named(names, id) for id, names in rows if id in wanted}


def names_path(folder: Path, language: str) -> Path:
    """Where the names of a language stand; refuses clearly where they do not."""
    path = folder / f"{language}.tsv"
    if not path.is_file():
        raise DataError(
            f"{path} is missing: names in {language!r} stand there, an identifier and its names a "
            "line, separated by tabs"
        )
    return path


def named(names: Collection[str], id: str) -> Named:
    """Names without spare spaces, each once."""
    return Named(tuple(filter(None, dict.fromkeys(map(clean, names)))), id)
