"""From a table of one's own to a report in one command, as a newcomer would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command import Sonde, in_this_process

COLUMNS = "subject=Wine,object=Region"
WORDING = "The wine [X] comes from [Y]."


@pytest.fixture
def sonde(capsys: Any) -> Sonde:
    return in_this_process(capsys)


@pytest.fixture
def wines(tmp_path: Path) -> Path:
    """A hundred wines of ten regions."""
    rows = [f"Wine {n},Region {n % 10},Grape {n % 7}" for n in range(100)]
    path = tmp_path / "wines.csv"
    path.write_text("Wine,Region,Grape\n" + "\n".join(rows) + "\n")
    return path


def test_a_hundred_rows_become_a_report_in_one_command(
    wines: Path, tmp_path: Path, sonde: Sonde, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "run"
    words = ("-m", "control:majority", "-d", wines, "--columns", COLUMNS, "--template", WORDING)
    done = sonde("run", "lama", *words, "-o", out)
    assert done.code == 0, done.err
    assert (
        "for 100 of 100 facts and is correct on 10" in done.out and (out / "report.html").is_file()
    )
    assert "100 facts from 100 rows" in caplog.text and "Region (N-1)" in caplog.text
    again = sonde("run", "lama", *words, "-o", out)
    assert again.code == 0 and "was complete" in caplog.text, "the same table is the same run"
    wines.unlink()
    report = sonde("report", out)
    assert report.code == 0 and "100 facts" in report.out, "the run keeps its facts"


def test_a_changed_table_is_another_run(wines: Path, tmp_path: Path, sonde: Sonde) -> None:
    words = ("-m", "control:majority", "-d", wines, "--columns", COLUMNS, "--template", WORDING)
    assert sonde("run", "lama", *words, "-o", tmp_path / "run").code == 0
    wines.write_text(wines.read_text() + "Wine 100,Region 3,Grape 1\n")
    sonde("run", "lama", *words, "-o", tmp_path / "run").refused(5, "dataset")


@pytest.mark.parametrize("probe", ["ic-lke", "lke-shots"])
def test_in_context_probes_need_no_sentence_and_no_split(
    probe: str, wines: Path, tmp_path: Path, sonde: Sonde
) -> None:
    words = ("-m", "control:majority", "-d", wines, "--columns", COLUMNS, "--limit", 10)
    done = sonde("run", probe, *words, "-o", tmp_path / "run", "--all-tables")
    assert done.code == 0, done.err
    assert "10 facts" in done.out


def test_every_verb_that_takes_a_dataset_takes_a_table(
    wines: Path, tmp_path: Path, sonde: Sonde
) -> None:
    table = (wines, "--columns", COLUMNS, "--template", WORDING)
    asked = ("-m", "control:majority", "-d", *table)
    for words in (
        ("data", "show", *table, "--relation", "region"),
        ("data", "check", *table),
        ("data", "stats", *table),
        ("data", "convert", *table, "-o", tmp_path / "full"),
        ("plan", "lama", *asked, "-o", tmp_path / "plan"),
        ("run", "lama", *asked, "--vary", "capitalize=true,false", "-o", tmp_path / "varied"),
    ):
        done = sonde(*words)
        assert done.code == 0, (words, done.err)
    heads = [json.loads(line) for line in (tmp_path / "full/relations.jsonl").open()]
    assert heads == [{"id": "Region", "label": "Region", "kind": "N-1"}]
    assert sonde("data", "check", tmp_path / "full").code == 0


def test_relations_are_named_by_label(wines: Path, tmp_path: Path, sonde: Sonde) -> None:
    columns = ("--columns", "subject=Wine,object=Region", "--columns", "object=Grape")
    words = ("-m", "control:majority", "-d", wines, *columns, "--relations", "grape", "--limit", 5)
    done = sonde("run", "ic-lke", *words, "-o", tmp_path / "run")
    assert done.code == 0, done.err
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["selection"]["relations"] == ["Grape"]
    sonde("run", "ic-lke", *words[:-4], "--relations", "graep").refused(2, "did you mean 'Grape'?")
