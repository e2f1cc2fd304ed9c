"""Read the templates that `sonde optimise` made: templates.jsonl of its folder. It has no facts.

Texts are taken as they stand, spaces and all: a marker's neighbours decide how it is tokenised.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sonde.core.errors import DataError
from sonde.core.facts import Card, Template
from sonde.data.format import hash_files, template_of
from sonde.data.lines import read_object, read_rows
from sonde.data.wordings import Wordings


@dataclass(frozen=True, slots=True)
class OptimisedReader:
    """Templates found by training."""

    name: ClassVar[str] = "optimised"
    summary: ClassVar[str] = "templates that 'sonde optimise' made: manifest.json, templates.jsonl"

    def templates(self, folder: Path) -> Wordings:
        """Read every template of a finished folder."""
        manifest = _manifest(folder)
        path = folder / "templates.jsonl"
        found: dict[str, tuple[Template, ...]] = {}
        for row in read_rows(path):
            relation = row.text("relation")
            found[relation] = (*found.get(relation, ()), template_of(row))
        if not found:
            raise DataError(f"{path} holds no template: no relation could be optimised")
        counts = manifest.get("counts")
        notes = counts.get("relations_not_made", 0) if isinstance(counts, dict) else 0
        return Wordings(
            card=Card(name=f"{self.name}-{manifest['method']}", licence="as the training facts'"),
            templates=found,
            fingerprint=hash_files(folder, [path]),
            notes={"relations_not_optimised": notes},
        )


def _manifest(folder: Path) -> dict[str, object]:
    if not (folder / "manifest.json").is_file():
        raise DataError(f"{folder} holds no manifest.json; give a folder 'sonde optimise' made")
    row = read_object(folder / "manifest.json")
    row.text("method")
    if row.values.get("complete") is not True:
        raise DataError(
            f"{folder} is not finished; run the command that made it again, and it goes on"
        )
    return row.values


COMPONENT = OptimisedReader()
