"""Open a model: a folder as the kind that it is, a GGUF file, or a loaded one with random weights.

A folder may also be opened as an encoder of sentences: the mean of its last hidden states.

Random weights are as the architecture begins with; all else stays: tokenizer, config, device,
dtype. The draws depend on the seed and the architecture, never on the device or on the weights that
were there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from sonde.core.errors import ModelError
from sonde.core.fingerprints import fingerprint
from sonde.models.options import LoadOptions, read_config
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.adapters import adapted
from sonde.models.torch.loading.gguf_copies import opened_as_said, plain_copy
from sonde.models.torch.loading.weight_files import remembered_hash, weight_files
from sonde.models.torch.loading.weights import (
    Loaded,
    explained,
    first_line,
    kind_of,
    load_folder,
    pretrained,
    refuse_fixed,
)
from sonde.models.torch.masked.model import MaskedModel
from sonde.models.torch.seq2seq import Seq2SeqModel

if TYPE_CHECKING:
    from sonde.models.load import Encoder

Ours = CausalModel | MaskedModel | Seq2SeqModel
One = TypeVar("One", bound=Ours)

BATCH = 64  # sentences


def open_model(
    name: str, folder: Path, options: LoadOptions, adapters: Sequence[Path] = (), base: str = ""
) -> Ours:
    """A causal, a masked or an encoder-decoder model, as config.json says.

    `adapters` are put on it; `base` is how the model itself was asked for.
    """
    kind = kind_of(read_config(folder))
    put = partial(adapted, folders=adapters, base=base)
    loaded = load_folder(name, folder, options, change=put)
    with explained(folder):
        if kind == "causal":
            return CausalModel(loaded)
        return MaskedModel(loaded) if kind == "masked" else Seq2SeqModel(loaded)


def open_gguf(
    name: str, path: Path, options: LoadOptions, adapters: Sequence[Path] = ()
) -> CausalModel:
    """Load a GGUF file through its plain copy, making that first where it is missing."""
    folder = plain_copy(path)
    options = opened_as_said(folder, options)
    put = partial(adapted, folders=adapters, base="")
    named = f"gguf:{remembered_hash(path)[:16]}"
    with explained(folder):
        return CausalModel(load_folder(name, folder, options, weights=named, change=put))


def mean_encoder(folder: Path, *, unit: bool = True) -> Encoder:
    """A transformers folder as an encoder of sentences: mean states, or these of length one."""
    with explained(folder):
        weight_files(folder, read_config(folder))
        tokenizer, model, _ = pretrained(transformers.AutoModel, folder, "auto", trust=False)
    model.eval()

    def embed(texts: Sequence[str]) -> NDArray[np.floating]:
        batches = [texts[i : i + BATCH] for i in range(0, len(texts), BATCH)]
        found = []
        with torch.inference_mode():
            for batch in batches:
                inputs = tokenizer(list(batch), padding=True, truncation=True, return_tensors="pt")
                states = model(**inputs).last_hidden_state
                mask = inputs["attention_mask"].unsqueeze(-1).to(states.dtype)
                means = (states * mask).sum(1) / mask.sum(1)
                rows = torch.nn.functional.normalize(means, dim=1) if unit else means
                found.append(rows.float().numpy())
        return np.concatenate(found)

    return embed


def randomised(model: Any, name: str, seed: int, *, embeddings: bool) -> Ours:
    """The model with all its weights drawn anew, or only its token embeddings."""
    if not isinstance(model, Ours):
        raise ModelError(
            f"{name}: {model.identity.name} has no weights that could be drawn anew; name a "
            "transformers or GGUF model, as in random:hf:FOLDER"
        )
    refuse_fixed(model.loaded, name, "drawn anew")
    change = with_random_embeddings if embeddings else with_random_weights
    return rebuilt(model, replace(change(model.loaded, seed), name=name))


def rebuilt(model: One, loaded: Loaded) -> One:
    """A model of the same kind around what was loaded and changed."""
    if isinstance(model, CausalModel):
        return cast(One, CausalModel(loaded, start=model.start))
    return type(model)(loaded)


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
