"""What is well is called well: every kind of tiny model, controls, and the real ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sonde
from sonde.core.facts import Dataset
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.masked.model import MaskedModel
from sonde.models.torch.seq2seq import Seq2SeqModel
from tests.tiny import CAUSAL, MASKED, SEQ2SEQ, Load

from .faulty import look


@pytest.mark.parametrize("kind", CAUSAL)
def test_a_healthy_causal_model_has_no_fault(tiny: Load, data: Dataset, kind: str) -> None:
    found = look(CausalModel(tiny(kind)), data)
    assert not found.faults
    checked = {finding.check for finding in found.findings if finding.verdict == "ok"}
    assert {"how texts open", "not shifted", "scoring vs naive", "writing, choices"} <= checked


@pytest.mark.parametrize("kind", MASKED)
def test_a_healthy_masked_model_has_no_fault(tiny: Load, data: Dataset, kind: str) -> None:
    found = look(MaskedModel(tiny(kind)), data)
    assert not found.faults
    checked = {finding.check for finding in found.findings if finding.verdict == "ok"}
    assert {"how texts open", "not shifted", "scoring vs naive", "filling, choices"} <= checked


@pytest.mark.parametrize("kind", SEQ2SEQ)
def test_a_healthy_encoder_decoder_model_has_no_fault(tiny: Load, data: Dataset, kind: str) -> None:
    found = look(Seq2SeqModel(tiny(kind)), data)
    assert not found.faults
    checked = {finding.check for finding in found.findings if finding.verdict == "ok"}
    assert {"how texts open", "answer's tokens", "length", "not shifted", "sum to one"} <= checked
    assert {"scoring vs naive", "writing vs naive", "writing, choices", "asked again"} <= checked


@pytest.mark.parametrize("name", ["control:majority", "scripted:"])
def test_a_table_has_no_fault_and_says_what_was_not_checked(data: Dataset, name: str) -> None:
    found = look(sonde.model(name, data=data), data)
    assert not found.faults
    absent = {finding.check for finding in found.findings if finding.verdict == "not checked"}
    assert {"how texts open", "not shifted", "answers vary", "engine vs naive"} <= absent


def test_a_model_in_half_precision_is_given_more_room(tmp_path: Path, data: Dataset) -> None:
    model: Any = sonde.model(f"hf:{CAUSAL['llama'](tmp_path / 'm')}", dtype="float16")
    found = look(model, data)
    assert not found.faults
    assert found.tolerance == 0.05


@pytest.mark.shared
def test_the_real_masked_model_has_neither_fault_nor_warning(shared: Path) -> None:
    atlas = sonde.dataset("atlas", relations=("P36", "P30"))
    found = look(sonde.model(f"hf:{shared / 'models' / 'encoder-24m'}"), atlas)
    assert not found.faults + found.warnings


def test_the_real_causal_model_has_neither_fault_nor_warning(smollm2: str) -> None:
    atlas = sonde.dataset("atlas", relations=("P30",))
    found = look(sonde.model(smollm2), atlas, facts=2)
    assert not found.faults + found.warnings
