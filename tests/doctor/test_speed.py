"""The doctor says by itself which way texts go through a model, and why if it is a slow one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sonde.core.facts import Dataset
from sonde.doctor.findings import Diagnosis, Finding
from sonde.models.options import LoadOptions
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import load_folder
from sonde.models.torch.masked.model import MaskedModel
from sonde.models.torch.seq2seq import Seq2SeqModel
from tests import tiny as world
from tests.command import in_this_process
from tests.tiny import Load
from tests.written import two_relations

from .faulty import look


def path(found: Diagnosis) -> Finding:
    return next(finding for finding in found.findings if finding.check == "fast path")


@pytest.mark.parametrize(
    ("kind", "model", "way"),
    [
        ("llama", CausalModel, "a tree of tokens"),
        ("bert", MaskedModel, "the head at the mask alone"),
        ("t5", Seq2SeqModel, "each prompt is read once"),
    ],
)
def test_the_quick_way_is_named(tiny: Load, data: Dataset, kind: str, model: Any, way: str) -> None:
    found = path(look(model(tiny(kind)), data))
    assert found.verdict == "ok" and way in found.found


def test_a_slow_way_is_a_warning_with_its_reason_and_its_price(
    tmp_path: Path, data: Dataset, caplog: pytest.LogCaptureFixture
) -> None:
    loaded = load_folder("hf:deaf", world.llama(tmp_path), LoadOptions(device="cpu"), weights="d")
    whole = loaded.model.forward
    loaded.model.forward = lambda *a, **given: whole(*a, **{**given, "position_ids": None})
    found = look(CausalModel(loaded), data)
    assert not found.faults and path(found) in found.warnings
    for said in (path(found).found, caplog.text):
        assert "does not heed the mask or the positions" in said
        assert "100 options is read 100 times" in said
    assert "sonde plan" in path(found).advice


def test_a_masked_model_that_looks_into_the_padding_is_told_of(
    tmp_path: Path, data: Dataset, caplog: pytest.LogCaptureFixture
) -> None:
    loaded = load_folder(
        "hf:conv", world.convbert(tmp_path), LoadOptions(device="cpu"), weights="c"
    )
    found = path(look(MaskedModel(loaded), data))
    assert found.verdict == "warning" and found.found in caplog.text
    assert "only texts of equal length go together" in found.found


def test_the_command_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, facts = world.mamba(tmp_path / "model"), two_relations(tmp_path / "facts")
    words = ("doctor", "-m", f"hf:{model}", "-d", facts, "--device", "cpu")
    sonde = in_this_process(capsys)
    shown = " ".join(sonde(*words).out.split())
    assert "warning fast path" in shown and "100 options is read 100 times" in shown
    said = json.loads(sonde(*words, "--json").out)
    (found,) = [each for each in said["findings"] if each["check"] == "fast path"]
    assert found["verdict"] == "warning" and "no tree of tokens" in found["found"]


def test_the_command_shows_how_many_tokens_would_go_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, facts = world.llama(tmp_path / "model"), two_relations(tmp_path / "facts")
    words = ("doctor", "-m", f"hf:{model}", "-d", facts, "--device", "cpu")
    sonde = in_this_process(capsys)
    told = "scoring 1,024, writing 1,024, drawing 1,024, reading 1,024"
    assert f"tokens at once {told}" in " ".join(sonde(*words).out.split())
    said = json.loads(sonde(*words, "--batch-tokens", "64", "--json").out)
    (found,) = [each for each in said["findings"] if each["check"] == "tokens at once"]
    assert found["values"] == {"score": 64, "generate": 64, "sample": 64, "trace": 64}
