"""A step of every method that makes prompts or tunes models is the same on a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.optimise.autoprompt import AutoPrompt
from sonde.optimise.finetune import FineTune
from sonde.optimise.lpaqa import Lpaqa
from sonde.optimise.making import Made, optimise
from sonde.optimise.optiprompt import OptiPrompt
from tests import tiny
from tests.optimise.test_lpaqa import worded
from tests.optimise.world import answers, dataset, prompts

pytestmark = pytest.mark.gpu

GPU = "cuda"
METHODS: dict[str, Any] = {
    "optiprompt": OptiPrompt(epochs=1, vectors=3, rate=0.03, batch=12),
    "autoprompt": AutoPrompt(iterations=2, triggers=3, batch=12, candidates=8),
    "finetune": FineTune(epochs=1, batch=12, rate=0.001, keep="float32"),
    "lpaqa": Lpaqa(choose="weighted", epochs=2),
}
KINDS = {"bert": tiny.bert, "roberta": tiny.roberta, "gpt2": tiny.gpt2, "llama": tiny.llama}


def made(method: str, folder: Path, out: Path, device: str, dtype: str = "float32") -> list[Made]:
    model = load(f"hf:{folder}", LoadOptions(device=device, dtype=dtype, workers=0))
    data = worded() if method == "lpaqa" else dataset()
    found = list(optimise(METHODS[method], model, data, out, reference=f"hf:{folder}"))
    assert all(isinstance(each, Made) and not each.problem for each in found)
    return found


def numbers(out: Path) -> dict[str, np.ndarray]:
    """Every vector and weight that was kept, but those whose gradient is rounding alone.

    Those are the biases of keys, which move all scores of a query alike; GPT-2 has them as the
    middle third of one bias.
    """
    files = sorted(out.rglob("*.safetensors"))
    tables = {f"{file.name} {k}": v for file in files for k, v in load_file(file).items()}
    for name in [name for name in tables if name.endswith("attn.c_attn.bias")]:
        queries, _, values = np.split(tables[name], 3)
        tables[name] = np.concatenate([queries, values])
    return {name: table for name, table in tables.items() if not name.endswith("key.bias")}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_on_a_gpu_is_that_of_the_cpu(method: str, kind: str, tmp_path: Path) -> None:
    folder = KINDS[kind](tmp_path / "model")
    found, expected = (made(method, folder, tmp_path / d, d) for d in (GPU, "cpu"))
    for one, other in zip(found, expected, strict=True):
        assert one.relation == other.relation
        assert (one.before, one.after) == pytest.approx((other.before, other.after))
    kept, own = numbers(tmp_path / GPU), numbers(tmp_path / "cpu")
    assert kept.keys() == own.keys()
    for name, table in kept.items():
        assert np.allclose(table, own[name], atol=1e-3), name


@pytest.mark.parametrize("method", ["optiprompt", "finetune"])
@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_what_was_made_is_opened_and_asked_on_a_gpu(method: str, kind: str, tmp_path: Path) -> None:
    folder = KINDS[kind](tmp_path / "model")
    made(method, folder, tmp_path / "out", GPU)
    scheme = {"optiprompt": "soft", "finetune": "finetuned"}[method]
    found, expected = (
        load(f"{scheme}:{tmp_path / 'out'}", LoadOptions(device=device, workers=0))
        for device in (GPU, "cpu")
    )
    template = dataset().relations[0].templates[0]
    asked = prompts(found, template, ["Marie Curie", "New York"])
    for one, other in zip(answers(found, asked), answers(expected, asked), strict=True):
        values = [getattr(a, "top_logps", None) or sum(a.logps, ()) for a in (one, other)]
        assert values[0] == pytest.approx(values[1], abs=1e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_half_precision_can_be_optimised_on_a_gpu(method: str, kind: str, tmp_path: Path) -> None:
    folder = KINDS[kind](tmp_path / "model")
    made(method, folder, tmp_path / "out", GPU, "bfloat16")
    assert all(np.isfinite(table).all() for table in numbers(tmp_path / "out").values())
