"""The growing tips of a tree of texts, with the keys and values of what they see.

Knows tensors and leaves; nothing of how tokens are chosen or where a text ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache

from sonde.engine.token_tree import TokenTree
from sonde.models.torch.causal.token_tree import (
    KeysAndValues,
    additive_mask,
    cache_behind,
    tree_logits,
)
from sonde.models.torch.decode.steps import Leaf
from sonde.models.torch.loading.device import onto, padded, token_logps

WASTE = 0.25  # share of positions that no leaf sees any more, above which they are dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeState:
    """Leaves and the positions behind the prefix that each of them sees.

    `seen` is [leaves, positions]; a leaf sees its ancestors, so their number is its depth. `depths`
    are those of the positions. The cache holds keys and values of the prefix (`prefix` tokens),
    which all leaves see, and of the positions.
    """

    leaves: tuple[Leaf, ...]
    seen: np.ndarray
    depths: np.ndarray
    cache: Any
    prefix: int


@torch.inference_mode()
def prefill_tree(
    model: Any, leaves: Sequence[Leaf], tree: TokenTree, prefix: KeysAndValues
) -> tuple[Any, DecodeState]:
    """Feed the prompts of some leaves as one tree behind a prefix; logits at their last tokens.

    The tree holds the prompts and then their options. The leaves that come out hold what came of
    the options; they see nothing of them.
    """
    cache, length = cache_behind(prefix)
    logits = tree_logits(model, tree, cache, length)
    count, rows = len(leaves), tree.read[1]
    if len(rows) > count:
        logps = token_logps(logits, rows[count:], tree.tokens[count:]).cpu().numpy()
        leaves = _with_options(leaves, logps, tree.sizes[count:])
    return logits[onto(logits.device, rows[:count])], DecodeState(
        leaves=tuple(leaves),
        seen=tree.seen[tree.nodes[:count]],
        depths=tree.depths,
        cache=cache,
        prefix=length,
    )


def _with_options(leaves: Sequence[Leaf], logps: np.ndarray, sizes: Sequence[int]) -> list[Leaf]:
    """The leaves with what came of their options, whose tokens are so many each."""
    rest = iter(sizes)
    ends = np.cumsum([sum(islice(rest, len(leaf.root.options))) for leaf in leaves])[:-1]
    parts = zip(leaves, np.split(logps, ends), strict=True)
    return [replace(leaf, option_logps=own) for leaf, own in parts]


def onward(state: DecodeState, children: Sequence[tuple[int, Leaf]]) -> DecodeState:
    """The children, given with the rows of their parents, as a state that is yet to be fed."""
    return replace(
        state,
        leaves=tuple(leaf for _, leaf in children),
        seen=state.seen[[row for row, _ in children]],
    )


@torch.inference_mode()
def feed(model: Any, state: DecodeState) -> tuple[Any, DecodeState]:
    """Feed the last token of every leaf in one pass; logits after each."""
    own = state.seen.sum(1)
    seen = np.concatenate([state.seen, np.eye(len(own), dtype=bool)], axis=1)
    depths = np.concatenate([state.depths, own])
    output = model(
        input_ids=onto(model.device, [[leaf.path[-1] for leaf in state.leaves]]),
        position_ids=onto(model.device, own[None]) + state.prefix,
        attention_mask=additive_mask(model, seen, own.tolist(), state.prefix, depths.tolist()),
        past_key_values=state.cache,
        use_cache=True,
    )
    return output.logits[0], replace(state, seen=seen, depths=depths)


def compact(state: DecodeState) -> DecodeState:
    """Without the positions that no leaf sees, if they are many."""
    needed = int(state.seen.any(0).sum())
    return _pick(state, slice(None)) if needed < (1 - WASTE) * len(state.depths) else state


def crowded(state: DecodeState, budget: int) -> bool:
    """Whether leaves should go on apart: they need more room than the budget and one path."""
    width, length = state.seen.shape
    longest = int(state.seen.sum(1).max())
    return bool(width > 1 and length + width > budget + longest)


def halves(state: DecodeState) -> list[DecodeState]:
    """Two states, each with what its own leaves see."""
    half = len(state.leaves) // 2
    return [_pick(state, slice(half, None)), _pick(state, slice(half))]


def _pick(state: DecodeState, rows: slice) -> DecodeState:
    """Some leaves with only the positions that they see; not those a failed pass has left."""
    needed = np.flatnonzero(state.seen[rows].any(0))
    layers: list[Any] = state.cache.layers
    places = np.concatenate([np.arange(state.prefix), state.prefix + needed])
    index = onto(layers[0].keys.device, places)
    cache = DynamicCache()
    for i, layer in enumerate(layers):
        cache.update(layer.keys.index_select(-2, index), layer.values.index_select(-2, index), i)
    return DecodeState(
        leaves=state.leaves[rows],
        seen=state.seen[rows][:, needed],
        depths=state.depths[needed],
        cache=cache,
        prefix=state.prefix,
    )


@torch.inference_mode()
def read_rows(model: Any, leaves: Sequence[Leaf]) -> Any:
    """Logits after each whole text, every text a padded row of its own; no cache, no tree."""
    rows = [(*leaf.root.ids, *leaf.path) for leaf in leaves]
    logits = model(**padded(model.device, rows), use_cache=False).logits
    last = torch.tensor([len(row) - 1 for row in rows], device=logits.device)
    return logits[torch.arange(len(rows), device=last.device), last]
