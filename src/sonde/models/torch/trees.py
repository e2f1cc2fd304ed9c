"""Score a tree of texts in one pass, behind a stem whose keys and values are computed once.

Knows tries and stems of token ids; nothing of prompts or text. `reference.py` is the naive twin.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache

from sonde.engine.trie import Trie

KeysAndValues = list[tuple[Any, Any]]


class StemCache:
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


@torch.inference_mode()
def score_trie(model: Any, trie: Trie, stem: KeysAndValues) -> list[list[float]]:
    """Log-probabilities of every read token of every sequence; the trie goes on from the stem."""
    length = stem[0][0].shape[-2] if stem else 0
    nodes = sorted({node for sequence in trie.reads for node, _ in sequence})
    cache = DynamicCache()
    for layer, (keys, values) in enumerate(stem):
        cache.update(keys, values, layer)
    output = model(
        input_ids=torch.tensor([trie.ids], device=model.device),
        position_ids=torch.tensor([trie.depths], device=model.device) + length,
        attention_mask=tree_mask(trie, length, model.dtype, model.device),
        logits_to_keep=torch.tensor(nodes, device=model.device),
        past_key_values=cache if stem else None,
        use_cache=bool(stem),
    )
    read = [step for sequence in trie.reads for step in sequence]
    values = iter(token_logps(output.logits[0], nodes, read))
    return [[next(values) for _ in sequence] for sequence in trie.reads]


def token_logps(logits: Any, nodes: list[int], read: list[tuple[int, int]]) -> list[float]:
    """The log-probability of each read token, from the logits at the distinct nodes."""
    row = {node: i for i, node in enumerate(nodes)}
    rows = torch.tensor([row[node] for node, _ in read], device=logits.device)
    tokens = torch.tensor([token for _, token in read], device=logits.device)
    # in blocks, because a float32 copy of all logits can be the largest thing in memory
    norms = torch.cat([torch.logsumexp(block.float(), -1) for block in logits.split(256)])
    return (logits[rows, tokens].float() - norms[rows]).tolist()  # type: ignore[no-any-return]


def tree_mask(trie: Trie, stem: int, dtype: torch.dtype, device: Any) -> Any:
    """Additive attention mask: each node sees the stem, its ancestors and itself, nothing else."""
    count = len(trie.ids)
    seen = np.zeros((count, stem + count), dtype=bool)
    seen[:, :stem] = True
    for node, parent in enumerate(trie.parents):
        if parent >= 0:
            seen[node] = seen[parent]  # parents come before their children
        seen[node, stem + node] = True
    mask = torch.zeros(count, stem + count, dtype=dtype, device=device)
    mask.masked_fill_(~torch.from_numpy(seen).to(device), torch.finfo(dtype).min)
    return mask[None, None]
