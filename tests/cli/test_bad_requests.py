"""A request that is off: what is wrong with it, and what may have been meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from sonde.core.errors import ModelError, UsageError
from tests.command import Done, Sonde, process, with_slow_model

USAGE = UsageError.exit_code


def test_an_unknown_probe_offers_the_nearest_in_a_process_of_its_own() -> None:
    process("run", "lmaa", "-m", "control:majority").refused(USAGE, "'lmaa'", "'lama'")


UNKNOWN = {
    ("-m", "contrl:majority"): ("no model scheme 'contrl'", "did you mean 'control'"),
    ("-m", "control:majorty"): ("no control called 'majorty'", "did you mean 'majority'"),
    ("-m", "gpt2"): ("no model scheme 'gpt2'", "hf:gpt2"),
    ("-m", "control"): ("no control called ''", "majority"),
    ("-m", "hf:"): ("hf: needs a folder",),
    ("-d", "atls"): ("no dataset called 'atls'", "did you mean 'atlas'"),
    ("-d", "lma:somewhere"): ("no reader called 'lma'", "did you mean 'lama'"),
    ("--relations", "P63"): ("has no relation 'P63'", "did you mean", "'P36'"),
    ("--languages", ","): ("',' holds no name",),
    ("--split", "tset"): ("no facts in split 'tset'", "sonde data show"),
    ("--limit", "0"): ("limit must be at least 1, not 0",),
    ("--limit", "-3"): ("limit must be at least 1, not -3",),
    ("--limit", "ten"): ("--limit", "integer"),
    ("--seed", "x"): ("--seed", "integer"),
    ("--batch-tokens", "0"): ("--batch-tokens must be at least 1, not 0",),
    ("--bos", "maybe"): ("--bos must be auto, always or never; not 'maybe'",),
    ("--set", "tmplate=2"): ("unknown setting 'tmplate'", "did you mean 'template_no'"),
    ("--set", "template"): ("--set takes KEY=VALUE, not 'template'",),
    ("--set", "template_no=two"): ("setting template_no must be int, not 'two'",),
    ("--set", "answer=guess"): ("setting answer must be one of auto, fill, score; not 'guess'",),
    ("--template", "two"): ("no source of templates called 'two'",),
    ("--template-no", "two"): ("--template-no", "integer"),
    ("--answer", "guess"): ("--answer", "'guess'", "'fill'"),
    ("--tmplate", "2"): ("--tmplate", "--template"),
}


@pytest.mark.parametrize("words", UNKNOWN, ids=" ".join)
def test_what_is_not_known_is_refused_with_what_may_be_meant(
    sonde: Sonde, data: Path, tmp_path: Path, words: tuple[str, str]
) -> None:
    request = {"-m": "control:majority", "-d": str(data), "-o": str(tmp_path / "out")}
    request.update([words])
    done = sonde("run", "lama", *(word for pair in request.items() for word in pair))
    done.refused(USAGE, *UNKNOWN[words])
    assert not (tmp_path / "out").exists()


REPEATED = {
    ("run", "lama", "-m", "control:majority", "--model", "control:majority"): (
        "--model is given 2 times",
        "once per model",
        "sonde compare",
    ),
    ("run", "lama", "-m", "control:majority", "--limit", "2", "--limit=3"): (
        "--limit is given 2 times",
    ),
    ("run", "lama", "-m", "control:majority", "--html", "--no-html"): ("--html is given 2 times",),
    ("run", "lama", "-m", "control:majority", "-o", "a", "-o", "b", "-oc"): (
        "--out is given 3 times",
    ),
    ("run", "lama", "-m", "control:majority", "--set", "template_no=1", "--set", "template_no=2"): (
        "--set gives template_no more than once",
    ),
    ("run", "lama", "-m", "control:majority", "--set", "k=5", "--k", "3"): (
        "--k and --set both give k",
    ),
    ("run", "ic-lke", "-m", "control:majority", "--vary", "shots=1,2", "--shots", "3"): (
        "--shots and --vary both give shots",
    ),
    (
        "run",
        "ic-lke",
        "-m",
        "control:majority",
        "--vary",
        "max-options=1,2",
        "--max-options",
        "3",
    ): ("--max-options and --vary both give max-options",),
    ("plan", "qa", "-m", "control:majority", "--seed", "1", "--seed", "1"): (
        "--seed is given 2 times",
    ),
    ("demo", "--limit", "0", "--limit", "0"): ("--limit is given 2 times",),
    ("report", "runs/a", "--html", "a", "--html", "b"): ("--html is given 2 times",),
    ("data", "build", "nobel", "--out", "a", "--out", "b"): ("--out is given 2 times",),
}


@pytest.mark.parametrize("words", REPEATED, ids=" ".join)
def test_an_option_that_may_be_given_once_is_rejected_the_second_time(
    sonde: Sonde, words: tuple[str, ...]
) -> None:
    sonde(*words).refused(USAGE, *REPEATED[words])


def test_an_option_that_is_a_list_may_be_repeated(sonde: Sonde, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    settings = ("--set", "template_no=1", "--set", "answer=score", "--template", "P37=[X] is [Y].")
    words = ("run", "lama", "-m", "control:majority", "-d", data, "-o", out, *settings)
    done = sonde(*words, "--template", "P36=[X] has [Y].")
    assert done.code == 0, done.err
    assert sonde("run", "lama", "--help", "--help").code == 0


def test_a_dataset_that_is_not_there_is_named(sonde: Sonde, data: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    sonde("data", "show", tmp_path / "no").refused(3, str(tmp_path / "no"), "is not a folder")
    said = sonde("data", "show", tmp_path / "empty").refused(3, "no dataset.json")
    assert "lama" in said, "the readers are named"
    file = data / "relations.jsonl"
    sonde("data", "check", file).refused(3, f"{file} is a part of a dataset; give its folder")


def test_a_template_that_is_not_there_is_refused_before_a_folder_is_made(
    sonde: Sonde, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = sonde("run", "lama", "-m", "scripted:", "-d", data, "-o", out, "--template-no", "2")
    done.refused(3, "relation P36 has 1 templates, not 2; give a smaller --template-no")
    assert not out.exists()


def test_a_model_that_cannot_do_what_is_asked_is_refused_before_a_folder_is_made(
    data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ("run", "lama", "-m", "slow:0", "-d", data, "-o", out, "--answer", "fill")
    done: Done = process(*words, env=with_slow_model(tmp_path))
    done.refused(ModelError.exit_code, "needs a model that can fill", "this one can score")
    assert not out.exists()


@pytest.mark.parametrize("text", [None, "", "[]", '{"answers": 1}', '{"answer": {}}', "\xff"])
def test_a_script_that_is_none_is_named(
    sonde: Sonde, data: Path, tmp_path: Path, text: str | None
) -> None:
    path = tmp_path / "script.json"
    if text is not None:
        path.write_text(text, encoding="latin-1")
    done = sonde("run", "lama", "-m", f"scripted:{path}", "-d", data, "-o", tmp_path / "out")
    done.refused(ModelError.exit_code, str(path), '{"answers": {fact: name}}')


@pytest.mark.parametrize("words", [("--nosuch",), ("nosuch",), ("report",), ("data", "nosuch")])
def test_a_command_that_is_none_is_refused(sonde: Sonde, words: tuple[str, ...]) -> None:
    sonde(*words).refused(USAGE, "Usage: ")
