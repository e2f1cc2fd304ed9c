"""`--drop-guessable`: the same filter for every verb that asks."""

from __future__ import annotations

import json
from pathlib import Path

from sonde.core.errors import UsageError
from sonde.data.format import open_dataset
from tests import tiny
from tests.command import Sonde
from tests.written import dataset

PLACES = {"Lima Province": "Lima", "Peru": "Lima", "Chile": "Santiago", "Ghana": "Accra"}


def places(tmp_path: Path) -> Path:
    return dataset(tmp_path / "data", {"P36": ("[X] has [Y].", PLACES)})


def test_a_run_leaves_out_what_can_be_guessed_and_says_so(sonde: Sonde, tmp_path: Path) -> None:
    out = tmp_path / "out"
    flags = ("-m", "control:majority", "-d", places(tmp_path), "--drop-guessable", "string")
    done = sonde("run", "belief", *flags, "-o", out)
    assert done.code == 0, done.err
    assert "without guessable facts" in done.out
    kept = json.loads((out / "manifest.json").read_text())["dataset"]
    assert kept["notes"] == {"guessable_string": 1, "guessable.P36": 1}
    assert sum(1 for _ in open_dataset(out / "dataset").facts("P36")) == 3


def test_a_converted_dataset_keeps_what_was_counted(sonde: Sonde, tmp_path: Path) -> None:
    data, out = places(tmp_path), tmp_path / "out"
    done = sonde("data", "convert", data, "--drop-guessable", "string", "-o", out)
    assert "guessable_string 1" in done.out
    assert "1 relations, 3 facts" in done.out
    assert open_dataset(out).notes["guessable.P36"] == 1
    assert sonde("data", "check", out, "--seal").code == 0
    assert open_dataset(out).notes["guessable.P36"] == 1


def test_plan_and_doctor_count_the_same_facts(sonde: Sonde, tmp_path: Path) -> None:
    model = ("-m", f"hf:{tiny.llama(tmp_path / 'llama')}", "--device", "cpu")
    flags = (*model, "-d", places(tmp_path), "--drop-guessable", "string")
    planned = sonde("plan", "lama", *flags, "--measure", 0, "--json")
    assert json.loads(planned.out)["prompts"] == 3
    assert "without guessable facts" in " ".join(sonde("doctor", *flags).out.split())


def test_a_guesser_must_be_named_for_names_and_for_nothing_else(
    sonde: Sonde, tmp_path: Path
) -> None:
    flags = ("-m", "control:majority", "-d", places(tmp_path))
    for words in (("--drop-guessable", "names"), ("--guesser", "hf:x")):
        done = sonde("run", "lama", *flags, *words)
        done.refused(UsageError.exit_code, "--guesser")
    sonde("run", "lama", *flags, "--drop-guessable", "all").refused(2, "drop-guessable")
