"""Read ParaRel's patterns: one file a relation, `P36.jsonl`, one pattern a line. It has no facts.

The patterns were written by hand, so their source is `manual`, and each is a group of its own:
ParaRel does not say which was made from which.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sonde.core.errors import DataError
from sonde.core.facts import Card
from sonde.data.format import hash_files
from sonde.data.lines import read_rows
from sonde.data.wordings import Wording, Wordings, gather


@dataclass(frozen=True, slots=True)
class ParaRelReader:
    """ParaRel's patterns, as published."""

    name: ClassVar[str] = "pararel"
    summary: ClassVar[str] = "ParaRel's templates: P*.jsonl with 'pattern'"

    def templates(self, folder: Path) -> Wordings:
        """Read every pattern of the folder."""
        paths = sorted(folder.glob("P*.jsonl"))
        if not paths:
            raise DataError(f"{folder} holds no P*.jsonl; give the folder of ParaRel's patterns")
        templates, notes = gather(self.name, _wordings(paths))
        return Wordings(
            card=Card(name=self.name, licence="MIT", sources=("ParaRel",)),
            templates=templates,
            fingerprint=hash_files(folder, paths),
            notes=notes,
        )


def _wordings(paths: list[Path]) -> Iterator[Wording]:
    for path in paths:
        for row in read_rows(path):
            yield Wording(relation=path.stem, text=row.text("pattern"), source="manual")


COMPONENT = ParaRelReader()
