"""Give a model the vectors of a soft prompt as further tokens, which it reads and never answers.

The tokenizer gets a token for each marker, and the input embedding looks these up among the
vectors. Weights and head stay as they are. Knows nothing of how vectors are found.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer

from sonde.core.errors import AbilityError, ModelError
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.open import rebuilt
from sonde.models.torch.loading.spread import computes_on
from sonde.models.torch.loading.weights import Loaded
from sonde.models.torch.masked.model import MaskedModel


class SoftEmbedding:
    """A model's input embedding in which some ids are looked up among vectors.

    It takes the place of the module's `forward`, so that the module, its weights and whatever is
    tied to them stay what they are. Vectors are kept in float32 and rounded as they are read.
    """

    def __init__(self, module: Any, ids: range, vectors: Any) -> None:
        self.module = module
        self.ids = ids
        self.plain = module.forward
        self.vectors = vectors.to(computes_on(module), torch.float32)
        self.placed: tuple[Any, Any] | None = None
        module.forward = self.forward

    def forward(self, ids: Any) -> Any:
        """The vectors of some tokens, [..., tokens, width]."""
        soft = (ids >= self.ids.start) & (ids < self.ids.stop)
        rows = self.plain(ids.masked_fill(soft, 0))
        if self.placed is not None:
            places, vectors = self.placed
            return put(rows, places, vectors.to(rows.dtype))
        if not len(self.ids):
            return rows
        found = self.vectors[(ids - self.ids.start).clamp(0, len(self.ids) - 1)]
        return torch.where(soft[..., None], found.to(rows.dtype), rows)

    @contextmanager
    def placing(self, places: Any, vectors: Any) -> Iterator[None]:
        """Put vectors [texts, vectors, width] at places [texts, vectors] of the texts read here.

        A place behind the last token is nowhere.
        """
        self.placed = (places, vectors)
        try:
            yield
        finally:
            self.placed = None

    def remove(self) -> None:
        """Give the module its own `forward` back."""
        self.module.forward = self.plain


def put(rows: Any, places: Any, vectors: Any) -> Any:
    """Rows [texts, tokens, width] with vectors in some places; the gradient is quick and exact."""
    nowhere = rows.new_zeros(rows.shape[0], 1, rows.shape[2])
    index = places[..., None].expand(-1, -1, rows.shape[2])
    return torch.cat([rows, nowhere], 1).scatter(1, index, vectors)[:, :-1]


def soft_model(
    name: str, base: Any, vectors: Mapping[str, np.ndarray], weights: str
) -> CausalModel | MaskedModel:
    """A model with vectors, named by their markers, as further tokens."""
    refuse_unsuited(base)
    markers = sorted(vectors, key=lambda marker: (marker.rpartition(":")[0], len(marker), marker))
    table = torch.stack([torch.from_numpy(vectors[marker]) for marker in markers])
    loaded, _ = softened(base.loaded, markers, table, name=name, weights=weights)
    model: CausalModel | MaskedModel = rebuilt(base, loaded)
    return model


def refuse_unsuited(base: Any) -> None:
    """Refuse what has no vectors to read, or no single text to read them in."""
    if not isinstance(base, CausalModel | MaskedModel):
        raise AbilityError(
            f"{base.identity.name} cannot have a soft prompt: that takes a masked or causal model "
            "with weights, such as hf:FOLDER"
        )


def softened(
    loaded: Loaded, markers: Sequence[str], vectors: Any, *, name: str, weights: str
) -> tuple[Loaded, SoftEmbedding]:
    """The model with vectors [markers, width] as further tokens, and the embedding that has them.

    The model's embedding is changed in place; the tokenizer is a copy.
    """
    module = loaded.model.get_input_embeddings()
    width = int(module.weight.shape[1])
    if tuple(vectors.shape) != (len(markers), width):
        raise ModelError(
            f"{name}: its vectors have the shape {tuple(vectors.shape)}, and {loaded.name} takes "
            f"{len(markers)} of {width} numbers; they were made for another model"
        )
    tokenizer = with_markers(loaded, markers)
    first = loaded.backend.get_vocab_size(with_added_tokens=True)
    ids = range(first, first + len(markers))
    changed = replace(
        loaded,
        name=name,
        tokenizer=tokenizer,
        weights=weights,
        vocabulary=max(loaded.rows, ids.stop),
        vectors=ids,
    )
    return changed, SoftEmbedding(module, ids, vectors)


def with_markers(loaded: Loaded, markers: Sequence[str]) -> Any:
    """A copy of the tokenizer with a token for each marker, refused if texts around one change."""
    size = loaded.backend.get_vocab_size(with_added_tokens=True)
    if size > loaded.rows:
        raise ModelError(
            f"{loaded.name}: its tokenizer has {size} tokens and the model {loaded.rows}, so "
            "further ones cannot be told from those it lacks; use the model's own tokenizer"
        )
    backend = Tokenizer.from_str(seamless(loaded.backend.to_str()))
    # they take no space from their neighbours, and are found where special tokens are not
    backend.add_tokens([AddedToken(m, normalized=False, special=False) for m in markers])
    found = [backend.token_to_id(marker) for marker in markers]
    if found != list(range(size, size + len(markers))):
        raise ModelError(f"{loaded.name}: its tokenizer already has some of the markers as tokens")
    if markers and not stands_apart(backend, markers[0]):
        raise ModelError(
            f"{loaded.name}: its tokenizer changes the words around a further token, so a soft "
            "prompt would not be read as it is written"
        )
    tokenizer = copy.copy(loaded.tokenizer)
    tokenizer._tokenizer = backend
    return tokenizer


def seamless(tokenizer: str) -> str:
    """A tokenizer's JSON in which no mark of a space is put behind an added token.

    Llama's older form writes one before every part of a text; the newer one before its beginning
    alone. Texts without added tokens are the same in both.
    """
    values = json.loads(tokenizer)
    normalizer = values.get("normalizer") or {}
    parts = normalizer.get("normalizers", [normalizer])
    prepends = [part for part in parts if part.get("type") == "Prepend"]
    replaces = [part for part in parts if part.get("type") == "Replace"]
    if len(parts) != 2 or len(prepends) != 1 or len(replaces) != 1 or values["pre_tokenizer"]:
        return tokenizer
    values["normalizer"] = None
    values["pre_tokenizer"] = {
        "type": "Metaspace",
        "replacement": prepends[0]["prepend"],
        "prepend_scheme": "first",
        "split": False,
    }
    return json.dumps(values)


def stands_apart(tokenizer: Tokenizer, marker: str) -> bool:
    """Whether words before and behind a marker are the tokens they are without it."""
    one = tokenizer.encode("a", add_special_tokens=False).ids
    whole = tokenizer.encode("a a", add_special_tokens=False).ids
    found = tokenizer.encode(f"a{marker} a", add_special_tokens=False).ids
    return bool(found == [*one, tokenizer.token_to_id(marker), *whole[len(one) :]])
