"""`sonde attribute`: prompts and facts, one model or several, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import tiny
from tests.chat.templates import chat_model
from tests.command import Sonde

QUICK = ("--steps", "5", "--most", "5", "--device", "cpu")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("models")
    return f"hf:{tiny.llama(folder / 'causal')}", f"hf:{tiny.t5(folder / 'pair')}"


@pytest.fixture
def questions(data: Path) -> Path:
    lines = (data / "templates.jsonl").read_text()
    asked = {"id": "P36-q", "relation": "P36", "text": "What is the capital of [X]? [Y].",
             "style": "question"}  # fmt: skip
    (data / "templates.jsonl").write_text(lines + json.dumps(asked) + "\n")
    return data


def test_a_prompt_is_shown_for_two_models_with_html_and_json(
    sonde: Sonde, models: tuple[str, str], tmp_path: Path
) -> None:
    page, file = tmp_path / "a.html", tmp_path / "a.json"
    done = sonde("attribute", "-m", models[0], "-m", models[1], "The capital of France is",
                 "--answer", "Paris", "--html", page, "--json", file, *QUICK)  # fmt: skip
    assert done.code == 0, done.err
    assert "capital" in done.out and str(page) in done.out.replace("\n", "")
    assert "<svg" in page.read_text(encoding="utf-8")
    (strip,) = json.loads(file.read_text())["strips"].values()
    names = dict.fromkeys(row["y"].partition(":")[0] for row in strip)
    assert list(names) == [model.partition(":")[0] for model in models][:1]
    first = [row["label"] for row in strip if row["y"] == strip[0]["y"]]
    assert "".join(first) == "The capital of France is"


def test_without_an_answer_the_models_own_is_attributed(
    sonde: Sonde, models: tuple[str, str]
) -> None:
    done = sonde("attribute", "-m", models[0], "The capital of France is", *QUICK)
    assert done.code == 0, done.err
    assert "it answers" not in done.out.split("The prompt")[1]


def test_a_fact_is_asked_in_turns(sonde: Sonde, questions: Path, tmp_path: Path) -> None:
    folder, file = chat_model(tmp_path / "chat"), tmp_path / "a.json"
    done = sonde("attribute", "-m", f"hf:{folder}", "-d", questions, "--fact", "P36:France",
                 "--frame", "qa", "--shots", "1", "--negatives", "0", "--chat", "always",
                 "--json", file, *QUICK)  # fmt: skip
    assert done.code == 0, done.err
    assert "1 example" in " ".join(done.out.split()) and "im_start" not in done.out
    told = json.loads(file.read_text())
    assert "<|im_start|>" not in json.dumps(told["strips"])
    (identity,) = told["provenance"]["models"].values()
    assert identity["chat"]["examples"] == "turns"


def test_a_fact_has_its_prompts_side_by_side(
    sonde: Sonde, models: tuple[str, str], questions: Path
) -> None:
    done = sonde("attribute", "-m", models[0], "-d", questions, "--fact", "P36:France", "--frame",
                 "qa", "--shots", "1", "--negatives", "2", *QUICK)  # fmt: skip
    assert done.code == 0, done.err
    for words in ("Anchor", "Framing", "Interference", "told Paris (right)", "frame P36-q (base)",
                  "mean of interference", "1 example"):  # fmt: skip
        assert words in done.out, words


def test_requests_that_make_no_sense_are_refused(
    sonde: Sonde, models: tuple[str, str], questions: Path
) -> None:
    sonde("attribute", "-m", models[0]).refused(2, "either a prompt or a fact")
    both = sonde("attribute", "-m", models[0], "Where?", "--fact", "P36:France")
    both.refused(2, "not both")
    unknown = sonde("attribute", "-m", models[0], "-d", questions, "--fact", "P36:Frances")
    unknown.refused(2, "did you mean", "P36:France")
    bare = sonde("attribute", "-m", models[0], "-d", questions, "--fact", "P37:France")
    bare.refused(2, "no question templates")
    table = sonde("attribute", "-m", "scripted:", "Where?", "--answer", "Here")
    table.refused(4, "answers from a table", "hf:FOLDER")
