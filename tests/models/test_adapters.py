"""LoRA adapters: their numbers are peft's, the manifest names them, what does not fit is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from sonde.core.columns import one_by_one
from sonde.core.errors import MissingExtra, ModelError, UsageError
from sonde.core.prompts import Generate
from sonde.doctor.diagnose import weights
from sonde.models import options as model_options
from sonde.models.load import check, load, scheme_of
from sonde.models.options import LoadOptions
from tests import tiny
from tests.models.gguf_file import write_gguf

peft: Any = pytest.importorskip("peft", reason="needs the extra sonde[large]")

OPTIONS = tuple(f" {city}" for city in tiny.CITIES)
CAPITAL = tiny.score("The capital of France is", OPTIONS)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SONDE_CACHE", str(tmp_path / "cache"))


def adapter(base: Path, folder: Path, *, std: float = 0.2, **changes: Any) -> Path:
    """An adapter for a base, as if it had been trained."""
    auto: Any = transformers.AutoModelForCausalLM
    targets = {"target_modules": ["q_proj", "v_proj"], "task_type": "CAUSAL_LM"}
    wrapped = peft.get_peft_model(
        auto.from_pretrained(base), peft.LoraConfig(r=4, **{**targets, **changes})
    )
    torch.manual_seed(1)
    for name, weight in wrapped.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=std) if std else torch.nn.init.zeros_(weight)
    wrapped.save_pretrained(folder)
    return folder


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tiny.llama(tmp_path / "base")


@pytest.fixture
def lora(base: Path, tmp_path: Path) -> Path:
    return adapter(base, tmp_path / "lora")


def by_peft(base: Path, lora: Path, dtype: Any) -> Any:
    """The model as peft itself opens it."""
    auto: Any = transformers.AutoModelForCausalLM
    return peft.PeftModel.from_pretrained(auto.from_pretrained(base, dtype=dtype), str(lora)).eval()


def option_logps(model: Any, answers: Any) -> list[tuple[float, ...]]:
    """Each option's log-probabilities from a plain pass of its own."""
    (head, spans) = (answers.branches(CAPITAL).head, answers.branches(CAPITAL).spans)
    found = []
    for span in spans:
        ids = (*head, *span.ids)
        with torch.inference_mode():
            table = torch.log_softmax(model(torch.tensor([ids])).logits[0].float(), -1)
        places = range(len(head) + span.start, len(head) + span.stop)
        found.append(tuple(float(table[i - 1, ids[i]]) for i in places))
    return found


def gap(one: Any, other: Any) -> float:
    """The largest difference between two answers' log-probabilities."""
    pairs = zip(one, other, strict=True)
    return max(float(abs(a - b)) for row, again in pairs for a, b in zip(row, again, strict=True))


@pytest.mark.parametrize(("dtype", "within"), [("float32", 1e-4), ("bfloat16", 0.15)])
def test_options_are_scored_as_peft_scores_them(
    base: Path, lora: Path, dtype: str, within: float
) -> None:
    model: Any = load(f"hf:{base}+peft:{lora}", LoadOptions(device="cpu", dtype=dtype))
    assert model.tree
    [(_, scored)] = one_by_one(model.score([CAPITAL]))
    assert (
        gap(scored.logps, option_logps(by_peft(base, lora, getattr(torch, dtype)), model)) < within
    )
    plain: Any = load(f"hf:{base}", LoadOptions(device="cpu", dtype=dtype))
    [(_, without)] = one_by_one(plain.score([CAPITAL]))
    assert gap(scored.logps, without.logps) > 3 * within


def test_a_text_is_written_as_peft_writes_it(base: Path, lora: Path) -> None:
    model: Any = load(f"hf:{base}+peft:{lora}", LoadOptions(device="cpu"))
    prompt = replace(CAPITAL, want=Generate(most=6))
    [(_, written)] = model.generate([prompt])
    ids = model.encoder.open(prompt.prefix)
    greedy = by_peft(base, lora, torch.float32).generate(
        input_ids=torch.tensor([ids]), max_new_tokens=6, do_sample=False, pad_token_id=0
    )
    text = model.loaded.tokenizer.decode(greedy[0][len(ids) :], skip_special_tokens=False)
    assert text.startswith(written.text)


