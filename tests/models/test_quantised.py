"""Quantised weights: scored as transformers computes them, named in the manifest, or refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from sonde.core.abilities import Identity
from sonde.core.columns import one_by_one
from sonde.core.errors import MissingExtra, ModelError, UsageError
from sonde.doctor.diagnose import diagnose, tolerance_of, weights
from sonde.models.load import examiner, load
from sonde.models.options import LoadOptions
from sonde.models.torch import reference
from sonde.models.torch.loading import weight_files
from sonde.optimise.finetune import FineTune
from tests import tiny

PROMPTS = [
    tiny.score(text, tuple(f" {city}" for city in tiny.CITIES))
    for text in ("The capital of France is", "Marie Curie was born in")
]
CPU = LoadOptions(device="cpu")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SONDE_CACHE", str(tmp_path / "cache"))


def bitsandbytes(bits: int) -> Any:
    pytest.importorskip("bitsandbytes", reason="needs bitsandbytes")
    config: Any = transformers.BitsAndBytesConfig
    return config(load_in_4bit=bits == 4, load_in_8bit=bits == 8, bnb_4bit_quant_type="nf4")


def torchao() -> Any:
    pytest.importorskip("torchao", reason="needs torchao")
    int8: Any = import_module("torchao.quantization").Int8WeightOnlyConfig
    return transformers.TorchAoConfig(int8())


def made(folder: Path, config: Any) -> Path:
    """A tiny model whose weights are saved quantised, by transformers or as `config` makes them."""
    plain = tiny.llama(folder / "plain", hidden_size=64, intermediate_size=128)
    if isinstance(config, dict):
        return converted(plain, folder / "quantised", **config)
    auto: Any = transformers.AutoModelForCausalLM
    model = auto.from_pretrained(
        plain, quantization_config=config, dtype=torch.float32, device_map={"": "cpu"}
    )
    model.save_pretrained(folder / "quantised")
    transformers.AutoTokenizer.from_pretrained(plain).save_pretrained(folder / "quantised")
    return folder / "quantised"


def converted(plain: Path, folder: Path, change: Any, config: dict[str, Any]) -> Path:
    """The same with the weights of its projections written otherwise."""
    shutil.copytree(plain, folder)
    tensors: dict[str, Any] = {}
    for name, weight in load_file(folder / "model.safetensors").items():
        tensors |= change(name, weight) if name.endswith("_proj.weight") else {name: weight}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "quantization_config": config}))
    return folder


def fp8() -> dict[str, Any]:
    def change(name: str, weight: Any) -> dict[str, Any]:
        scale = weight.abs().max() / 448
        return {
            name: (weight / scale).to(torch.float8_e4m3fn),
            f"{name}_scale_inv": scale.reshape(1, 1),
        }

    blocks = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    return {"change": change, "config": {**blocks, "activation_scheme": "dynamic"}}


def compressed_tensors() -> dict[str, Any]:
    package = pytest.importorskip("compressed_tensors", reason="needs compressed-tensors")
    packed = import_module(f"{package.__name__}.compressors.pack_quantized.helpers").pack_to_int32

    def change(name: str, weight: Any) -> dict[str, Any]:
        scale = weight.abs().amax(1, keepdim=True) / 127
        return {
            f"{name}_packed": packed((weight / scale).round().to(torch.int8), 8),
            f"{name}_scale": scale,
            f"{name}_shape": torch.tensor(weight.shape),
        }

    kind = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel"}
    config = {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "quantization_status": "compressed",
        "ignore": ["lm_head"],
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": kind}},
    }
    return {"change": change, "config": config}


WAYS = {
    "fp8, 8 bits": fp8,
    "compressed-tensors, 8 bits": compressed_tensors,
    "bitsandbytes, 4 bits": lambda: bitsandbytes(4),
    "bitsandbytes, 8 bits": lambda: bitsandbytes(8),
    "torchao": torchao,
}


@pytest.mark.parametrize("way", WAYS)
def test_options_are_scored_as_transformers_computes_them(way: str, tmp_path: Path) -> None:
    folder = made(tmp_path, WAYS[way]())
    model: Any = load(f"hf:{folder}", CPU)
    auto: Any = transformers.AutoModelForCausalLM
    plain = auto.from_pretrained(folder, dtype=torch.float32, device_map={"": "cpu"}).eval()
    naive = dict(reference.score_causal(plain, model.encoder, PROMPTS))
    # eight bits round the inputs too, by what else is in the batch
    within = 0.05 if way == "bitsandbytes, 8 bits" else 1e-3
    for position, scored in one_by_one(model.score(PROMPTS)):
        for ours, theirs in zip(scored.logps, naive[position].logps, strict=True):
            assert ours == pytest.approx(theirs, abs=within)
    details = model.identity.details
    assert details["quantised"].startswith(way)
    unquantised = load(f"hf:{tmp_path / 'plain'}", CPU).identity
    assert details["parameters"] == unquantised.details["parameters"]
    assert model.identity.weights != unquantised.weights
    assert [finding.check for finding in weights(model.identity)] == ["quantised"]


def test_the_doctor_warns_of_numbers_that_depend_on_the_batch() -> None:
    for way, verdict in (("bitsandbytes, 8 bits", "warning"), ("bitsandbytes, 4 bits", "ok")):
        identity = Identity(name="hf:m", architecture="", details={"quantised": way})
        [finding] = weights(identity)
        assert finding.verdict == verdict and finding.found.startswith(way)
        on_cpu = replace(identity, details={**identity.details, "device": "cpu"})
        assert tolerance_of(on_cpu) == (0.001 if verdict == "warning" else 0.3)
        depends = "depend on what else is in the batch" in finding.found
        assert depends == ("int8 weights of torchao" in finding.advice) == (verdict == "warning")


@pytest.mark.parametrize("way", WAYS)
def test_the_doctor_finds_no_fault_in_quantised_weights(way: str, tmp_path: Path) -> None:
    model: Any = load(f"hf:{made(tmp_path, WAYS[way]())}", CPU)
    found = diagnose(model, examiner(model), PROMPTS)
    # the engine of eight bits may differ from one text alone by more than rounding
    inexact = way == "bitsandbytes, 8 bits"
    faults = [f.check for f in found.faults if not inexact or "naive" not in f.check]
    assert all("torchao" in f.advice for f in found.faults if inexact and "naive" in f.check)
    assert [check for check in faults if check != "answers vary"] == []


def test_weights_of_few_bits_are_not_drawn_anew(tmp_path: Path) -> None:
    folder = made(tmp_path, fp8())
    with pytest.raises(ModelError, match=r"quantised \(fp8, 8 bits\) and cannot be drawn anew"):
        load(f"random:hf:{folder}", CPU)
    with pytest.raises(ModelError, match=r"quantised .* and cannot be fine-tuned; name the model"):
        FineTune().refuse(load(f"hf:{folder}", CPU))


def test_double_precision_of_few_bits_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path, fp8())
    with pytest.raises(UsageError, match=r"no dtype makes more exact; leave out --dtype float64"):
        load(f"hf:{folder}", LoadOptions(device="cpu", dtype="float64"))


def test_a_dtype_that_the_weights_do_not_have_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path, bitsandbytes(8))
    with pytest.raises(UsageError, match=r"compute in float32; leave out --dtype bfloat16"):
        load(f"hf:{folder}", LoadOptions(device="cpu", dtype="bfloat16"))


def test_an_adapter_stays_beside_quantised_weights(tmp_path: Path) -> None:
    folder = made(tmp_path, bitsandbytes(4))
    peft: Any = pytest.importorskip("peft", reason="needs the extra sonde[large]")
    auto: Any = transformers.AutoModelForCausalLM
    targets = {"target_modules": ["q_proj", "v_proj"], "task_type": "CAUSAL_LM"}
    wrapped = peft.get_peft_model(
        auto.from_pretrained(tmp_path / "plain"), peft.LoraConfig(r=4, **targets)
    )
    for name, weight in wrapped.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.3)
    wrapped.save_pretrained(tmp_path / "lora")
    model: Any = load(f"hf:{folder}+peft:{tmp_path / 'lora'}", CPU)
    assert "beside" in model.identity.details["adapter"]
    base = auto.from_pretrained(folder, dtype=torch.float32, device_map={"": "cpu"})
    plain = peft.PeftModel.from_pretrained(base, str(tmp_path / "lora")).eval()
    naive = dict(reference.score_causal(plain, model.encoder, PROMPTS))
    for position, scored in one_by_one(model.score(PROMPTS)):
        for ours, theirs in zip(scored.logps, naive[position].logps, strict=True):
            assert ours == pytest.approx(theirs, abs=1e-3)


@pytest.mark.parametrize(
    ("config", "said", "packages"),
    [
        (
            {"quant_method": "gptq", "bits": 4, "group_size": 128},
            "gptq, 4 bits",
            "gptqmodel optimum",
        ),
        ({"quant_method": "awq", "bits": 4}, "awq, 4 bits", "gptqmodel"),
        ({"load_in_8bit": True}, "bitsandbytes, 8 bits", "bitsandbytes"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 8}}},
            },
            "compressed-tensors, 8 bits",
            "compressed-tensors",
        ),
        ({"quant_method": "torchao", "quant_type": "int4_weight_only"}, "torchao", "torchao"),
    ],
)
def test_what_opens_the_weights_is_named_where_it_is_missing(
    tmp_path: Path,
    config: dict[str, Any],
    said: str,
    packages: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = ("accelerate",)
    monkeypatch.setattr(
        weight_files, "find_spec", lambda name: find_spec(name) if name in ours else None
    )
    folder = tiny.llama(tmp_path / "llama")
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "quantization_config": config}))
    with pytest.raises(MissingExtra) as caught:
        load(f"hf:{folder}", CPU)
    assert f"quantised weights ({said})" in str(caught.value)
    assert str(caught.value).endswith(f"run: pip install {packages}")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, ""),
        ({"quantization_config": None}, ""),
        ({"quantization_config": {"quant_method": "fp8"}}, "fp8, 8 bits"),
        ({"quantization_config": {"quant_method": "strange"}}, "strange"),
        ({"quantization_config": {}}, "unknown method"),
    ],
)
def test_the_method_is_read_off_the_config(config: dict[str, Any], said: str) -> None:
    assert weight_files.quantisation(config) == said
