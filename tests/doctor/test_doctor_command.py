"""The verb: what it prints, in which width, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import tiny
from tests.command import Sonde, in_this_process
from tests.written import two_relations


@pytest.fixture
def sonde(capsys: pytest.CaptureFixture[str]) -> Sonde:
    return in_this_process(capsys)


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    return two_relations(tmp_path / "facts")


def test_a_healthy_model_ends_well_and_shows_its_tokens(
    sonde: Sonde, facts: Path, tmp_path: Path
) -> None:
    done = sonde("doctor", "-m", f"hf:{tiny.llama(tmp_path / 'm')}", "-d", facts)
    assert done.code == 0
    assert "FAULT" not in done.out
    assert "No fault in" in done.out
    assert "opens with <|endoftext|>" in done.out
    assert "[␣" in done.out, "the answer is in brackets, its space visible"
    assert "tolerance 0.001" in done.out


def test_a_fault_ends_with_the_exit_code_of_models(
    sonde: Sonde, facts: Path, tmp_path: Path
) -> None:
    folder = tiny.gpt2(tmp_path / "m", vocab_size=300)
    done = sonde("doctor", "-m", f"hf:{folder}", "-d", facts)
    done.refused(4, "1 fault (vocabulary)", "Do not trust")
    assert "FAULT" in done.out
    assert "use the model's own tokenizer" in " ".join(done.out.split())


def test_machines_get_every_finding_and_the_same_exit_code(
    sonde: Sonde, facts: Path, tmp_path: Path
) -> None:
    folder = tiny.gpt2(tmp_path / "m", vocab_size=300)
    done = sonde("doctor", "-m", f"hf:{folder}", "-d", facts, "--json")
    assert done.code == 4
    told = json.loads(done.out)
    assert told["faults"] == 1
    verdicts = {finding["check"]: finding["verdict"] for finding in told["findings"]}
    assert verdicts["vocabulary"] == "fault"
    assert verdicts["how texts open"] == "ok"
    text = told["prompts"][0]["texts"][0]
    assert len(text["ids"]) == len(text["pieces"])
    assert "".join(text["pieces"][text["start"] : text["stop"]]) == " " + text["answer"]


def test_a_control_says_what_does_not_apply(sonde: Sonde, facts: Path) -> None:
    done = sonde("doctor", "-m", "control:majority", "-d", facts)
    assert done.code == 0
    assert "not checked" in done.out
    assert "No fault in 4 checks." in done.out


@pytest.mark.parametrize("columns", ["60", "80", "120"])
def test_no_line_is_wider_than_the_terminal(facts: Path, tmp_path: Path, columns: str) -> None:
    from rich.console import Console

    import sonde as package
    from sonde.cli.doctor import print_diagnosis

    from .faulty import look

    model = package.model(f"hf:{tiny.llama(tmp_path / 'm')}")
    found = look(model, package.dataset(str(facts)))
    console = Console(width=int(columns), record=True, file=(tmp_path / "out").open("w"))
    print_diagnosis(found, model.identity, "world", console)
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= int(columns)
    assert any("[" in line and "]" in line for line in lines)


def test_an_unknown_probe_is_refused(sonde: Sonde, facts: Path) -> None:
    sonde("doctor", "-m", "control:majority", "-d", facts, "--probe", "lma").refused(2, "lama")