def test_the_manifest_names_adapter_and_base_by_their_hashes(base: Path, lora: Path) -> None:
    plain = load(f"hf:{base}", LoadOptions(device="cpu")).identity
    name = f"hf:{base}+peft:{lora}"
    merged, beside = (
        load(name, LoadOptions(device="cpu", dtype=dtype)).identity
        for dtype in ("float32", "bfloat16")
    )
    assert merged.name == name
    assert merged.weights == beside.weights != plain.weights
    assert merged.details["adapter"].startswith("LORA of rank 4 from lora (")
    assert merged.details["adapter"].endswith(f", merged into {plain.weights}")
    assert beside.details["adapter"].endswith(f", beside {plain.weights}")
    assert [finding.check for finding in weights(merged)] == ["adapter"]


def test_other_weights_of_an_adapter_are_another_model(base: Path, tmp_path: Path) -> None:
    folders = [adapter(base, tmp_path / f"std {std}", std=std) for std in (0.2, 0.3)]
    found = {load(f"hf:{base}+peft:{each}", LoadOptions(device="cpu")) for each in folders}
    assert len({model.identity.weights for model in found}) == 2


def test_adapters_are_merged_in_turn(base: Path, lora: Path, tmp_path: Path) -> None:
    other = adapter(base, tmp_path / "other", std=0.3)
    both: Any = load(f"hf:{base}+peft:{lora}+peft:{other}", LoadOptions(device="cpu"))
    one = by_peft(base, lora, torch.float32).merge_and_unload()
    two = peft.PeftModel.from_pretrained(one, str(other)).eval()
    [(_, scored)] = one_by_one(both.score([CAPITAL]))
    assert gap(scored.logps, option_logps(two, both)) < 1e-4
    with pytest.raises(ModelError, match=r"merged in turn.*bfloat16.*--dtype float32"):
        load(both.identity.name, LoadOptions(device="cpu", dtype="bfloat16"))


def test_a_gguf_file_takes_an_adapter(base: Path, lora: Path, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "base.gguf", base, adds_bos=True)
    found: Any = load(f"gguf:{path}+peft:{lora}", LoadOptions(device="cpu"))
    expected: Any = load(f"hf:{base}+peft:{lora}", LoadOptions(device="cpu"))
    [(_, ours)], [(_, theirs)] = (one_by_one(m.score([CAPITAL])) for m in (found, expected))
    assert gap(ours.logps, theirs.logps) < 1e-4
    assert "merged into gguf:" in found.identity.details["adapter"]


def test_a_short_name_takes_an_adapter_too(lora: Path) -> None:
    assert scheme_of(f"smollm2+peft:{lora}") == ("smollm2", f"+peft:{lora}")
    check(f"smollm2+peft:{lora}")
    with pytest.raises(UsageError, match="smollm2 is one model"):
        check(f"smollm2:x+peft:{lora}")


def test_the_doctor_warns_of_an_adapter_that_changes_nothing(base: Path, tmp_path: Path) -> None:
    silent = adapter(base, tmp_path / "silent", std=0)
    model = load(f"hf:{base}+peft:{silent}", LoadOptions(device="cpu"))
    [finding] = weights(model.identity)
    assert finding.verdict == "warning"
    assert "changes nothing" in finding.found


def test_weights_with_an_adapter_are_drawn_anew_only_where_it_is_merged(
    base: Path, lora: Path
) -> None:
    name = f"random:hf:{base}+peft:{lora}"
    assert load(name, LoadOptions(device="cpu")).identity.weights.startswith("random:")
    with pytest.raises(ModelError, match=r"beside its weights.*--dtype float32"):
        load(name, LoadOptions(device="cpu", dtype="bfloat16"))


Spoil = Callable[[Path, Path], str]


