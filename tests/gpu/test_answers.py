"""Every kind of model answers on a GPU as on the CPU, and in half precision nearly so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sonde.core.answers import Generated, Sampled
from sonde.core.facts import Dataset
from sonde.core.prompts import Prompt
from sonde.data.catalog import load as load_dataset
from sonde.doctor.agreement import gap
from sonde.doctor.diagnose import answered
from sonde.models.load import attributor, load
from sonde.models.options import LoadOptions
from sonde.testing import check_model
from tests import tiny
from tests.doctor.faulty import look
from tests.parity.writing import LONG, draw, write
from tests.tiny import CITIES, fill, score, trace
from tests.written import two_relations

pytestmark = pytest.mark.gpu

GPU = "cuda"
KINDS: dict[str, Callable[[Path], Path]] = {**tiny.CAUSAL, **tiny.MASKED, **tiny.SEQ2SEQ}
NEAR = {"float32": 1e-4, "float16": 0.05, "bfloat16": 0.4}


def prompts(kind: str) -> list[Prompt]:
    """What a kind of model can be asked; some begin alike."""
    places = ("Oslo", "York", "It")
    scored = [score(f"{LONG if kind != 'gpt2' else ''}{p} is in ", CITIES) for p in places]
    if kind in tiny.MASKED:
        filled = [fill(f"{place} is in ", ".", watched=CITIES) for place in places]
        return [score(f"{place} is in ", CITIES, ".") for place in places] + filled
    texts = [write(f"{place} is in") for place in places] + [draw("Oslo is in", until="a")]
    read = [trace(f"{p} is in Paris", (0, 2), (len(p) + 6, len(p) + 12)) for p in places]
    return scored + texts + (read if kind in tiny.CAUSAL else [])


def opened(folder: Path, device: str, dtype: str = "float32") -> Any:
    return load(f"hf:{folder}", LoadOptions(device=device, dtype=dtype, workers=0))


@pytest.mark.parametrize("kind", KINDS)
def test_a_gpu_answers_as_the_cpu_does(kind: str, tmp_path: Path) -> None:
    folder, asked = KINDS[kind](tmp_path), prompts(kind)
    found, expected = (answered(opened(folder, device), asked)[0] for device in (GPU, "cpu"))
    for one, other in zip(found, expected, strict=True):
        assert one is not None and other is not None
        assert gap(one, other) <= NEAR["float32"]
        if isinstance(one, Sampled):
            assert one == other
        if isinstance(one, Generated) and isinstance(other, Generated):
            assert one.text == other.text


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("kind", KINDS)
def test_half_precision_on_a_gpu_answers_nearly_as_float32(
    kind: str, dtype: str, tmp_path: Path
) -> None:
    folder, asked = KINDS[kind](tmp_path), prompts(kind)
    found, expected = (answered(opened(folder, GPU, d), asked)[0] for d in (dtype, "float32"))
    for one, other in zip(found, expected, strict=True):
        assert one is not None and other is not None
        if not isinstance(one, Generated | Sampled):
            assert gap(one, other) <= NEAR[dtype]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_doctor_finds_no_fault_on_a_gpu(kind: str, dtype: str, tmp_path: Path) -> None:
    data: Dataset = load_dataset(str(two_relations(tmp_path / "data")))
    found = look(opened(KINDS[kind](tmp_path / "m"), GPU, dtype), data)
    # in half precision a random model has near ties at every token that it writes
    ties = set() if dtype == "float32" else {"writing vs naive", "writing, choices"}
    assert {finding.check for finding in found.faults} <= ties


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_on_a_gpu_passes_the_public_checks(kind: str, tmp_path: Path) -> None:
    check_model(opened(KINDS[kind](tmp_path), GPU), prompts(kind))


@pytest.mark.parametrize("kind", [*tiny.CAUSAL, *tiny.SEQ2SEQ])
def test_answers_are_attributed_on_a_gpu_as_on_the_cpu(kind: str, tmp_path: Path) -> None:
    folder = KINDS[kind](tmp_path)
    found, expected = (
        attributor(opened(folder, device)).attribute(
            "The capital of France is ", "Paris", steps=50, most=50, tolerance=1.0
        )
        for device in (GPU, "cpu")
    )
    assert found.weights == pytest.approx(expected.weights, abs=1e-3)
    assert found.tokens == expected.tokens
