"""Read LPAQA's templates with their weights: mined, paraphrased, or the best one of each relation.

    lpaqa:FOLDER                       what stands in mine/ and paraphrase/
    lpaqa:FOLDER/mine                  the mined ones alone (so for paraphrase)
    lpaqa:FOLDER/top1_relations.jsonl  the best one of each relation; these carry no weight

It has no facts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sonde.core.errors import DataError
from sonde.core.facts import Card, Source
from sonde.data.format import hash_files
from sonde.data.lines import read_rows
from sonde.data.wordings import Wording, Wordings, gather

PARTS: dict[str, Source] = {"mine": "mined", "paraphrase": "paraphrase"}


@dataclass(frozen=True, slots=True)
class LpaqaReader:
    """LPAQA's templates, as published."""

    name: ClassVar[str] = "lpaqa"
    summary: ClassVar[str] = "LPAQA's templates: mine/P*.jsonl, paraphrase/P*.jsonl, top1_*.jsonl"

    def templates(self, folder: Path) -> Wordings:
        """Read the templates of the folder, of one part of it, or of the file of best ones."""
        if folder.is_file():
            name, paths, wordings = "lpaqa-top1", [folder], _best(folder)
        elif folder.name in PARTS:
            name, paths = f"lpaqa-{folder.name}", sorted(folder.glob("P*.jsonl"))
            wordings = _part(paths)
        else:
            name, paths = "lpaqa", [p for d in PARTS for p in sorted(folder.glob(f"{d}/P*.jsonl"))]
            wordings = _part(paths)
        if not paths:
            raise DataError(
                f"{folder} holds no template of LPAQA; give the folder that holds mine/ and "
                "paraphrase/, one of these two, or the file top1_relations.jsonl"
            )
        templates, notes = gather(name, wordings)
        return Wordings(
            card=Card(name=name, licence="none stated", sources=("LPAQA",)),
            templates=templates,
            fingerprint=hash_files(folder.parent if folder.is_file() else folder, paths),
            notes=notes,
        )


def _part(paths: list[Path]) -> Iterator[Wording]:
    for path in paths:
        for row in read_rows(path):
            yield Wording(
                relation=path.stem,
                text=row.text("template"),
                source=PARTS[path.parent.name],
                weight=row.number("weight"),
            )


def _best(path: Path) -> Iterator[Wording]:
    for row in read_rows(path):
        yield Wording(relation=row.text("relation"), text=row.text("template"), source="mined")


COMPONENT = LpaqaReader()
