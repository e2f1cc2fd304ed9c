"""A dataset folder described for other programs: MLCommons Croissant 1.0, as JSON-LD.

Every file of the folder is a FileObject with its SHA-256; relations, templates and facts are
RecordSets whose fields say where in the lines they stand. Paths are relative to the folder, so the
file belongs beside `dataset.json`. Knows the form of folders, and nothing of what reads Croissant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sonde.core.errors import DataError
from sonde.core.facts import Dataset
from sonde.core.fingerprints import file_hash
from sonde.data.fact_files import LINES, fact_files

VERSION = "http://mlcommons.org/croissant/1.0"
JSON_LINES = "application/jsonlines"
SPDX = "https://spdx.org/licenses/"
FACTS = "fact-files"

Json = str | bool | Mapping[str, "Json"] | Sequence["Json"]

_CROISSANT = (
    "citeAs column conformsTo:dct dataType equivalentProperty examples extract field fileProperty "
    "fileObject fileSet format includes isLiveDataset jsonPath key md5 parentField path recordSet "
    "references regex repeated replace samplingRate separator source subField transform"
)


def _context() -> dict[str, Json]:
    """What Croissant's words mean, as its specification lists them."""
    terms: dict[str, Json] = {
        "@language": "en",
        "@vocab": "https://schema.org/",
        "cr": "http://mlcommons.org/croissant/",
        "rai": "http://mlcommons.org/croissant/RAI/",
        "dct": "http://purl.org/dc/terms/",
        "sc": "https://schema.org/",
        "data": {"@id": "cr:data", "@type": "@json"},
    }
    for word in _CROISSANT.split():
        name, _, prefix = word.partition(":")
        terms[name] = f"{prefix or 'cr'}:{name}"
    terms["dataType"] = {"@id": "cr:dataType", "@type": "@vocab"}
    terms["examples"] = {"@id": "cr:examples", "@type": "@json"}
    return terms


class Column(NamedTuple):
    """A field of lines: what it is called, what it means, and where in a line it stands."""

    name: str
    description: str
    column: str
    path: str = ""
    repeated: bool = False
    type: str = "sc:Text"


RELATIONS = (
    Column("id", "Names the relation.", "id"),
    Column("label", "What the relation is called.", "label"),
    Column("kind", "1-1, N-1 or N-M.", "kind"),
    Column("language", "ISO 639-1 code of templates and names.", "language"),
    Column("tags", "Groups that the relation is in.", "tags", repeated=True),
)
TEMPLATES = (
    Column("id", "Names the template within its relation.", "id"),
    Column("relation", "The relation that it asks for.", "relation"),
    Column("text", "The sentence: [X] is the subject, [Y] the answer.", "text"),
    Column("source", "manual, paraphrase, mined or optimised.", "source"),
    Column("style", "statement or question.", "style"),
    Column("group", "The template that a paraphrase was made from.", "group"),
)
FACT = (
    Column("id", "Names the fact.", "id"),
    Column("subject_id", "Names the subject.", "subject", "$.id"),
    Column("subject", "The subject's usual name.", "subject", "$.names[0]"),
    Column("object_ids", "Names every correct object.", "objects", "$.id", repeated=True),
    Column("objects", "Their usual names.", "objects", "$.names[0]", repeated=True),
    Column("split", "test where it is not given.", "split"),
    Column("tags", "Groups that the fact is in.", "tags", repeated=True),
    Column("date", "The time that is asked about.", "date"),
)


def croissant(dataset: Dataset, folder: Path, citation: str) -> dict[str, Json]:
    """The metadata of a dataset that lies in a folder of its own form."""
    facts = fact_files(folder)
    if any(path.suffix != LINES for path in facts):
        raise DataError(
            f"{folder} has its facts as columns, which Croissant's fields do not describe; write "
            f"them as lines with: sonde data convert {folder} -o FOLDER"
        )
    card = dataset.card
    languages = sorted({relation.language for relation in dataset.relations} - {""})
    head: dict[str, Json] = {
        "@context": _context(),
        "@type": "sc:Dataset",
        "conformsTo": VERSION,
        "name": card.name,
        "description": card.description or f"Facts to probe language models: {card.name}.",
        "version": _version(card.version),
        "license": _licence(card.licence),
        "citeAs": citation,
        "isBasedOn": list(card.sources),
        "inLanguage": languages,
        "keywords": ["facts", "knowledge probing", "language models"],
    }
    given = {name: value for name, value in head.items() if value}
    return {
        **given,
        "distribution": list(_files(folder, facts)),
        "recordSet": [
            _records("relations", RELATIONS, "relations.jsonl", [folder / "relations.jsonl"]),
            _records("templates", TEMPLATES, "templates.jsonl", [folder / "templates.jsonl"]),
            _records("facts", FACT, FACTS, facts),
        ],
    }


def _version(version: str) -> str:
    """As Croissant wants versions, with three numbers, where it is made of numbers.

    >>> _version("1"), _version("1.0"), _version("June")
    ('1.0.0', '1.0.0', 'June')
    """
    if not re.fullmatch(r"\d+(\.\d+){0,1}", version):
        return version
    return ".".join([*version.split("."), "0", "0"][:3])


def _licence(licence: str) -> str:
    """The page of a licence that SPDX knows by this name, else the words as they are."""
    return f"{SPDX}{licence}" if re.fullmatch(r"[A-Za-z]+[\w.]*-[\w.-]*\d", licence) else licence


def _files(folder: Path, facts: Sequence[Path]) -> Iterator[Json]:
    """Every file with its hash, and those of facts together."""
    heads = ("dataset.json", "relations.jsonl", "templates.jsonl", "vocabulary.txt")
    formats = {".json": "application/json", LINES: JSON_LINES, ".txt": "text/plain"}
    for path in (*(folder / name for name in heads), *facts):
        if path.is_file():
            place = path.relative_to(folder).as_posix()
            yield {
                "@type": "cr:FileObject",
                "@id": place,
                "name": place,
                "contentUrl": place,
                "contentSize": f"{path.stat().st_size} B",
                "encodingFormat": formats[path.suffix],
                "sha256": file_hash(path),
            }
    yield {
        "@type": "cr:FileSet",
        "@id": FACTS,
        "name": FACTS,
        "description": "The facts, a file for each relation.",
        "encodingFormat": JSON_LINES,
        "includes": f"facts/*{LINES}",
    }


def _records(
    name: str, columns: Sequence[Column], source: str, paths: Sequence[Path]
) -> dict[str, Json]:
    """What stands in the lines of some files; a column that not every file has is left out."""
    contents = [path.read_bytes() for path in paths if path.is_file()]
    kind = "fileSet" if source == FACTS else "fileObject"
    fields = [
        _field(name, column, {kind: {"@id": source}})
        for column in columns
        if all(re.search(rf'"{column.column}"\s*:'.encode(), text) for text in contents)
    ]
    key: Json = {"@id": f"{name}/id"}
    if name == "templates":  # unique within a relation alone
        key = [key, {"@id": f"{name}/relation"}]
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "key": key, "field": fields}


def _field(records: str, column: Column, source: Mapping[str, Json]) -> dict[str, Json]:
    transform: dict[str, Json] = {"transform": {"jsonPath": column.path}} if column.path else {}
    return {
        "@type": "cr:Field",
        "@id": f"{records}/{column.name}",
        "name": column.name,
        "description": column.description,
        "dataType": column.type,
        **({"repeated": True} if column.repeated else {}),
        "source": {**source, "extract": {"column": column.column}, **transform},
    }
