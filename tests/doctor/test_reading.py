"""A probe that reads texts has its reading held against the naive one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from sonde.core.abilities import abilities
from sonde.core.answers import Traced
from sonde.core.columns import one_by_one
from sonde.core.facts import Dataset
from sonde.core.prompts import Prompt, Score, Trace
from sonde.doctor.diagnose import diagnose, sample, wants
from sonde.doctor.findings import Diagnosis
from sonde.models.load import examiner
from sonde.models.scripted import Scripted
from sonde.models.torch.causal.model import CausalModel
from sonde.probes.lama import Lama
from tests.tiny import Load

from .faulty import fault, faults


def reading(data: Dataset) -> list[Prompt]:
    """Prompts of LAMA with an option put in, to be read."""
    found = []
    for prompt in sample(Lama().suited(frozenset({"score"})), data, 2):
        assert isinstance(prompt.want, Score)
        text = prompt.prefix + prompt.want.options[0]
        span = (len(prompt.prefix.rstrip()), len(text))
        found.append(replace(prompt, prefix=text, suffix="", want=Trace(spans=(span,))))
    return found


def look(model: Any, data: Dataset) -> Diagnosis:
    prompts = wants(reading(data), data, abilities(model))
    return diagnose(model, examiner(model), prompts)


@pytest.mark.parametrize("kind", ["llama", "mamba"])
def test_a_model_that_reads_well_has_no_fault(tiny: Load, data: Dataset, kind: str) -> None:
    found = look(CausalModel(tiny(kind)), data)
    assert not found.faults
    checks = {finding.check for finding in found.findings if finding.verdict == "ok"}
    assert "reading vs naive" in checks
    assert "reading, choices" not in checks


def test_a_table_that_reads_has_no_fault(data: Dataset) -> None:
    assert not look(Scripted(answers={}), data).faults


@pytest.mark.parametrize("change", [lambda row: [row[0] - 1, *row[1:]], lambda row: row[1:]])
def test_numbers_that_are_off_are_found(
    tiny: Load, data: Dataset, monkeypatch: pytest.MonkeyPatch, change: Any
) -> None:
    model = CausalModel(tiny("gpt2"))
    sound = model.trace

    def off(prompts: Sequence[Prompt]) -> Iterator[tuple[int, Traced]]:
        for i, answer in one_by_one(sound(prompts)):
            yield i, Traced(logps=tuple(tuple(change(row)) for row in answer.logps))

    monkeypatch.setattr(model, "trace", off)
    found = look(model, data)
    assert faults(found) == {"reading vs naive"}
    assert fault(found, "reading vs naive")


def test_a_text_that_is_too_long_is_a_fault(tiny: Load, data: Dataset) -> None:
    model = CausalModel(tiny("gpt2"))
    prompts = [replace(p, prefix="Oslo " * 99 + p.prefix) for p in reading(data)]
    found = diagnose(model, examiner(model), prompts)
    assert "and the model takes 64" in fault(found, "answered")
