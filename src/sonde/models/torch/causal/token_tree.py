"""Feed a tree of tokens in one pass, behind a prefix whose keys and values are computed once.

Layers that see everything and layers with a sliding window get the masks they need. Knows trees and
configs; nothing of prompts or text. `reference` is the naive twin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache

from sonde.engine.prefixes import PrefixCache
from sonde.engine.token_tree import TokenTree
from sonde.models.torch.loading.device import fetched, onto, steady_attention

KeysAndValues = list[tuple[Any, Any]]
"""Those of every layer."""

# what configs call the reach of attention that is neither full nor a sliding window
OTHER_WINDOWS = ("window_size", "attention_window_size", "attention_chunk_size")

Reach = Mapping[str, int | None]
"""For each kind of layer a model has, how many tokens back it sees with its own; None: all."""

Depths = Sequence[int] | np.ndarray


def kept_prefixes(model: Any, budget: int) -> PrefixCache[KeysAndValues]:
    """Keys and values of prefixes, so many bytes of them."""

    def compute(ids: tuple[int, ...]) -> tuple[KeysAndValues, int]:
        layers = prefill(model, ids)
        return layers, sum(t.numel() * t.element_size() for pair in layers for t in pair)

    return PrefixCache(compute, budget)


@torch.inference_mode()
def prefill(model: Any, ids: tuple[int, ...]) -> KeysAndValues:
    """Keys and values of every layer for a sequence of tokens; none for no tokens."""
    if not ids:
        return []
    cache = DynamicCache()
    tokens = torch.tensor([ids], device=model.device)
    model(input_ids=tokens, past_key_values=cache, use_cache=True, logits_to_keep=1)
    layers: list[Any] = cache.layers
    return [(layer.keys, layer.values) for layer in layers]


def by_sequence(tree: TokenTree, logps: Callable[[], np.ndarray]) -> list[list[float]]:
    """The log-probabilities of all reads as Python numbers, one list per sequence."""
    values = iter(logps().tolist())
    return [[next(values) for _ in range(size)] for size in tree.sizes]


def cache_behind(prefix: KeysAndValues) -> tuple[Any, int]:
    """A new cache that begins with a prefix, and the prefix's length."""
    cache = DynamicCache()
    for layer, (keys, values) in enumerate(prefix):
        cache.update(keys, values, layer)
    return cache, prefix[0][0].shape[-2] if prefix else 0


@torch.inference_mode()
def tree_logps(model: Any, tree: TokenTree, prefix: KeysAndValues) -> Callable[[], np.ndarray]:
    """Begin to compute the log-probability of every read, in order; calling waits for them."""
    cache, length = cache_behind(prefix)
    nodes, rows = tree.read
    with steady_attention(model):
        output = model(
            input_ids=onto(model.device, tree.ids[None]),
            position_ids=onto(model.device, tree.depths[None] + length),
            attention_mask=additive_mask(model, tree.seen, tree.depths, length, tree.depths),
            logits_to_keep=onto(model.device, nodes),
            past_key_values=cache if prefix else None,
            use_cache=bool(prefix),
        )
    return fetched(token_logps(output.logits[0], rows, tree.tokens))


def token_logps(logits: Any, rows: np.ndarray, tokens: np.ndarray) -> Any:
    """The log-probability of each token, from the logits at the row before it."""
    at = onto(logits.device, rows)
    # in blocks, because a float32 copy of all logits can be the largest thing in memory
    norms = torch.cat([torch.logsumexp(block.float(), -1) for block in logits.split(256)])
    return logits[at, onto(logits.device, tokens)].float() - norms[at]


def reach_of(model: Any) -> Reach | None:
    """How far the layers of a model look back; None where that is not known to be a tree's."""
    config = model.config.get_text_config()
    if any(getattr(config, name, None) for name in OTHER_WINDOWS):
        return None
    window = getattr(config, "sliding_window", None)
    if getattr(config, "use_sliding_window", None) is False:
        window = None
    kinds = getattr(config, "layer_types", None)
    if kinds is None:
        return {"full_attention": window}
    known: Reach = {"full_attention": None, "sliding_attention": window}
    if not set(kinds) <= set(known):
        return None
    return {kind: known[kind] for kind in sorted(set(kinds))}


def additive_mask(model: Any, seen: np.ndarray, own: Depths, prefix: int, before: Depths) -> Any:
    """What to add to attention so that each new node sees the prefix and what it may of the rest.

    `seen[i, j]`: whether new node i is or descends from node j; `own` and `before` are their
    depths below the prefix of `prefix` tokens, which all of them see. One mask, or one for each
    kind of layer where the kinds differ.
    """
    reach = reach_of(model) or {"full_attention": None}
    deepest = prefix + int(max(own)) + 1
    windows = {kind: w if w is not None and w < deepest else None for kind, w in reach.items()}
    made = {w: _mask(model, seen, own, prefix, before, w) for w in set(windows.values())}
    if len(made) == 1:
        return next(iter(made.values()))
    return {kind: made[window] for kind, window in windows.items()}


def _mask(
    model: Any,
    seen: np.ndarray,
    own: Depths,
    prefix: int,
    before: Depths,
    window: int | None,
) -> Any:
    mask = torch.zeros(len(own), prefix + len(before), dtype=model.dtype, device=model.device)
    least = torch.finfo(model.dtype).min
    if window is not None:
        depths = np.asarray(own)[:, None]
        seen = seen & (depths - np.asarray(before)[None] < window)
        far = prefix + depths - np.arange(prefix)[None] >= window
        mask[:, :prefix].masked_fill_(onto(model.device, far), least)
    mask[:, prefix:].masked_fill_(onto(model.device, ~seen), least)
    return mask[None, None]
