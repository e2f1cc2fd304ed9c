"""`--template` may be given several times: what it names adds up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sonde.cli.verbs import app
from sonde.data.format import open_dataset
from tests.command import Sonde
from tests.data import sources


@pytest.fixture
def words(tmp_path: Path) -> tuple[str, list[str]]:
    """A dataset, and the flags that name two sources of templates for it."""
    data = f"lama:{sources.lama(tmp_path / 'lama')}"
    p, q = sources.pararel(tmp_path / "p"), sources.lpaqa(tmp_path / "q")
    return data, ["--template", f"pararel:{p}", "--template", f"lpaqa:{q}"]


def test_a_run_asks_in_the_templates_of_every_source(
    sonde: Sonde, words: tuple[str, list[str]], tmp_path: Path
) -> None:
    data, flags = words
    out = tmp_path / "out"
    model = ("-m", "control:majority", "-o", out, "--set", "template_no=3")
    done = sonde("run", "lama", "-d", data, *flags, *model)
    assert done.code == 0, done.err
    assert json.loads((out / "manifest.json").read_text())["dataset"]["name"] == (
        "lama under pararel+lpaqa"
    )
    assert len(open_dataset(out / "dataset").relation("P1").templates) == 4


def test_a_converted_dataset_keeps_the_templates_of_every_source(
    sonde: Sonde, words: tuple[str, list[str]], tmp_path: Path
) -> None:
    data, flags = words
    assert sonde("data", "convert", data, *flags, "-o", tmp_path / "out").code == 0
    made = open_dataset(tmp_path / "out")
    assert [t.source for t in made.relation("P1").templates] == [
        "manual",
        "manual",
        "mined",
        "paraphrase",
    ]


def commands(group: Any, words: tuple[str, ...] = ()) -> Any:
    """Every command of the program, by its words."""
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*words, name))
    if not hasattr(group, "commands"):
        yield words, command_flags(group)


def command_flags(command: Any) -> dict[str, Any]:
    return {option: parameter for parameter in command.params for option in parameter.opts}


def test_the_flag_is_repeatable_wherever_it_stands() -> None:
    found = {words: f["--template"] for words, f in commands(app)
             if "--template" in f}  # fmt: skip
    verbs = {words[0] for words in found}
    assert verbs == {"profile", "run", "plan", "optimise", "doctor", "data", "attribute"}
    assert all(flag.multiple for flag in found.values())
