"""Score a tree of texts in one pass, behind a stem whose keys and values are computed once.

Knows tries and stems of token ids; nothing of prompts or text. `reference.py` is the naive twin.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache

from sonde.engine.token_tree import TokenTree
from sonde.models.torch.causal.tree_masks import additive_mask
from sonde.models.torch.loading.device import fetched, onto, steady_attention

KeysAndValues = list[tuple[Any, Any]]


class PrefixCache:
    """Keys and values of stems; the longest unused are dropped to keep within a budget of bytes."""

    def __init__(self, model: Any, budget: int) -> None:
        self.model = model
        self.budget = budget
        self.held = 0
        self.kept: OrderedDict[tuple[int, ...], KeysAndValues] = OrderedDict()

    def get(self, ids: tuple[int, ...]) -> KeysAndValues:
        """The keys and values of a stem, computed unless they are kept; empty for no stem."""
        if not ids:
            return []
        if ids not in self.kept:
            self.kept[ids] = prefill(self.model, ids)
            self.held += size(self.kept[ids])
            while self.held > self.budget and len(self.kept) > 1:
                self.held -= size(self.kept.popitem(last=False)[1])
        self.kept.move_to_end(ids)
        return self.kept[ids]

    def clear(self) -> None:
        """Forget every stem, as when memory has run out."""
        self.kept.clear()
        self.held = 0


def size(stem: KeysAndValues) -> int:
    """Bytes of a stem's keys and values."""
    return sum(t.numel() * t.element_size() for pair in stem for t in pair)


@torch.inference_mode()
def prefill(model: Any, ids: tuple[int, ...]) -> KeysAndValues:
    """Keys and values of every layer for a sequence of tokens."""
    cache = DynamicCache()
    tokens = torch.tensor([ids], device=model.device)
    model(input_ids=tokens, past_key_values=cache, use_cache=True, logits_to_keep=1)
    layers: list[Any] = cache.layers
    return [(layer.keys, layer.values) for layer in layers]


def by_sequence(trees: TokenTree, logps: Callable[[], np.ndarray]) -> list[list[float]]:
    """The log-probabilities of all reads as Python numbers, one list per sequence."""
    values = iter(logps().tolist())
    return [[next(values) for _ in range(size)] for size in trees.sizes]


@torch.inference_mode()
def forest_logps(model: Any, trees: TokenTree, stem: KeysAndValues) -> Callable[[], np.ndarray]:
    """Begin to compute the log-probability of every read, in order; calling waits for them."""
    length = stem[0][0].shape[-2] if stem else 0
    nodes, rows = np.unique(trees.nodes, return_inverse=True)
    cache = DynamicCache()
    for layer, (keys, values) in enumerate(stem):
        cache.update(keys, values, layer)
    with steady_attention(model):
        output = model(
            input_ids=onto(model.device, trees.ids[None]),
            position_ids=onto(model.device, trees.depths[None] + length),
            attention_mask=additive_mask(model, trees.seen, trees.depths, length, trees.depths),
            logits_to_keep=onto(model.device, nodes),
            past_key_values=cache if stem else None,
            use_cache=bool(stem),
        )
    return fetched(token_logps(output.logits[0], rows, trees.tokens))


def token_logps(logits: Any, rows: np.ndarray, tokens: np.ndarray) -> Any:
    """The log-probability of each token, from the logits at the row before it."""
    at = onto(logits.device, rows)
    # in blocks, because a float32 copy of all logits can be the largest thing in memory
    norms = torch.cat([torch.logsumexp(block.float(), -1) for block in logits.split(256)])
    return logits[at, onto(logits.device, tokens)].float() - norms[at]
