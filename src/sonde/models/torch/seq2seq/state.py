"""Texts that an encoder-decoder model has read and is writing on: one row each, with its cache.

Knows tensors; nothing of prompts or of how tokens are chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What was read ([rows, tokens, width] and its mask) and the keys and values so far."""

    states: Any
    mask: Any
    cache: Any

    def pick(self, rows: Sequence[int]) -> Rows:
        """Some rows, each as often as named, with a cache of their own."""
        index = torch.tensor(list(rows), device=self.states.device)
        own, cross = DynamicCache(), DynamicCache()
        kept = (self.cache.self_attention_cache, self.cache.cross_attention_cache)
        for made, old in zip((own, cross), kept, strict=True):
            for number, layer in enumerate(old.layers):
                keys, values = (t.index_select(0, index) for t in (layer.keys, layer.values))
                made.update(keys, values, number)
        return Rows(
            states=self.states.index_select(0, index),
            mask=self.mask.index_select(0, index),
            cache=EncoderDecoderCache(own, cross),
        )

    def going_on(self, rows: Sequence[int]) -> Rows:
        """The same where these are not needed any more: nothing is copied while all go on."""
        return self if list(rows) == list(range(len(self.states))) else self.pick(rows)


class Reader:
    """Reads texts, each once until it is told to forget; keeps as many as `room` bytes hold.

    The first that fit are kept: they are asked for again in the same order, so what came last
    would always be gone by then.
    """

    def __init__(self, model: Any, room: int) -> None:
        self.model = model
        self.room = room
        self.held = 0
        self.kept: dict[Ids, Any] = {}

    def reset_cache(self) -> None:
        """Drop all that was read."""
        self.kept.clear()
        self.held = 0

    def open(self, sources: Sequence[Ids], opening: Sequence[int]) -> tuple[Any, Rows]:
        """Read some texts and feed what opens every answer; logits after it, [rows, vocabulary]."""
        try:
            found = self._states(sources)
            states = pad_sequence(found, batch_first=True)
            mask = pad_sequence([torch.ones(len(each)) for each in found], batch_first=True).long()
            cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
            rows = Rows(states=states, mask=mask.to(states.device), cache=cache)
            return feed(self.model, rows, [list(opening)] * len(sources), last=True)[:, 0], rows
        except Exception:
            self.reset_cache()  # if memory ran out, what is kept is the first to go
            raise

    def _states(self, sources: Sequence[Ids]) -> list[Any]:
        missing = [ids for ids in dict.fromkeys(sources) if ids not in self.kept]
        new = dict(zip(missing, read(self.model, missing), strict=True))
        found = [self.kept[ids] if ids in self.kept else new[ids] for ids in sources]
        for ids, states in new.items():
            size = states.numel() * states.element_size()
            if self.held + size <= self.room:
                self.kept[ids] = states.clone()  # or the whole batch would stay in memory
                self.held += size
        return found


@torch.inference_mode()
def read(model: Any, sources: Sequence[Ids]) -> list[Any]:
    """What the encoder makes of some texts, [tokens, width] each; padding is not looked at."""
    if not sources:
        return []
    ids = pad_sequence([torch.tensor(source) for source in sources], batch_first=True)
    mask = pad_sequence([torch.ones(len(source)) for source in sources], batch_first=True).long()
    given = {"input_ids": ids.to(model.device), "attention_mask": mask.to(model.device)}
    states = model.get_encoder()(**given).last_hidden_state
    return [states[i, : len(source)] for i, source in enumerate(sources)]


@torch.inference_mode()
def feed(model: Any, rows: Rows, tokens: Sequence[Sequence[int]], *, last: bool = False) -> Any:
    """Feed tokens to every row, as many to each; logits after each token, [rows, tokens, words].

    `last`: only after the last one. The cache of the rows grows with it.
    """
    output = model(
        encoder_outputs=BaseModelOutput(last_hidden_state=rows.states),
        attention_mask=rows.mask,
        decoder_input_ids=torch.tensor(list(tokens), device=model.device),
        past_key_values=rows.cache,
        use_cache=True,
    )
    return output.logits[:, -1:] if last else output.logits
