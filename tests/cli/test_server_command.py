"""`-m server:URL` on the command line: a run, a plan, and every wrong request in one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sonde.models.server import KEY
from tests import tiny as worlds
from tests.command import Done, Sonde, override
from tests.data.loopback import Reply
from tests.servers.answering import Answering, Face, refusal, serving
from tests.servers.faulty import HTML
from tests.servers.odd_faces import Deaf, Short, Untold
from tests.servers.sglang_face import SglangFace
from tests.servers.vllm_face import VllmFace

SECRET = "open-sesame"
HASTY = ("--server-backoff", "0.01")


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
        (
            ("-m", "server:http://127.0.0.1:99999"),
            2,
            ("rror: server: http://127.0.0.1:99999 is no",),
        ),
        (("-m", "server:http://[::1"), 2, ("rror: server: http://[::1 is no address",)),
        (("-m", "server:http://me:pw@127.0.0.1:1"), 2, ("takes an address alone", KEY)),
        (("-m", "server:http://127.0.0.1:1"), 4, ("cannot be reached", "not back in 0.1 s")),
        (("-m", "{address}", "--served-model", "huge"), 4, ("no such model; it has tiny",)),
        (("-m", "{address}", "--tokenizer", "./nowhere"), 4, ("./nowhere is not a folder",)),
        (("-m", "{address}", "--tokenizer", ""), 2, ("needs --tokenizer FOLDER",)),
        (("-m", "{address}", "--concurrency", "0"), 2, ("concurrency",)),
        (("-m", "{address}", "--server-retries", "-1"), 2, ("server-retries",)),
        (("-m", "{address}", "--server-retries", "often"), 2, ("server-retries",)),
        (("-m", "{address}", "--server-backoff", "-1"), 2, ("server-backoff",)),
        (("-m", "{address}", "--server-backoff", "61"), 2, ("--server-backoff must be", "60")),
        (("-m", "{address}", "--server-backoff", "nan"), 2, ("--server-backoff",)),
        (("-m", "{address}", "--server-timeout", "nan"), 2, ("--server-timeout",)),
        (("-m", "{address}", "--server-wait", "nan"), 2, ("--server-wait",)),
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
    defaults = ("-d", data, "-o", "run", "--tokenizer", folder, *HASTY)
    done = sonde("run", "lama", *override(defaults, given))
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
    wording = ("--template", f"P36={long}{long}[X], is [Y].")
    words = ("-m", f"server:{address}", "--tokenizer", folder, "-d", data, "--relations", "P36")
    done = sonde("run", "lama", *words, *wording, "-o", "run")
    done.refused(4, "tokens and the model takes 64", "fact 'P36:")
    assert not Path("run").exists()


def run_with(sonde: Sonde, face: Face, folder: Path, data: Path, *words: object) -> Done:
    """A run of a model behind a server, into `run`."""
    with serving(face) as address:
        model = ("-m", f"server:{address}", "--tokenizer", folder, *HASTY)
        return sonde("run", "lama", *model, "-d", data, "-o", "run", "--no-html", *words)


@pytest.mark.parametrize("kind", [Face, VllmFace, SglangFace, Deaf])
def test_another_tokenizer_than_the_servers_is_refused(
    sonde: Sonde, folder: Path, data: Path, tmp_path: Path, kind: type[Face]
) -> None:
    other = worlds.renumbered(worlds.gpt2(tmp_path / "other"))
    done = run_with(sonde, kind(Answering(folder, 64)), other, data)
    done.refused(4, f"the tokenizer {other} is not ", "the server's", "give --tokenizer the folder")
    assert not Path("run").exists()


def test_a_server_that_cuts_prompts_in_silence_is_refused(
    sonde: Sonde, folder: Path, data: Path
) -> None:
    answering = Answering(folder, 128)
    done = run_with(sonde, Untold(answering), folder, data)
    done.refused(4, "does not say in usage.prompt_tokens how many tokens it read")
    assert not Path("run").exists()
    wording = (
        "--relations",
        "P36",
        "--template",
        f"P36={'Of all that is far away, ' * 3}[X], [Y].",
    )
    done = run_with(sonde, Short(answering), folder, data, *wording)
    assert re.search(r"prompt has \d+ tokens where \d+ were sent: it was cut", done.refused(4))
    assert not Path("run").exists()


def test_an_address_that_answers_html_is_named(sonde: Sonde, folder: Path, data: Path) -> None:
    page = Face(Answering(folder, 64), change=lambda path, body, reply: HTML)
    done = run_with(sonde, page, folder, data)
    done.refused(2, "has no list of models (/v1/models); check the address")
    done = run_with(sonde, page, folder, data, "--served-model", "tiny")
    done.refused(4, "gave no JSON but '<html>", "check the address")
    assert not Path("run").exists()


def test_a_server_that_cannot_score_names_the_probes_that_it_can_serve(
    sonde: Sonde, folder: Path, data: Path
) -> None:
    done = run_with(sonde, Deaf(Answering(folder, 64)), folder, data)
    said = done.refused(4, "needs a model that can", "Why it is not able to score: ")
    served = said.partition("Probes that it can serve: ")[2]
    assert served and "lama" not in served.split(",")
    assert not Path("run").exists()


@pytest.mark.parametrize("verb", [("run", "lama"), ("plan", "lama"), ("doctor",)])
def test_flags_of_a_server_are_refused_for_another_model(
    sonde: Sonde, data: Path, verb: tuple[str, ...]
) -> None:
    words = ("-m", "control:majority", "--tokenizer", "somewhere", "-d", data)
    sonde(*verb, *words).refused(2, "--tokenizer may be given for server:URL alone")


@pytest.mark.parametrize(("retries", "told"), [(0, "one try"), (1, "2 tries")])
@pytest.mark.parametrize(
    "verb", [("run", "lama"), ("plan", "lama"), ("doctor",), ("run", "lama", "--on", "local:1")]
)
def test_every_verb_asks_as_patiently_as_it_is_told(
    sonde: Sonde, folder: Path, data: Path, verb: tuple[str, ...], retries: int, told: str
) -> None:
    def busy(path: str, body: Any, reply: Reply) -> Reply:
        return refusal(429, "Too many requests") if body else reply

    with serving(Face(Answering(folder, 64), change=busy)) as address:
        model = ("-m", f"server:{address}", "--tokenizer", folder, "-d", data)
        patience = ("--server-retries", retries, *HASTY)
        sonde(*verb, *model, *patience).refused(
            4, f"HTTP 429: Too many requests (given up after {told})"
        )
