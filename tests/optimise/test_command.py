"""`sonde optimise`: from a command to templates that a probe can ask with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sonde.cli.main import main
from sonde.core.errors import DataError
from sonde.data.catalog import additions, load
from sonde.data.format import write_dataset

from .world import dataset

Folders = Callable[[str], Path]


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """The world as a folder."""
    write_dataset(dataset(), tmp_path / "world")
    return tmp_path / "world"


def optimise(folder: Path, world: Path, out: Path, *more: str) -> int:
    quick = ["--epochs", "2", "--device", "cpu"]
    quick += [] if "--vectors" in more else ["--vectors", "2"]
    words = ["optimise", "optiprompt", "-m", f"hf:{folder}", "-d", str(world), "-o", str(out)]
    return main([*words, *quick, *more])


def test_a_trained_prompt_is_asked_like_any_other(
    folder: Folders, world: Path, tmp_path: Path, capsys: Any
) -> None:
    out = tmp_path / "out"
    assert optimise(folder("bert"), world, out) == 0
    printed = capsys.readouterr().out
    assert "dev before" in printed and "P36" in printed and str(out) in printed.replace("\n", "")
    words = ["run", "lama", "-m", f"soft:{out}", "-d", str(world), "--no-html", "--device", "cpu"]
    assert main([*words, "--template", f"optimised:{out}", "-o", str(tmp_path / "run")]) == 0
    assert "P@1" in capsys.readouterr().out
    words[3] = f"hf:{folder('bert')}"
    code = main([*words, "--template", f"optimised:{out}", "-o", str(tmp_path / "plain")])
    assert code == 4 and "vector of a soft prompt" in capsys.readouterr().err


def test_the_json_names_everything_that_was_made(
    folder: Folders, world: Path, tmp_path: Path, capsys: Any
) -> None:
    assert optimise(folder("gpt2"), world, tmp_path / "out", "--json", "--relations", "P19") == 0
    told = json.loads(capsys.readouterr().out)
    (row,) = told["relations"]
    assert told["method"] == "optiprompt" and row["relation"] == "P19"
    assert row["templates"][0]["text"] == "[X]⟦P19:1⟧⟦P19:2⟧ [Y] ."
    assert row["counts"]["train"] == 36 and row["counts"]["dev"] == 12


def test_the_manifest_says_what_decided_the_templates(
    folder: Folders, world: Path, tmp_path: Path
) -> None:
    assert optimise(folder("bert"), world, tmp_path / "out", "--seed", "3") == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["method"] == "optiprompt" and manifest["settings"]["vectors"] == 2
    assert manifest["order"]["seed"] == 3 and manifest["relations"] == ["P36", "P19"]
    assert manifest["model"]["reference"] == f"hf:{folder('bert')}"
    assert manifest["model"]["weights"] and manifest["model"]["tokenizer"]
    assert manifest["dataset"]["fingerprint"] == load(str(world)).fingerprint
    assert manifest["complete"] and manifest["counts"]["train"] == 72


def test_templates_are_read_back_as_they_were_written(
    folder: Folders, world: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert optimise(folder("bert"), world, out) == 0
    reader: Any = additions()["optimised"]
    found = reader.templates(out)
    assert [t.text for t in found.templates["P36"]] == ["[X]⟦P36:1⟧⟦P36:2⟧ [Y] ."]
    assert found.templates["P36"][0].source == "optimised"
    joined = load(f"{world}+optimised:{out}")
    assert joined.relation("P19").templates == found.templates["P19"]


def test_a_folder_that_is_not_finished_is_not_read(tmp_path: Path) -> None:
    reader: Any = additions()["optimised"]
    with pytest.raises(DataError, match=r"manifest\.json"):
        reader.templates(tmp_path)
    (tmp_path / "manifest.json").write_text('{"method": "optiprompt"}')
    with pytest.raises(DataError, match="not finished"):
        reader.templates(tmp_path)


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (("--limit", "0"), 2, "--limit must be at least 1"),
        (("--relations", "P99"), 2, "no relation 'P99'"),
        (("--warmup", "2"), 2, "between 0 and 1"),
        (("--rate", "0"), 2, "above 0"),
        (("--vectors", "0"), 2, "at least 1"),
    ],
)
def test_a_bad_request_is_refused_before_anything_is_written(
    more: tuple[str, ...],
    code: int,
    said: str,
    folder: Folders,
    world: Path,
    tmp_path: Path,
    capsys: Any,
) -> None:
    assert optimise(folder("bert"), world, tmp_path / "out", *more) == code
    assert said in capsys.readouterr().err.replace("\n", " ")
    assert not (tmp_path / "out").exists()
