"""`-m server:URL` on the command line: a run, a plan, and every wrong request in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sonde.models.server import KEY
from tests import tiny as worlds
from tests.command import Sonde
from tests.servers.answering import Answering, Face, serving

SECRET = "open-sesame"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return worlds.gpt2(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with serving(Face(Answering(folder, 64), key=SECRET)) as address:
        yield address


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(KEY, SECRET)
    monkeypatch.setattr("sonde.models.server.LOADING", 0.1)
    monkeypatch.setattr("sonde.models.server.WAIT", 0.01)
    monkeypatch.chdir(tmp_path)


def test_a_run_and_its_plan_tell_of_the_server_and_never_the_key(
    sonde: Sonde, address: str, folder: Path, data: Path
) -> None:
    words = ("-m", f"server:{address}", "--tokenizer", folder, "-d", data)
    done = sonde("run", "lama", *words, "--no-html", "-o", "run")
    assert done.code == 0, done.err
    manifest = Path("run/manifest.json").read_text()
    assert '"served model": "tiny"' in manifest and '"dialect": "plain"' in manifest
    planned = sonde("plan", "lama", *words, "--measure", 0)
    assert "to the server, " in planned.out and "per option" in planned.out
    assert "of memory" not in planned.out
    everything = done.out + done.err + planned.out + planned.err
    everything += "".join(p.read_text(errors="replace") for p in Path("run").rglob("*.json*"))
    assert SECRET not in everything


@pytest.mark.parametrize(
    ("words", "code", "parts"),
    [
        (("-m", "server:localhost"), 2, ("must begin with http:// or https://",)),
        (("-m", "server:http://me:pw@127.0.0.1:1"), 2, ("takes an address alone", KEY)),
        (("-m", "server:http://127.0.0.1:1"), 4, ("cannot be reached", "not back in 0.1 s")),
        (("-m", "{address}", "--served-model", "huge"), 4, ("no such model; it has tiny",)),
        (("-m", "{address}", "--tokenizer", "./nowhere"), 4, ("./nowhere is not a folder",)),
        (("-m", "{address}", "--tokenizer", ""), 2, ("needs --tokenizer FOLDER",)),
        (("-m", "{address}", "--concurrency", "0"), 2, ("concurrency",)),
    ],
)
def test_a_wrong_request_is_refused_in_a_sentence(
    sonde: Sonde,
    address: str,
    folder: Path,
    data: Path,
    words: tuple[str, ...],
    code: int,
    parts: tuple[str, ...],
) -> None:
    given = [word.replace("{address}", f"server:{address}") for word in words]
    done = sonde("run", "lama", "--tokenizer", folder, "-d", data, *given, "-o", "run")
    assert "pw" not in done.refused(code, *parts)
    assert not Path("run").exists()


def test_a_wrong_key_is_refused_and_not_shown(
    sonde: Sonde, address: str, folder: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "shibboleth")
    words = ("-m", f"server:{address}", "--tokenizer", folder, "-d", data)
    said = sonde("run", "lama", *words).refused(4, "HTTP 401", KEY)
    assert "shibboleth" not in said


def test_a_prompt_that_is_too_long_is_named_and_nothing_is_left(
    sonde: Sonde, address: str, folder: Path, data: Path
) -> None:
    long = "The capital of a country that is far away and that few have ever seen, "
    wording = ("--wording", f"P36={long}{long}[X], is [Y].")
    words = ("-m", f"server:{address}", "--tokenizer", folder, "-d", data, "--relations", "P36")
    done = sonde("run", "lama", *words, *wording, "-o", "run")
    done.refused(4, "tokens and the model takes 64", "fact 'P36:")


@pytest.mark.parametrize("verb", [("run", "lama"), ("plan", "lama"), ("doctor",)])
def test_flags_of_a_server_are_refused_for_another_model(
    sonde: Sonde, data: Path, verb: tuple[str, ...]
) -> None:
    words = ("-m", "control:majority", "--tokenizer", "somewhere", "-d", data)
    sonde(*verb, *words).refused(2, "--tokenizer may be given for server:URL alone")
