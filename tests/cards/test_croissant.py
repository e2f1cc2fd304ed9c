"""Croissant metadata: as its specification says, and true of the files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sonde.cards.croissant import croissant
from sonde.core.errors import DataError
from sonde.core.fingerprints import file_hash
from sonde.data.catalog import bundled
from sonde.data.format import open_dataset, write_dataset
from tests.written import two_relations


def described(folder: Path) -> dict[str, Any]:
    return dict(croissant(open_dataset(folder), folder, "cite this"))


def nodes(value: Any) -> list[dict[str, Any]]:
    """Every object of a document, however deep."""
    found = [value] if isinstance(value, dict) else []
    for part in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        found += nodes(part)
    return found


def test_every_file_is_named_with_its_hash_relative_to_the_folder(tmp_path: Path) -> None:
    folder = two_relations(tmp_path / "data")
    files = [n for n in described(folder)["distribution"] if n["@type"] == "cr:FileObject"]
    places = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {node["contentUrl"] for node in files} == places
    for node in files:
        assert node["sha256"] == file_hash(folder / node["contentUrl"])
        assert node["@id"] == node["contentUrl"] and node["encodingFormat"]


def test_what_is_referred_to_is_there_and_every_word_is_of_the_context() -> None:
    made = described(bundled()["atlas"])
    assert made["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    assert made["@type"] == "sc:Dataset" and made["license"] and made["citeAs"] == "cite this"
    inside = nodes([made["distribution"], made["recordSet"]])
    ids = [node["@id"] for node in inside if "@type" in node]
    assert len(ids) == len(set(ids)), "an id stands once"
    assert {n["@id"] for n in inside if "@id" in n and "@type" not in n} <= set(ids)
    schema = {"name", "description", "contentUrl", "contentSize", "encodingFormat", "sha256"}
    words = {word for node in inside for word in node if not word.startswith("@")}
    assert words <= schema | set(made["@context"])


def test_fields_are_columns_that_every_file_has(tmp_path: Path) -> None:
    records = {r["@id"]: r for r in described(two_relations(tmp_path / "data"))["recordSet"]}
    fields = {name: [f["name"] for f in record["field"]] for name, record in records.items()}
    assert fields["relations"] == ["id", "label", "kind"]
    assert fields["templates"] == ["id", "relation", "text"]
    assert fields["facts"] == ["id", "subject_id", "subject", "object_ids", "objects", "split"]
    (subject,) = [f for f in records["facts"]["field"] if f["name"] == "subject"]
    assert subject["source"]["fileSet"] == {"@id": "fact-files"}
    assert subject["source"]["transform"] == {"jsonPath": "$.names[0]"}


def test_facts_as_columns_are_refused_with_what_to_do(tmp_path: Path) -> None:
    write_dataset(open_dataset(bundled()["nobel"]), tmp_path / "columns", columns=True)
    with pytest.raises(DataError, match="sonde data convert"):
        described(tmp_path / "columns")
