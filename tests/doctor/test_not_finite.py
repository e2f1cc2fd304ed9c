"""NaN and infinity, of weights or of what is computed: found, and not taken for other faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from sonde.core.facts import Dataset
from sonde.core.prompts import Trace
from sonde.doctor.diagnose import diagnose
from sonde.models.load import examiner, load
from sonde.models.options import LoadOptions
from tests import tiny
from tests.command import in_this_process
from tests.written import two_relations

from .faulty import fault, faults, look

NORMS = {
    "llama": "norm.weight",
    "gpt2": "ln_f.weight",
    "mamba": "norm_f.weight",
    "bert": "LayerNorm.weight",
    "roberta": "LayerNorm.weight",
    "t5": "layer_norm.weight",
    "bart": "layernorm_embedding.weight",
}
MODELS = {**tiny.CAUSAL, **tiny.MASKED, **tiny.SEQ2SEQ}
DEPENDENT = {"sum to one", "answers vary", "not shifted", "asked again"}


@pytest.mark.parametrize("kind", NORMS)
def test_one_nan_in_the_weights_is_the_only_fault_that_is_told(
    data: Dataset, tmp_path: Path, kind: str
) -> None:
    folder = tiny.spoiled(MODELS[kind](tmp_path / "m"), NORMS[kind], tiny.one_nan)
    found = look(load(f"hf:{folder}", LoadOptions(device="cpu")), data)
    assert faults(found) == {"finite weights", "finite numbers"}
    assert NORMS[kind] in fault(found, "finite weights")
    assert "the weights are damaged" in fault(found, "finite weights")
    assert "the model itself" in fault(found, "finite numbers")
    unchecked = {f.check for f in found.findings if f.verdict == "not checked"}
    assert unchecked >= DEPENDENT | {"engine vs naive"}
    assert "nan" not in " ".join(f.found for f in found.findings)


def test_an_infinite_row_that_no_prompt_meets_is_found(data: Dataset, tmp_path: Path) -> None:
    def last(tensor: tiny.Tensor) -> tiny.Tensor:
        tensor[-1] = float("inf")
        return tensor

    folder = tiny.spoiled(tiny.llama(tmp_path / "m"), "embed_tokens", last)
    found = look(load(f"hf:{folder}", LoadOptions(device="cpu")), data)
    assert faults(found) == {"finite weights"}
    assert "embed_tokens.weight" in fault(found, "finite weights")


def test_an_overflow_of_half_precision_is_no_damage(data: Dataset, tmp_path: Path) -> None:
    folder = tiny.spoiled(tiny.llama(tmp_path / "m"), "model.norm.weight", tiny.huge)
    found = look(load(f"hf:{folder}", LoadOptions(device="cpu", dtype="float16")), data)
    assert faults(found) == {"finite numbers"}
    assert "--dtype float32" in fault(found, "finite numbers")
    larger = look(load(f"hf:{folder}", LoadOptions(device="cpu")), data)
    assert "finite numbers" not in faults(larger)


def test_a_text_that_is_read_is_looked_at_too(tmp_path: Path) -> None:
    folder = tiny.spoiled(tiny.llama(tmp_path / "m"), "norm.weight", tiny.one_nan)
    model = load(f"hf:{folder}", LoadOptions(device="cpu"))
    prompt = tiny.trace("Oslo, Vienna and New York", (4, 11))
    assert isinstance(prompt.want, Trace)
    found = diagnose(model, examiner(model), [prompt])
    assert faults(found) == {"finite weights", "finite numbers"}


def test_the_verb_ends_with_the_exit_code_of_models(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tiny.spoiled(tiny.bert(tmp_path / "m"), "LayerNorm.weight", tiny.one_nan)
    sonde = in_this_process(capsys)
    words = ("doctor", "-m", f"hf:{folder}", "-d", two_relations(tmp_path / "facts"))
    done = sonde(*words)
    done.refused(4, "2 faults (finite weights; finite numbers)")
    told = " ".join(done.out.split())
    assert "please report" not in told.lower()
    assert "dropout" not in told
    assert sonde(*words, "--json").code == 4