def nowhere(base: Path, lora: Path) -> str:
    return f"hf:{base}+peft:{lora}/nowhere"


def no_config(base: Path, lora: Path) -> str:
    (lora / "adapter_config.json").unlink()
    return f"hf:{base}+peft:{lora}"


def pickled(base: Path, lora: Path) -> str:
    (lora / "adapter_model.safetensors").rename(lora / "adapter_model.bin")
    return f"hf:{base}+peft:{lora}"


def broken(base: Path, lora: Path) -> str:
    (lora / "adapter_model.safetensors").write_bytes(b"nothing")
    return f"hf:{base}+peft:{lora}"


def linked(base: Path, lora: Path) -> str:
    elsewhere = base.parent / "elsewhere.safetensors"
    (lora / "adapter_model.safetensors").rename(elsewhere)
    (lora / "adapter_model.safetensors").symlink_to(elsewhere)
    return f"hf:{base}+peft:{lora}"


def another_base(base: Path, lora: Path) -> str:
    return f"hf:{tiny.llama(base.parent / 'other', seed=3)}+peft:{lora}"


def another_shape(base: Path, lora: Path) -> str:
    renamed(lora, base_model_name_or_path="somebody/wide")
    return f"hf:{tiny.llama(base.parent / 'wide', hidden_size=64)}+peft:{lora}"


def another_architecture(base: Path, lora: Path) -> str:
    renamed(lora, base_model_name_or_path="somebody/else")
    return f"hf:{tiny.gpt2(base.parent / 'gpt2')}+peft:{lora}"


def a_part_missing(base: Path, lora: Path) -> str:
    renamed(lora, target_modules=["q_proj", "v_proj", "k_proj"])
    return f"hf:{base}+peft:{lora}"


def a_part_too_many(base: Path, lora: Path) -> str:
    renamed(lora, target_modules=["q_proj"])
    return f"hf:{base}+peft:{lora}"


def a_prompt(base: Path, lora: Path) -> str:
    (lora / "adapter_config.json").write_text(
        json.dumps({"peft_type": "PROMPT_TUNING", "task_type": "CAUSAL_LM"})
    )
    return f"hf:{base}+peft:{lora}"


def renamed(lora: Path, **changes: Any) -> None:
    path = lora / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (nowhere, "is not a folder; give one with adapter_config.json"),
        (no_config, "adapter_config.json cannot be read.*that peft has saved"),
        (pickled, "holds no adapter_model.safetensors; pickled adapters are never read"),
        (broken, "does not read as safetensors"),
        (linked, "adapter_model.safetensors lies outside .*; copy the file into the folder"),
        (another_base, "was made for .*base and not for .*other"),
        (another_shape, "does not fit .*size mismatch.*made for somebody/wide"),
        (another_architecture, "does not fit .*Target modules.*made for somebody/else"),
        (a_part_missing, "lacks .*k_proj.*which its adapter_config.json says"),
        (a_part_too_many, "changes .*v_proj.*which the model does not have"),
        (a_prompt, r"holds a prompt \(PROMPT_TUNING\).*adapters such as LoRA"),
    ],
)
def test_what_does_not_fit_is_told_in_a_sentence(
    base: Path, lora: Path, spoil: Spoil, said: str
) -> None:
    with pytest.raises(ModelError, match=said) as caught:
        load(spoil(base, lora), LoadOptions(device="cpu"))
    assert "\n" not in str(caught.value)


def test_a_missing_peft_is_named_with_what_to_install(
    base: Path, lora: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_options, "find_spec", lambda name: None if name == "peft" else name)
    with pytest.raises(MissingExtra, match=r"needs peft; run: pip install 'sonde\[large\]'"):
        load(f"hf:{base}+peft:{lora}")


def test_an_adapter_on_weights_that_are_on_disk_is_refused(base: Path, lora: Path) -> None:
    options = LoadOptions(device_map="auto", max_memory="cpu=50KB")
    with pytest.raises(ModelError, match="needs all weights in memory"):
        load(f"hf:{base}+peft:{lora}", options)
