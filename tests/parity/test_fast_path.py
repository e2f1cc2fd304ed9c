"""A model keeps the fast path by how it is built: not by how large its logits are, or how round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import sonde
from sonde.models.options import LoadOptions
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.causal.token_tree import why_flat
from sonde.models.torch.loading import trials
from sonde.models.torch.loading.trials import in_float32, largest, spread, tried, unlike
from sonde.models.torch.loading.weights import Loaded, load_folder
from sonde.models.torch.masked.logits import EQUAL, Ways, differs
from sonde.models.torch.masked.model import MaskedModel
from sonde.optimise.losses import narrows
from tests.parity.test_masked import NeighbourHead
from tests.tiny import Load, gemma3, llama

HALVES = [torch.bfloat16, torch.float16]
DTYPES = [torch.float32, *HALVES]

pytestmark = pytest.mark.usefixtures("plain_kernels")


def scaled(loaded: Loaded, by: float, dtype: torch.dtype) -> Loaded:
    """A copy of a model in another precision, with its logits so many times as large.

    As on a GPU, the order in which it sums depends on how many rows are computed at once.
    """
    model = type(loaded.model)(loaded.model.config).to(loaded.device)
    model.load_state_dict(loaded.model.state_dict())
    head = model.get_output_embeddings()
    head.weight = torch.nn.Parameter(head.weight.detach() * by)
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            module.forward = partial(in_parts, module)  # type: ignore[method-assign]
    return replace(loaded, model=model.to(dtype).eval())


def in_parts(layer: torch.nn.Linear, rows: torch.Tensor) -> torch.Tensor:
    count = 1 + rows.numel() // rows.shape[-1] % 4
    pairs = zip(rows.chunk(count, -1), layer.weight.chunk(count, 1), strict=True)
    found = sum(part @ weight.T for part, weight in pairs)
    return found if layer.bias is None else found + layer.bias


def overlooking(loaded: Loaded, *names: str) -> Loaded:
    """The model, deaf to some of what it is given."""
    whole = loaded.model.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        return whole(*args, **{**kwargs, **dict.fromkeys(names)})

    loaded.model.forward = forward
    return loaded


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["llama", "gpt2", "mistral", "gemma3"])
def test_large_logits_do_not_cost_a_causal_model_its_trees(
    tiny: Load, kind: str, dtype: torch.dtype
) -> None:
    model = CausalModel(scaled(tiny(kind), 40, dtype))
    assert model.tree and model.identity.details["scoring"] in ("tree", "rows")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("deaf", ["position_ids", "attention_mask", "past_key_values"])
def test_small_logits_do_not_hide_that_a_tree_is_overlooked(
    tiny: Load, deaf: str, dtype: torch.dtype
) -> None:
    model = CausalModel(overlooking(scaled(tiny("llama"), 0.01, dtype), deaf))
    assert not model.tree and model.identity.details["scoring"] == "flat"


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_model_with_distances_of_its_own_is_fed_no_trees(dtype: torch.dtype) -> None:
    sizes: dict[str, Any] = {"d_model": 32, "n_layers": 2, "n_heads": 4, "vocab_size": 99}
    build: Any = transformers.MptForCausalLM
    torch.manual_seed(0)
    model = build(transformers.MptConfig(**sizes, max_seq_len=64))
    assert "does not heed the mask or the positions" in why_flat(model.to(dtype).eval())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_large_logits_do_not_cost_a_masked_model_its_ways(
    tiny: Load, kind: str, dtype: torch.dtype
) -> None:
    model = MaskedModel(scaled(tiny(kind), 40, dtype))
    assert model.ways.narrow and model.ways.pads
    end_to_end = Ways(packs=True, first=model.ways.first)
    assert not tried(model.model, lambda: differs(model.model, end_to_end, EQUAL))


@pytest.mark.parametrize("dtype", DTYPES)
def test_small_logits_do_not_hide_what_a_masked_model_overlooks(
    tiny: Load, dtype: torch.dtype
) -> None:
    model = MaskedModel(overlooking(scaled(tiny("bert"), 0.01, dtype), "attention_mask"))
    assert not model.ways.pads
    assert tried(model.model, lambda: differs(model.model, Ways(packs=True), EQUAL))
    loaded = scaled(tiny("bert"), 0.01, dtype)
    loaded.model.cls = NeighbourHead(loaded.model.cls)
    assert not MaskedModel(loaded).ways.narrow


def test_a_model_is_tried_in_float32_on_a_small_part_of_it_and_left_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "TOKENS", 64)
    loaded = load_folder(
        "hf:deep", llama(tmp_path, num_hidden_layers=9), LoadOptions(), weights="d"
    )
    model = loaded.model.to(torch.bfloat16)
    before = kept(model)
    with in_float32(model):
        assert len(model.model.layers) == 2 and model.dtype == torch.float32
        assert model.get_input_embeddings().weight.shape[0] == 64
        assert {value.dtype for value in model.state_dict().values()} == {torch.float32}
    assert kept(model) == before
    with pytest.raises(KeyboardInterrupt), in_float32(model):
        raise KeyboardInterrupt
    assert kept(model) == before


def kept(model: Any) -> dict[str, tuple[int, torch.dtype]]:
    """Where each weight lies, and in which precision."""
    return {name: (value.data_ptr(), value.dtype) for name, value in model.state_dict().items()}


def test_every_kind_of_layer_is_tried(tmp_path: Path) -> None:
    kinds = ["sliding_attention"] * 3 + ["full_attention"] + ["sliding_attention"] * 4
    folder = gemma3(tmp_path, num_hidden_layers=8, layer_types=kinds)
    model = load_folder("hf:mixed", folder, LoadOptions(), weights="m").model
    with in_float32(model):
        assert len(model.model.layers) == 4
    model.model.layers[6].mlp = torch.nn.Identity()
    with in_float32(model):
        assert len(model.model.layers) == 7


def quantised(model: Any) -> None:
    model.hf_quantizer = object()


def picky(model: Any) -> None:
    """Code that takes no other precision than its own."""
    embed, own = model.get_input_embeddings(), model.dtype
    embed.register_forward_hook(lambda *_: _refuse(embed.weight.dtype != own))


def _refuse(refused: bool) -> None:
    if refused:
        raise TypeError("not in this precision")


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("change", [quantised, picky])
def test_what_cannot_be_cast_is_tried_as_it_is(
    tiny: Load, change: Callable[[Any], None], dtype: torch.dtype
) -> None:
    for scale in (40, 0.01):
        sound, deaf = (scaled(tiny("llama"), scale, dtype) for _ in range(2))
        change(sound.model)
        change(deaf.model)
        assert CausalModel(sound).tree
        assert not CausalModel(overlooking(deaf, "attention_mask")).tree


def test_a_real_model_is_far_from_the_line_on_both_sides(
    smollm2: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares: list[float] = []

    def measured(model: Any, plain: Any, other: Any, *, noise: float, logits: Any) -> str:
        shares.append(largest(plain - other) / spread(logits))
        return unlike(model, plain, other, noise=noise, logits=logits)

    monkeypatch.setattr("sonde.models.torch.causal.token_tree.unlike", measured)
    loaded = sonde.model(smollm2, device="cpu", dtype="bfloat16").loaded  # type: ignore[attr-defined]
    whole = loaded.model.forward
    for deaf in ("position_ids", "attention_mask"):
        loaded.model.forward = whole
        assert why_flat(overlooking(loaded, deaf).model)
    right, unplaced, unmasked = shares
    assert right < 1e-5 and unplaced > 0.1 and unmasked > 0.1


def test_a_part_that_is_too_large_is_not_copied(
    tiny: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "LARGEST", 1000)
    loaded = scaled(tiny("llama"), 1, torch.bfloat16)
    with pytest.raises(ValueError, match="bytes"), in_float32(loaded.model):
        pass
    assert CausalModel(loaded).tree


@pytest.mark.parametrize("dtype", DTYPES)
def test_training_applies_the_head_alone_whatever_the_logits(
    tiny: Load, dtype: torch.dtype
) -> None:
    large, small = (scaled(tiny("bert"), scale, dtype) for scale in (40, 0.01))
    small.model.cls = NeighbourHead(small.model.cls)
    narrow = [narrows(MaskedModel(loaded)) for loaded in (large, small)]
    assert narrow == [True, False]
