"""Texts that an encoder-decoder model has read and is writing on: one row each, with its cache.

Knows tensors; nothing of prompts or of how tokens are chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What was read ([rows, tokens, width] and its mask) and the keys and values so far."""

    states: Any
    mask: Any
    cache: Any

    def pick(self, rows: Sequence[int]) -> Rows:
        """Some rows, each as often as named; one row that is repeated is not copied."""
        if self.states.shape[0] == 1:
            return self._with(lambda tensor: tensor.expand(len(rows), *tensor.shape[1:]))
        index = torch.tensor(list(rows), device=self.states.device)
        return self._with(lambda tensor: tensor.index_select(0, index))

    def _with(self, change: Any) -> Rows:
        own, cross = DynamicCache(), DynamicCache()
        kept = (self.cache.self_attention_cache, self.cache.cross_attention_cache)
        for made, old in zip((own, cross), kept, strict=True):
            for number, layer in enumerate(old.layers):
                made.update(change(layer.keys), change(layer.values), number)
        cache = EncoderDecoderCache(own, cross)
        return Rows(states=change(self.states), mask=change(self.mask), cache=cache)


@torch.inference_mode()
def read(model: Any, sources: Sequence[Sequence[int]], opening: Sequence[int]) -> tuple[Any, Rows]:
    """Read some texts and feed what opens every answer; logits after it, [rows, vocabulary]."""
    longest = max(map(len, sources))
    ids = torch.zeros(len(sources), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for i, source in enumerate(sources):
        ids[i, : len(source)] = torch.tensor(list(source))
        mask[i, : len(source)] = 1
    mask = mask.to(model.device)
    output = model.get_encoder()(input_ids=ids.to(model.device), attention_mask=mask)
    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    rows = Rows(states=output.last_hidden_state, mask=mask, cache=cache)
    logits, rows = feed(model, rows, [list(opening)] * len(sources))
    return logits[:, -1], rows


@torch.inference_mode()
def feed(model: Any, rows: Rows, tokens: Sequence[Sequence[int]]) -> tuple[Any, Rows]:
    """Feed tokens to every row, as many to each; logits after each token, [rows, tokens, words].

    The cache of the rows grows with it.
    """
    output = model(
        encoder_outputs=BaseModelOutput(last_hidden_state=rows.states),
        attention_mask=rows.mask,
        decoder_input_ids=torch.tensor(list(tokens), device=model.device),
        past_key_values=rows.cache,
        use_cache=True,
    )
    return output.logits, rows
