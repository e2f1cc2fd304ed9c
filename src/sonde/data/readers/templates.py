"""Read templates without facts: ParaRel's, LPAQA's, AutoPrompt's and what `sonde optimise` made.

    pararel:FOLDER                     P36.jsonl with 'pattern', a file a relation
    lpaqa:FOLDER                       what stands in mine/ and paraphrase/, with weights
    lpaqa:FOLDER/mine                  the mined ones alone (so for paraphrase)
    lpaqa:FOLDER/top1_relations.jsonl  the best one of each relation; these carry no weight
    autoprompt:FOLDER                  relations.jsonl in the folder, or the file itself
    optimised:FOLDER                   templates.jsonl of a finished folder of `sonde optimise`

ParaRel's patterns were written by hand, and each is a group of its own: ParaRel does not say which
was made from which. AutoPrompt's trigger tokens were found for one model; another may cut the same
text into other tokens. Optimised texts are taken as they stand, spaces and all: a marker's
neighbours decide how it is tokenised.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sonde.core.errors import DataError
from sonde.core.facts import Card, Source, Template
from sonde.data.format import hash_files, template_of
from sonde.data.lines import Row, read_object, read_rows
from sonde.data.wordings import Wording, Wordings, read_wordings

PARTS: dict[str, Source] = {"mine": "mined", "paraphrase": "paraphrase"}
RELATIONS = "relations.jsonl"


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
        card = Card(name=self.name, licence="MIT", sources=("ParaRel",))
        return read_wordings(card, folder, paths, _pattern)


@dataclass(frozen=True, slots=True)
class LpaqaReader:
    """LPAQA's templates, as published."""

    name: ClassVar[str] = "lpaqa"
    summary: ClassVar[str] = "LPAQA's templates: mine/P*.jsonl, paraphrase/P*.jsonl, top1_*.jsonl"

    def templates(self, folder: Path) -> Wordings:
        """Read the templates of the folder, of one part of it, or of the file of best ones."""
        if folder.is_file():
            part, paths = "-top1", [folder]
        elif folder.name in PARTS:
            part, paths = f"-{folder.name}", sorted(folder.glob("P*.jsonl"))
        else:
            part, paths = "", [p for d in PARTS for p in sorted(folder.glob(f"{d}/P*.jsonl"))]
        if not paths:
            raise DataError(
                f"{folder} holds no template of LPAQA; give the folder that holds mine/ and "
                "paraphrase/, one of these two, or the file top1_relations.jsonl"
            )
        card = Card(name=f"{self.name}{part}", licence="none stated", sources=("LPAQA",))
        if folder.is_file():
            return read_wordings(card, folder.parent, paths, _best)
        return read_wordings(card, folder, paths, _weighed)


@dataclass(frozen=True, slots=True)
class AutoPromptReader:
    """AutoPrompt's prompts, as published."""

    name: ClassVar[str] = "autoprompt"
    summary: ClassVar[str] = "AutoPrompt's templates: relations.jsonl with 'relation', 'template'"

    def templates(self, folder: Path) -> Wordings:
        """Read the prompt of every relation."""
        path = folder if folder.is_file() else folder / RELATIONS
        if not path.is_file():
            raise DataError(
                f"{folder} holds no {RELATIONS}; give the folder of AutoPrompt's prompts"
            )
        card = Card(name=self.name, licence="Apache-2.0", sources=("AutoPrompt",))
        return read_wordings(card, path.parent, [path], _trigger)


def _pattern(path: Path, row: Row) -> Wording:
    return Wording(relation=path.stem, text=row.text("pattern"), source="manual")


def _weighed(path: Path, row: Row) -> Wording:
    return Wording(
        relation=path.stem,
        text=row.text("template"),
        source=PARTS[path.parent.name],
        weight=row.number("weight"),
    )


def _best(path: Path, row: Row) -> Wording:
    return Wording(relation=row.text("relation"), text=row.text("template"), source="mined")


def _trigger(path: Path, row: Row) -> Wording:
    return Wording(relation=row.text("relation"), text=row.text("template"), source="optimised")


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


AUTOPROMPT, LPAQA, PARAREL = AutoPromptReader(), LpaqaReader(), ParaRelReader()
OPTIMISED = OptimisedReader()
