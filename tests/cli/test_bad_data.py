"""A dataset with a fault: which file, which line, what was expected there."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from sonde.core.errors import DataError, UsageError
from tests.command import Sonde, process
from tests.written import dataset, fact, rows, template

DATA = DataError.exit_code
FRANCE = fact("P36", "France", "Paris")


def with_fact(**changes: Any) -> dict[str, Any]:
    return {**FRANCE, **changes}


def test_a_broken_line_is_named_in_a_process_of_its_own(data: Path, tmp_path: Path) -> None:
    path = data / "facts" / "P36.jsonl"
    path.write_text(path.read_text() + '{"id": "x", \n')
    out = tmp_path / "out"
    done = process("run", "lama", "-m", "control:majority", "-d", data, "-o", out)
    done.refused(DATA, f"{path}, line 5: expected a JSON object", "column")
    assert not out.exists()
    debug = process("data", "check", data, "--debug")
    assert debug.code == DATA
    assert "Traceback" in debug.err


@pytest.mark.parametrize(
    "missing", ["relations.jsonl", "templates.jsonl", "facts/P37.jsonl", "facts"]
)
def test_a_missing_file_is_named(sonde: Sonde, data: Path, missing: str) -> None:
    path = data / missing
    if path.is_dir():
        path.rename(data / "elsewhere")
    else:
        path.unlink()
    sonde("data", "check", data).refused(DATA, str(path), "missing")


PARTS = ["facts/P36.jsonl", "facts/P36.parquet", "relations.jsonl", "templates.jsonl"]


@pytest.mark.parametrize("verb", ["check", "show"])
@pytest.mark.parametrize("part", PARTS)
def test_a_named_pipe_in_a_dataset_is_rejected(
    sonde: Sonde, data: Path, verb: str, part: str, without_hanging: None
) -> None:
    (data / "facts/P36.jsonl" if "parquet" in part else data / part).unlink()
    os.mkfifo(data / part)
    sonde("data", verb, data).refused(DATA, f"{data / part} is a named pipe or a device")


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "xlsx"])
def test_a_named_pipe_is_no_table(
    sonde: Sonde, tmp_path: Path, ending: str, without_hanging: None
) -> None:
    path = tmp_path / f"facts.{ending}"
    os.mkfifo(path)
    for words in (("data", "check", path), ("run", "lama", "-m", "control:majority", "-d", path)):
        sonde(*words).refused(DATA, f"{path} is a named pipe or a device")


@pytest.mark.parametrize("name", ["bear", "qa", "lama", "counterfact", "templama"])
def test_a_named_pipe_among_the_files_of_a_reader_hangs_nothing(
    sonde: Sonde, tmp_path: Path, name: str, without_hanging: None
) -> None:
    for part in ("metadata_relations.json", "relations.jsonl", "counterfact.json", "test.jsonl"):
        os.mkfifo(tmp_path / part)
    (tmp_path / "facts").mkdir()
    assert sonde("data", "check", f"{name}:{tmp_path}").code in (DATA, UsageError.exit_code)


@pytest.fixture
def without_hanging() -> Iterator[None]:
    """Fail a test that waits for what never comes."""

    def fail(*_: object) -> None:
        raise AssertionError("hangs")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


LINES = {
    '{"id": "x", ': "expected a JSON object",
    '{"id": "x", "id": "y"}': "expected a JSON object, but key 'id' is there more than once",
    "[1, 2]": "expected a JSON object, found '[1, 2]'",
    "null": "expected a JSON object, found 'null'",
    '{"id": "\\ud83d"}': "surrogates not allowed",
    '{"id": ' + "9" * 5000 + "}": "expected a JSON object",
    "[" * 100_000: "expected a JSON object",
    json.dumps(with_fact(id=7)): "'id' must be a text that is not empty, found 7",
    json.dumps(with_fact(id=" ")): "'id' must be a text that is not empty, found ' '",
    json.dumps(with_fact(subject="France")): "'subject' must be an object, found 'France'",
    json.dumps(with_fact(subject={"id": "Q1"})): "subject: 'names' must be a list of texts",
    json.dumps(with_fact(subject={"id": "Q1", "names": "France"})): "'names' must be a list",
    json.dumps(with_fact(objects=[])): "'objects' must be a list of objects with at least one",
    json.dumps(with_fact(objects=["Paris"])): "'objects' must be an object, found 'Paris'",
    json.dumps(with_fact(objects=[{"id": "Q2", "names": []}])): "objects: 'names' must be a list",
    json.dumps(with_fact(objects=[{"id": "Q2", "names": [""]}])): "texts that are not empty",
    json.dumps(with_fact(split=None)): "'split' must be a text",
    json.dumps(with_fact(tags="hard")): "'tags' must be a list of texts",
}


@pytest.mark.parametrize("line", LINES, ids=lambda line: LINES[line][:40])
def test_a_wrong_fact_says_where_and_what_was_expected(
    sonde: Sonde, data: Path, tmp_path: Path, line: str
) -> None:
    path = data / "facts" / "P36.jsonl"
    path.write_text(rows([FRANCE]) + line + "\n")
    out = tmp_path / "out"
    done = sonde("run", "lama", "-m", "control:majority", "-d", data, "-o", out)
    said = done.refused(DATA, f"{path}, line 2", LINES[line])
    assert len(said) < 1000
    assert not out.exists()


def test_a_line_that_is_not_utf8_is_named(sonde: Sonde, data: Path) -> None:
    path = data / "facts" / "P36.jsonl"
    path.write_bytes(rows([FRANCE]).encode() + b'{"id": "caf\xe9"}\n')
    sonde("data", "check", data).refused(DATA, f"{path}, line 2: not UTF-8")


def test_a_wrong_kind_of_relation_offers_the_kinds(sonde: Sonde, data: Path) -> None:
    path = data / "relations.jsonl"
    path.write_text(rows([{"id": "P36", "label": "capital", "kind": "many"}]))
    said = sonde("data", "check", data).refused(DATA, f"{path}, line 1", "found 'many'")
    assert "1-1, N-1, N-M" in said


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("The capital is [Y].", "has no subject slot; write [X] where the subject belongs"),
        ("[X] has a capital.", "has no answer slot; write [Y] where the object belongs"),
        ("[X] has [Y] and [Y].", "has 2 [Y] slots; keep one"),
        ("[X] of [X] has [Y].", "has 2 [X] slots; keep one"),
    ],
)
def test_a_template_needs_each_slot_once(
    sonde: Sonde, data: Path, text: str, complaint: str
) -> None:
    path = data / "templates.jsonl"
    path.write_text(rows([template("P36", text)]))
    sonde("data", "check", data).refused(DATA, f"{path}, line 1: template 'P36-1' {complaint}")


def test_a_template_of_lama_is_named_by_its_line(sonde: Sonde, tmp_path: Path) -> None:
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "P1.jsonl").write_text(rows([{"sub_label": "a", "obj_label": "b"}]))
    head = {"relation": "P1", "template": "[X] has none", "label": "l", "type": "N-1"}
    (tmp_path / "relations.jsonl").write_text(rows([head]))
    done = sonde("data", "show", f"lama:{tmp_path}")
    done.refused(DATA, f"{tmp_path / 'relations.jsonl'}, line 1", "no answer slot")


def test_changed_content_is_noticed_until_it_is_sealed(sonde: Sonde, data: Path) -> None:
    assert sonde("data", "check", data, "--seal").code == 0
    path = data / "facts" / "P36.jsonl"
    path.write_text(path.read_text().replace("Paris", "Lyon"))
    said = sonde("data", "check", data).refused(DATA, "dataset.json says")
    assert f"sonde data check {data} --seal" in said
    assert sonde("data", "check", data, "--seal").code == 0
    assert sonde("data", "check", data).code == 0


def test_a_form_of_the_future_is_refused(sonde: Sonde, data: Path) -> None:
    (data / "dataset.json").write_text('{"format": 99, "name": "world"}')
    sonde("data", "show", data).refused(DATA, "'format' must be 1", "found 99")


def test_an_empty_relation_is_reported_by_check_and_passed_over_by_run(
    sonde: Sonde, data: Path, tmp_path: Path
) -> None:
    (data / "facts" / "P37.jsonl").write_text("")
    done = sonde("data", "check", data)
    assert done.code == 0
    assert f"warning: {data / 'relations.jsonl'}, line 2: relation P37 has no fact" in done.out
    done = sonde("run", "lama", "-m", "control:majority", "-d", data, "-o", tmp_path / "out")
    assert done.code == 0
    assert done.err == ""


def test_a_dataset_without_a_fact_to_ask_is_refused(
    sonde: Sonde, data: Path, tmp_path: Path
) -> None:
    for path in (data / "facts").iterdir():
        path.write_text("")
    done = sonde("run", "lama", "-m", "control:majority", "-d", data, "-o", tmp_path / "out")
    done.refused(UsageError.exit_code, "has no facts in split 'test'")
    assert not (tmp_path / "out").exists()


NASTY = (
    "[X]",
    "[Y]",
    "[MASK]",
    "<mask>",
    "</script><script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    "a & b",
    "{subject}",
    "%s",
    "[bold red]x[/]",
    "tab\there",
    "new\nline",
    "\u202eright to left",
)


def test_texts_that_look_like_code_are_taken_literally(sonde: Sonde, tmp_path: Path) -> None:
    pairs = {f"s {text}": f"o {text}" for text in NASTY}
    data = dataset(tmp_path / "data", {"P1": ("Of [X] is [Y]!", pairs)})
    answers = {f"P1:{subject}": answer for subject, answer in pairs.items()}
    table = tmp_path / "answers.json"
    table.write_text(json.dumps({"answers": answers}))
    out = tmp_path / "out"
    done = sonde("run", "lama", "-m", f"scripted:{table}", "-d", data, "-o", out)
    assert done.code == 0, done.err
    stored = pq.read_table(out / "shards" / "00000.parquet").to_pylist()
    assert [row["prefix"] for row in stored] == [f"Of {subject} is " for subject in pairs]
    assert {row["suffix"] for row in stored} == {"!"}
    assert [row["top"][0] for row in stored] == list(pairs.values())
    estimates = json.loads(sonde("report", out, "--json").out)["estimates"]
    assert estimates["p_at_1.facts"]["value"] == 1.0
    page = (out / "report.html").read_text()
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert page.count("</script>") == page.count("<script")
