"""The growing tips of a tree of texts, with the keys and values of what they see.

Knows tensors and leaves; nothing of how tokens are chosen or where a text ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache

from sonde.engine.encode import Span, lengthened
from sonde.engine.token_tree import ancestors
from sonde.engine.trie import merge
from sonde.models.torch.causal.token_tree import KeysAndValues, token_logps
from sonde.models.torch.causal.tree_masks import additive_mask
from sonde.models.torch.decode.choose import Leaf
from sonde.models.torch.loading.device import onto

WASTE = 0.25  # share of positions that no leaf sees any more, above which they are dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeState:
    """Leaves and the positions behind the stem that each of them sees.

    `seen` is [leaves, positions]; a leaf sees its ancestors, so their number is its depth. `depths`
    are those of the positions. The cache holds keys and values of the stem (`stem` tokens), which
    all leaves see, and of the positions.
    """

    leaves: tuple[Leaf, ...]
    seen: np.ndarray
    depths: np.ndarray
    cache: Any
    stem: int


@torch.inference_mode()
def prefill_tree(
    model: Any, leaves: Sequence[Leaf], stem: KeysAndValues
) -> tuple[Any, DecodeState]:
    """Feed the prompts of some leaves as one tree behind the stem; logits at their last tokens.

    Options of the leaves are fed with them. The leaves of the frontier hold what came of it; it
    sees nothing of the options.
    """
    length = stem[0][0].shape[-2] if stem else 0
    rest = [leaf.ids[length:] for leaf in leaves]
    options = [lengthened(o, r) for leaf, r in zip(leaves, rest, strict=True) for o in leaf.options]
    trie = merge([*map(_tip, rest), *options])
    tips = [reads[0][0] for reads in trie.reads[: len(leaves)]]
    reads = trie.reads[len(leaves) :]
    kept = list(dict.fromkeys([*tips, *(node for steps in reads for node, _ in steps)]))
    cache = DynamicCache()
    for layer, (keys, values) in enumerate(stem):
        cache.update(keys, values, layer)
    seen, depths = ancestors(trie.parents), trie.depths
    output = model(
        input_ids=onto(model.device, [trie.ids]),
        position_ids=onto(model.device, [depths]) + length,
        attention_mask=additive_mask(model, seen, depths, length, depths),
        logits_to_keep=onto(model.device, kept),
        past_key_values=cache,
        use_cache=True,
    )
    logits = output.logits[0]
    told = _with_options(leaves, _option_logps(logits, kept, reads))
    return logits[: len(leaves)], DecodeState(
        leaves=told, seen=seen[tips], depths=np.array(depths), cache=cache, stem=length
    )


def _tip(ids: tuple[int, ...]) -> Span:
    """A text that is read at its end: a token that is not fed stands for whatever will follow."""
    end = len(ids) + 1
    return Span(ids=(*ids, 0), start=end - 1, stop=end, end=end)


def _option_logps(
    logits: Any, kept: Sequence[int], reads: Sequence[Sequence[tuple[int, int]]]
) -> Iterator[tuple[float, ...]]:
    """The log-probabilities of every option's tokens; `kept` are the nodes of the logits."""
    row = {node: i for i, node in enumerate(kept)}
    steps = [(row[node], token) for steps in reads for node, token in steps]
    if steps:
        rows, tokens = np.array(steps).T
        values = iter(token_logps(logits, rows, tokens).tolist())
        yield from (tuple(next(values) for _ in steps) for steps in reads)


def _with_options(leaves: Sequence[Leaf], rows: Iterator[tuple[float, ...]]) -> tuple[Leaf, ...]:
    """The leaves with as many rows each as they have options."""
    return tuple(
        replace(leaf, option_logps=tuple(islice(rows, len(leaf.options)))) for leaf in leaves
    )


def onward(front: DecodeState, children: Sequence[tuple[int, Leaf]]) -> DecodeState:
    """The children, given with the rows of their parents, as a frontier that is yet to be fed."""
    return replace(
        front,
        leaves=tuple(leaf for _, leaf in children),
        seen=front.seen[[row for row, _ in children]],
    )


@torch.inference_mode()
def feed(model: Any, front: DecodeState) -> tuple[Any, DecodeState]:
    """Feed the last token of every leaf in one pass; logits after each."""
    own = front.seen.sum(1)
    seen = np.concatenate([front.seen, np.eye(len(own), dtype=bool)], axis=1)
    depths = np.concatenate([front.depths, own])
    output = model(
        input_ids=onto(model.device, [[leaf.path[-1] for leaf in front.leaves]]),
        position_ids=onto(model.device, own[None]) + front.stem,
        attention_mask=additive_mask(model, seen, own.tolist(), front.stem, depths.tolist()),
        past_key_values=front.cache,
        use_cache=True,
    )
    return output.logits[0], replace(front, seen=seen, depths=depths)


def compact(front: DecodeState) -> DecodeState:
    """Without the positions that no leaf sees, if they are many."""
    needed = int(front.seen.any(0).sum())
    return _pick(front, slice(None)) if needed < (1 - WASTE) * len(front.depths) else front


def crowded(front: DecodeState, budget: int) -> bool:
    """Whether leaves should go on apart: they need more room than the budget and one path."""
    width, length = front.seen.shape
    longest = int(front.seen.sum(1).max())
    return bool(width > 1 and length + width > budget + longest)


def halves(front: DecodeState) -> list[DecodeState]:
    """Two frontiers, each with what its own leaves see."""
    half = len(front.leaves) // 2
    return [_pick(front, slice(half, None)), _pick(front, slice(half))]


def _pick(front: DecodeState, rows: slice) -> DecodeState:
    """Some leaves with only the positions that they see; not those a failed pass has left."""
    needed = np.flatnonzero(front.seen[rows].any(0))
    layers: list[Any] = front.cache.layers
    places = np.concatenate([np.arange(front.stem), front.stem + needed])
    index = onto(layers[0].keys.device, places)
    cache = DynamicCache()
    for i, layer in enumerate(layers):
        cache.update(layer.keys.index_select(-2, index), layer.values.index_select(-2, index), i)
    return DecodeState(
        leaves=front.leaves[rows],
        seen=front.seen[rows][:, needed],
        depths=front.depths[needed],
        cache=cache,
        stem=front.stem,
    )


@torch.inference_mode()
def read_rows(model: Any, leaves: Sequence[Leaf]) -> Any:
    """Logits after each whole text, every text a padded row of its own; no cache, no tree."""
    rows = [(*leaf.ids, *leaf.path) for leaf in leaves]
    ids = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
    mask = torch.zeros_like(ids)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.tensor(row)
        mask[i, : len(row)] = 1
    output = model(
        input_ids=ids.to(model.device), attention_mask=mask.to(model.device), use_cache=False
    )
    last = torch.tensor([len(row) - 1 for row in rows], device=output.logits.device)
    return output.logits[torch.arange(len(rows), device=last.device), last]
