"""Names that programs rely on: estimates, counts, columns, fields and exit codes, as documented."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sonde
from sonde.cli.main import INTERNAL, INTERRUPTED, Stopped
from sonde.core import errors
from sonde.core.costs import Batches
from sonde.core.prompts import KEY, TEXTS
from sonde.data.catalog import load
from sonde.data.format import write_dataset
from sonde.models.scripted import Scripted
from sonde.store.manifest import OPTIONAL
from sonde.store.runs import CERTIFICATE
from sonde.store.shards import ANSWERS, NAMES
from tests.worlds import dataset_of, fact, relation, template

from . import program
from .pages import DOCS, first_cells, rows, section

FORMATS = DOCS / "formats.md"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> sonde.Run:
    """A real run of a model that knows nothing, on two relations."""
    dataset = sonde.dataset("atlas", relations=("P36", "P30"), limit=3)
    out = tmp_path_factory.mktemp("run") / "run"
    return sonde.run(sonde.probe("lama", k=7), Scripted(answers={}), dataset, out=out)


def test_the_json_report_has_the_documented_keys(run: sonde.Run) -> None:
    assert list(run.report().to_json()) == first_cells(FORMATS, "Report")


def test_estimates_and_facts_have_the_documented_columns(run: sonde.Run) -> None:
    assert run.estimates().columns == first_cells(FORMATS, "Estimates")
    documented = {
        cell for row in rows(FORMATS, "Facts") for cell in re.findall(r"`([^`]+)`", row[0])
    }
    assert {name for name in run.facts().columns if "." not in name} <= documented
    documented |= {
        cell
        for heading in ("Templates", "Graded prompts")
        for row in rows(FORMATS, heading)
        for cell in re.findall(r"`([^`]+)`", row[0])
    }
    assert {name for name in run.rows().columns if "." not in name} <= documented


SCHEMA = pa.schema(
    [*((name, NAMES) for name in KEY), *((n, pa.string()) for n in TEXTS), *ANSWERS.items()]
)
"""Every column that sonde's own prompts and answers have; a probe may add names to the first."""


def test_a_shard_has_the_documented_columns() -> None:
    assert first_cells(FORMATS, "Columns of a shard") == SCHEMA.names


def test_the_documented_types_are_those_of_the_columns() -> None:
    words = {"text": "str", "float": "float", "list": "list", "integers": "int", "texts": "str"}
    words |= {"boolean": "bool", "bytes": "binary"}
    for field, row in zip(SCHEMA, rows(FORMATS, "Columns of a shard"), strict=True):
        shown = row[1].replace("lists", "list").replace("floats", "float").split(" of ")
        assert [words[word] for word in shown] == type_words(field.type), field.name


def type_words(type: Any) -> list[str]:
    """An Arrow type as a few words."""
    if hasattr(type, "value_type") and str(type).startswith("list"):
        return ["list", *type_words(type.value_type)]
    return [next(w for w in ("str", "float", "int", "bool", "binary") if w in str(type))]


def test_a_run_folder_holds_the_documented_files(tmp_path: Path) -> None:
    words = ["run", "lama", "-m", "control:majority", "--relations", "P30", "--limit", "2"]
    assert program.sonde([*words, "-o", "run"], tmp_path).code == 0
    (tmp_path / "run" / "shards" / "00000.parquet").write_bytes(b"damaged")
    assert program.sonde([*words, "-o", "run"], tmp_path).code == 0
    found = sorted(path.name for path in (tmp_path / "run").iterdir())
    # nobody has held a control against another model
    assert sorted([*found, CERTIFICATE]) == sorted(first_cells(FORMATS, "Run files"))


def test_the_manifest_has_the_documented_fields(run: sonde.Run) -> None:
    manifest = json.loads((run.path / "manifest.json").read_text())
    # this model has no tokens, and no certificate
    assert [*manifest, *OPTIONAL] == first_cells(FORMATS, "manifest.json")
    assert list(Batches(tokens={"score": 1}).entry()) == first_cells(FORMATS, "batches")
    assert list(manifest["model"]) == first_cells(FORMATS, "model")
    for part in ("dataset", "selection"):
        [row] = [row for row in rows(FORMATS, "manifest.json") if row[0] == f"`{part}`"]
        for name in manifest[part]:
            assert name in row[1], f"formats.md does not mention {part}.{name}"


@pytest.mark.parametrize("name", ["timings.jsonl", "complete.json"])
def test_small_files_of_a_run_have_the_documented_fields(name: str, run: sonde.Run) -> None:
    assert list(json.loads((run.path / name).read_text())) == first_cells(FORMATS, name)


@pytest.mark.parametrize(
    "name", ["dataset.json", "relations.jsonl", "templates.jsonl", "facts/ID.jsonl"]
)
def test_files_of_a_dataset_have_the_documented_fields(name: str, tmp_path: Path) -> None:
    plain = fact("P1", "one", "one", tags=("hard",), wrong=("two",))
    times: dict[str, Any] = {"date": "2015", "valid_from": "2010", "valid_to": "2020"}
    full = replace(plain, details={"title": "One"}, numbers={"popularity": 1.0}, **times)
    asked = template("t", "[X] [Y]", weight=0.5, origin="lama")
    more: dict[str, Any] = {
        "tags": ("places",),
        "answers": full.objects,
        "language": "en",
        "same": "P1",
    }
    dataset = dataset_of([full], replace(relation("P1", asked), **more))
    write_dataset(replace(dataset, vocabulary=("one",), notes={"rows_read": 1}), tmp_path)
    written = json.loads((tmp_path / name.replace("ID", "P1")).read_text())
    assert list(written) == first_cells(FORMATS, name)
    assert (tmp_path / "vocabulary.txt").exists()
    top = {path.name for path in tmp_path.iterdir()}
    assert top == {file.partition("/")[0] for file in first_cells(FORMATS, "Dataset files")}


def subclasses(kind: type[errors.SondeError]) -> Iterator[type[errors.SondeError]]:
    yield kind
    for inner in kind.__subclasses__():
        yield from subclasses(inner)


def test_exit_codes_are_those_of_the_program() -> None:
    documented = {int(row[0]): row[2] for row in rows(FORMATS, "Exit codes")}
    ended = Stopped(signal.SIGTERM).exit_code
    raised: dict[int, list[str]] = {0: [], INTERNAL: [], INTERRUPTED: [], ended: []}
    for kind in subclasses(errors.SondeError):
        if kind.__module__ == errors.__name__:
            raised.setdefault(kind.exit_code, []).append(kind.__name__)
    assert sorted(documented) == sorted(raised)
    for code, names in raised.items():
        for name in names:
            assert f"`{name}`" in documented[code], f"{name} ends with {code}"


def test_the_numbers_of_atlas_are_counted() -> None:
    dataset = load("atlas")
    facts = [fact for r in dataset.relations for fact in dataset.facts(r.id)]
    templates = sum(len(r.templates) for r in dataset.relations)
    tests = [sum(f.split == "test" for f in dataset.facts(r.id)) for r in dataset.relations]
    text = section(FORMATS, "How atlas was made")
    for words in (
        f"{len(dataset.relations)} relations",
        f"{len(facts):,} facts",
        f"{templates} templates",
        f"{sum('hard' in f.tags for f in facts):,} of the facts",
        f"{min(tests)} to {max(tests)} facts of a relation",
        f"{sum(tests):,} in all",
    ):
        assert words in " ".join(text.split()), words
    for r in dataset.relations:
        assert sum(f.split == "train" for f in dataset.facts(r.id)) == 50
