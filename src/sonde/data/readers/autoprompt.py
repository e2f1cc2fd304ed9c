"""Read AutoPrompt's released prompts: one template a relation, of trigger tokens. It has no facts.

    autoprompt:FOLDER                  relations.jsonl in the folder
    autoprompt:FOLDER/relations.jsonl  the file itself

The triggers were found for one model; another may cut the same text into other tokens.
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

FILE = "relations.jsonl"


@dataclass(frozen=True, slots=True)
class AutoPromptReader:
    """AutoPrompt's prompts, as published."""

    name: ClassVar[str] = "autoprompt"
    summary: ClassVar[str] = "AutoPrompt's templates: relations.jsonl with 'relation', 'template'"

    def templates(self, folder: Path) -> Wordings:
        """Read the prompt of every relation."""
        path = folder if folder.is_file() else folder / FILE
        if not path.is_file():
            raise DataError(f"{folder} holds no {FILE}; give the folder of AutoPrompt's prompts")
        templates, notes = gather(self.name, _wordings(path))
        return Wordings(
            card=Card(name=self.name, licence="Apache-2.0", sources=("AutoPrompt",)),
            templates=templates,
            fingerprint=hash_files(path.parent, [path]),
            notes=notes,
        )


def _wordings(path: Path) -> Iterator[Wording]:
    for row in read_rows(path):
        yield Wording(relation=row.text("relation"), text=row.text("template"), source="optimised")


COMPONENT = AutoPromptReader()
