"""Open a model folder as the kind of model it is, or give a loaded model other, random weights.

Random weights are as the architecture begins with; all else stays: tokenizer, config, device,
dtype. The draws depend on the seed and the architecture, never on the device or on the weights that
were there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from sonde.core.errors import ModelError
from sonde.core.fingerprints import fingerprint
from sonde.models.options import LoadOptions
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import (
    Loaded,
    explained,
    first_line,
    kind_of,
    load_folder,
    read_config,
)
from sonde.models.torch.masked.model import MaskedModel
from sonde.models.torch.seq2seq.model import Seq2SeqModel

Ours = CausalModel | MaskedModel | Seq2SeqModel


def open_model(name: str, folder: Path, options: LoadOptions) -> Ours:
    """A causal, a masked or an encoder-decoder model, as config.json says."""
    kind = kind_of(read_config(folder))
    loaded = load_folder(name, folder, options)
    with explained(folder):
        if kind == "causal":
            return CausalModel(loaded)
        return MaskedModel(loaded) if kind == "masked" else Seq2SeqModel(loaded)


def randomised(model: Any, name: str, seed: int, *, embeddings: bool) -> Ours:
    """The model with all its weights drawn anew, or only its token embeddings."""
    if not isinstance(model, Ours):
        raise ModelError(
            f"{name}: {model.identity.name} has no weights that could be drawn anew; name a "
            "transformers or GGUF model, as in random:hf:FOLDER"
        )
    change = with_random_embeddings if embeddings else with_random_weights
    loaded = replace(change(model.loaded, seed), name=name)
    if isinstance(model, CausalModel):
        return CausalModel(loaded, start=model.start)
    return MaskedModel(loaded) if isinstance(model, MaskedModel) else Seq2SeqModel(loaded)


def with_random_weights(loaded: Loaded, seed: int) -> Loaded:
    """Every parameter drawn anew, in place, as the architecture itself initialises it."""
    fresh = _fresh(loaded, seed)
    values = dict(fresh.named_parameters())
    with torch.no_grad():
        for name, parameter in loaded.model.named_parameters():
            parameter.copy_(values[name])
    return replace(loaded, weights=f"random:{_digest(sorted(values.items()))}")


def with_random_embeddings(loaded: Loaded, seed: int) -> Loaded:
    """Token embeddings drawn anew, in place, and with them output embeddings that are tied.

    Positions and types keep their embeddings, and so do output embeddings of their own.
    """
    drawn = _fresh(loaded, seed).get_input_embeddings().weight
    with torch.no_grad():
        loaded.model.get_input_embeddings().weight.copy_(drawn)
    digest = _digest([("embeddings", drawn)])
    return replace(loaded, weights=f"random:{fingerprint([loaded.weights, digest])}")


def _fresh(loaded: Loaded, seed: int) -> Any:
    """The same architecture as nobody trained it, in float32 on the CPU."""
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return type(loaded.model)(loaded.model.config).float()
    except Exception as error:  # whatever an architecture's own code raises
        raise ModelError(
            f"{loaded.name} cannot be built anew from its config: {first_line(error)}"
        ) from error


def _digest(tensors: Iterable[tuple[str, torch.Tensor]]) -> str:
    """Sixteen hex digits that name some tensors, bit for bit."""
    digest = hashlib.sha256()
    for name, tensor in tensors:
        digest.update(f"{name}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]
