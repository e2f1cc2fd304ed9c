"""`--chat`: what is refused in a sentence, and what the doctor shows of a conversation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import tiny
from tests.chat.templates import chat_model
from tests.command import Sonde

ASK = (
    *("run", "framing", "-d", "atlas", "--relations", "P36", "--limit", "1", "--no-html"),
    *("--chat", "always"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chat_model(tmp_path_factory.mktemp("chat") / "tiny")


def test_a_run_goes_on_only_in_the_same_form(folder: Path, tmp_path: Path, sonde: Sonde) -> None:
    ask = (*ASK, "-m", f"hf:{folder}", "-o", tmp_path / "run")
    assert sonde(*ask).code == 0
    assert sonde(*ask).code == 0  # complete: nothing is asked again
    sonde(*ask, "--chat-system", "Be brief.").refused(5, "model.chat.system", "'Be brief.'")


def test_reports_and_comparisons_tell_the_form_of_prompts(
    folder: Path, tmp_path: Path, sonde: Sonde
) -> None:
    ask = (*ASK[:-2], "-m", f"hf:{folder}", "-o")
    plain, turns = tmp_path / "plain", tmp_path / "turns"
    assert "conversation" not in sonde(*ask, plain).out
    with_system = ("--chat", "always", "--chat-system", "Be brief.")
    assert sonde(*ask, turns, *with_system).code == 0
    told = " ".join(sonde("report", turns, "--all-tables").out.split())
    assert "sent in the model's chat format" in told and "system text “Be brief.”" in told
    done = sonde("compare", plain, turns)
    told = " ".join((done.out + done.err).split())
    assert "Settings differ" in told and "chat-system" in told
    assert "chat=always chat-system=Be brief." in told


def test_a_model_without_a_template_is_refused(tmp_path: Path, sonde: Sonde) -> None:
    ask = ("run", "lama", "-d", "atlas", "--limit", "1", "--chat", "always", "-o", tmp_path / "run")
    gpt, bert = tiny.gpt2(tmp_path / "gpt"), tiny.bert(tmp_path / "bert")
    sonde(*ask, "-m", f"hf:{gpt}").refused(4, "has no chat template", "leave out --chat always")
    sonde(*ask, "-m", f"hf:{bert}").refused(4, "cannot be asked in turns")
    sonde(*ask, "-m", "control:majority").refused(4, "cannot be asked in turns")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--chat", "sometimes"), "--chat must be never or always; not 'sometimes'"),
        (("--chat-system", "Hi"), "--chat-system is of use in a conversation only"),
        (("--chat-examples", "one"), "--chat-examples is of use in a conversation only"),
        (("--chat-thinking", "9"), "--chat-thinking is of use in a conversation only"),
        (("--chat", "always", "--bos", "never"), "both say how a text opens"),
        (("--chat", "always", "--chat-examples", "two"), "--chat-examples must be turns or one"),
    ],
)
def test_flags_that_cannot_be_are_refused(
    words: tuple[str, ...], said: str, folder: Path, sonde: Sonde
) -> None:
    sonde("plan", "lama", "-m", f"hf:{folder}", "-d", "atlas", *words).refused(2, said)


def test_the_doctor_shows_the_prompt_and_finds_every_token_in_its_place(
    folder: Path, sonde: Sonde
) -> None:
    ask = ("doctor", "-m", f"hf:{folder}", "-d", "atlas", "--relations", "P36", "--limit", "1")
    done = sonde(*ask, "--chat", "always", "--probe", "framing")
    assert done.code == 0, done.err
    assert "A prompt as the model is given it" in done.out and "<|im_start|>assistant" in done.out
    found = json.loads(sonde(*ask, "--json", "--chat", "always").out)["findings"]
    verdicts = {finding["check"]: finding["verdict"] for finding in found}
    assert verdicts["answer's tokens"] == verdicts["how texts open"] == "ok"
    assert verdicts["scoring vs naive"] == verdicts["chat template"] == "ok"


def test_workers_are_given_the_same_turns_and_controls_none(
    folder: Path, tmp_path: Path, sonde: Sonde
) -> None:
    ask = (*ASK, "-m", f"hf:{folder}")
    done = sonde(*ask, "-o", tmp_path / "one", "--controls", "majority")
    assert done.code == 0 and "left out" not in done.err
    assert sonde(*ask, "-o", tmp_path / "two", "--on", "local:1").code == 0
    one, two = ([*(tmp_path / name / "shards").glob("*.parquet")] for name in ("one", "two"))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


def test_a_reference_is_asked_in_the_same_turns(folder: Path, sonde: Sonde) -> None:
    ask = ("doctor", "-m", f"hf:{folder}", "-d", "atlas", "--relations", "P36", "--limit", "1")
    done = sonde(*ask, "--chat", "always", "--against", f"hf:{folder}", "--json")
    found = {f["check"]: f for f in json.loads(done.out)["findings"]}
    assert {f["verdict"] for name, f in found.items() if "against" in name} <= {"ok"}
    assert done.code == 0, done.err
