"""Read templates without facts: ParaRel's, LPAQA's, AutoPrompt's and what `sonde optimise` made.

    pararel:FOLDER                     P36.jsonl with 'pattern', a file a relation
    lpaqa:FOLDER                       what stands in mine/ and paraphrase/
    lpaqa:FOLDER/mine                  the mined ones alone (so for paraphrase)
    lpaqa:FOLDER/top1_relations.jsonl  the best one of each relation
    autoprompt:FOLDER                  relations.jsonl in the folder, or the file itself
    optimised:FOLDER                   templates.jsonl of a finished folder of `sonde optimise`

ParaRel's patterns were written by hand, and each is a group of its own: ParaRel does not say which
was made from which. LPAQA's weights were tuned for one model and are not read. AutoPrompt's
trigger tokens were found for one model; another may cut the same text into other tokens. Optimised
texts are taken as they stand, spaces and all: a marker's neighbours decide how it is tokenised.
"""

from __future__ import annotations

from collections.abc import Callable
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTemplates:
    """Templates in files of JSON lines, as published.

    `find` gives the files of a path and what is added to the source's name where they are a part of
    it; `wording` reads a row; `missing` is said where there are none.
    """

    name: str
    summary: str
    published: str
    licence: str
    find: Callable[[Path], tuple[list[Path], str]]
    wording: Callable[[Path, Row], Wording]
    missing: str

    def templates(self, folder: Path) -> Wordings:
        """Read every template of a folder, or of a file."""
        paths, part = self.find(folder)
        if not paths:
            raise DataError(f"{folder} holds no {self.missing}")
        card = Card(name=f"{self.name}{part}", licence=self.licence, sources=(self.published,))
        base = folder.parent if folder.is_file() else folder
        return read_wordings(card, base, paths, self.wording)


def _lpaqa_files(folder: Path) -> tuple[list[Path], str]:
    """The files of the folder, of one part of it, or the file of best ones."""
    if folder.is_file():
        return [folder], "-top1"
    if folder.name in PARTS:
        return sorted(folder.glob("P*.jsonl")), f"-{folder.name}"
    return [path for part in PARTS for path in sorted(folder.glob(f"{part}/P*.jsonl"))], ""


def _lpaqa_wording(path: Path, row: Row) -> Wording:
    text = row.text("template")
    if source := PARTS.get(path.parent.name):
        return Wording(path.stem, text, source)
    return Wording(row.text("relation"), text, "mined")


PARAREL = PublishedTemplates(
    name="pararel",
    summary="ParaRel's templates: P*.jsonl with 'pattern'",
    published="ParaRel",
    licence="MIT",
    find=lambda folder: (sorted(folder.glob("P*.jsonl")), ""),
    wording=lambda path, row: Wording(path.stem, row.text("pattern"), "manual"),
    missing="P*.jsonl; give the folder of ParaRel's patterns",
)
LPAQA = PublishedTemplates(
    name="lpaqa",
    summary="LPAQA's templates: mine/P*.jsonl, paraphrase/P*.jsonl, top1_*.jsonl",
    published="LPAQA",
    licence="none stated",
    find=_lpaqa_files,
    wording=_lpaqa_wording,
    missing="template of LPAQA; give the folder that holds mine/ and paraphrase/, one of these "
    "two, or the file top1_relations.jsonl",
)
AUTOPROMPT = PublishedTemplates(
    name="autoprompt",
    summary="AutoPrompt's templates: relations.jsonl with 'relation', 'template'",
    published="AutoPrompt",
    licence="Apache-2.0",
    find=lambda path: ([p for p in (path, path / RELATIONS) if p.is_file()], ""),
    wording=lambda _, row: Wording(row.text("relation"), row.text("template"), "optimised"),
    missing=f"{RELATIONS}; give the folder of AutoPrompt's prompts",
)


@dataclass(frozen=True, slots=True)
class OptimisedReader:
    """Templates found by training."""

    name: ClassVar[str] = "optimised"
    summary: ClassVar[str] = "templates that 'sonde optimise' made: manifest.json, templates.jsonl"

    def templates(self, folder: Path) -> Wordings:
        """Read every template of a finished folder."""
        if not (folder / "manifest.json").is_file():
            raise DataError(f"{folder} holds no manifest.json; give a folder 'sonde optimise' made")
        manifest, path = read_object(folder / "manifest.json"), folder / "templates.jsonl"
        method, counts = manifest.text("method"), manifest.values.get("counts")
        if manifest.values.get("complete") is not True:
            raise DataError(
                f"{folder} is not finished; run the command that made it again, and it goes on"
            )
        templates: dict[str, tuple[Template, ...]] = {}
        for row in read_rows(path):
            relation = row.text("relation")
            templates[relation] = (*templates.get(relation, ()), template_of(row))
        if not templates:
            raise DataError(f"{path} holds no template: no relation could be optimised")
        failed = counts.get("relations_not_made", 0) if isinstance(counts, dict) else 0
        return Wordings(
            card=Card(name=f"{self.name}-{method}", licence="as the training facts'"),
            templates=templates,
            fingerprint=hash_files(folder, [path]),
            notes={"relations_not_optimised": failed},
        )


OPTIMISED = OptimisedReader()
