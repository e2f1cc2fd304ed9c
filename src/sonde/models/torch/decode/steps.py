"""One step of writing: the growing tips of a tree of texts are fed, and get children or end.

Tips, called leaves, are fed with the keys and values of what they see; which tokens follow them is
the likeliest, or is drawn: where a number falls among tokens laid end to end or, so that a little
rounding changes few draws, by way of a tree over them. Knows tensors, tokens and their text;
nothing of prompts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache

from sonde.engine.sampling import cumulative, split, tally, uniforms
from sonde.engine.schedule import Root
from sonde.engine.token_tree import TokenTree
from sonde.models.torch.causal.token_tree import (
    KeysAndValues,
    additive_mask,
    cache_behind,
    tree_logits,
)
from sonde.models.torch.loading.device import onto, padded, token_logps
from sonde.models.torch.loading.weights import Loaded, token_id

WASTE = 0.25  # share of positions that no leaf sees any more, above which they are dropped
BLOCK = 32  # rows of the vocabulary that are held in double precision at once

Shares = Mapping[int, int]
"""How many texts each prompt, by position, has at a place."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leaf:
    """A text that may go on: where it began and the tail of that, and the path of tokens since.

    `logps` are those of the path, where they are kept. `option_logps` are those of the options
    that are scored where it began, laid end to end.
    """

    root: Root
    tail: tuple[int, ...]
    shares: Shares
    path: tuple[int, ...] = ()
    logps: tuple[float, ...] = ()
    option_logps: np.ndarray | None = None


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
    cache = DynamicCache()
    index: Any = None
    for i, layer in enumerate(layers):
        if index is None or layer.keys.device != index.device:
            index = onto(layer.keys.device, places)
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


class NoDistribution(Exception):
    """Logits from which nothing can be drawn: NaN or infinity; `row` says which."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


def likeliest(logits: Any, leaves: Sequence[Leaf]) -> list[list[Leaf]]:
    """Each leaf with its likeliest next token; `logits` is [leaves, vocabulary]."""
    tokens, logps = [], []
    for block in logits.split(BLOCK):
        best = block.float().max(-1)
        tokens += best.indices.tolist()
        logps += (best.values - torch.logsumexp(block.float(), -1)).tolist()
    return [
        [replace(leaf, path=(*leaf.path, token), logps=(*leaf.logps, logp))]
        for leaf, token, logp in zip(leaves, tokens, logps, strict=True)
    ]


def split_leaves(
    names: Sequence[bytes], logits: Any, leaves: Sequence[Leaf], *, steady: bool
) -> list[list[Leaf]]:
    """Each leaf with the tokens drawn there; every prompt draws for itself, under its name."""
    drawn = [
        [uniforms(names[owner], leaf.path, count) for owner, count in leaf.shares.items()]
        for leaf in leaves
    ]
    counts = zip(leaves, split_rows(logits, drawn, steady=steady), strict=True)
    return [list(_children(leaf, splits)) for leaf, splits in counts]


def _children(leaf: Leaf, splits: Sequence[Mapping[int, int]]) -> Iterator[Leaf]:
    for token in sorted({token for counts in splits for token in counts}):
        shares = {
            owner: counts[token]
            for owner, counts in zip(leaf.shares, splits, strict=True)
            if token in counts
        }
        yield replace(leaf, path=(*leaf.path, token), shares=shares)


def split_rows(
    logits: Any, drawn: Sequence[Sequence[NDArray[np.float64]]], *, steady: bool = False
) -> list[list[dict[int, int]]]:
    """For every row of logits, how each set of uniforms splits over the tokens.

    `steady`: so that rounding changes few. NoDistribution where a row has no finite probabilities.
    """
    plain = _on_host if logits.device.type == "cpu" else on_device
    split_block = partial(on_device, steady=True) if steady else plain
    found = []
    for start in range(0, len(drawn), BLOCK):
        weights = torch.softmax(logits[start : start + BLOCK].float(), -1)
        sound = torch.isfinite(weights.sum(-1)).tolist()
        if not all(sound):
            raise NoDistribution(start + sound.index(False))
        found += split_block(weights, drawn[start : start + BLOCK])
    return found


def _on_host(
    weights: Any, drawn: Sequence[Sequence[NDArray[np.float64]]]
) -> list[list[dict[int, int]]]:
    rows = map(cumulative, weights.numpy())
    return [[split(row, one) for one in sets] for row, sets in zip(rows, drawn, strict=True)]


def on_device(
    weights: Any, drawn: Sequence[Sequence[NDArray[np.float64]]], *, steady: bool = False
) -> list[list[dict[int, int]]]:
    """The same as `split` of `cumulative`, without moving the vocabulary off the device.

    `steady`: another way to the same distribution (see there).
    """
    running = weights.double().cumsum(-1)
    widest = max(sum(map(len, sets)) for sets in drawn)
    table = np.zeros((len(drawn), widest))
    for row, sets in zip(table, drawn, strict=True):
        joined = np.concatenate(sets)
        row[: len(joined)] = joined
    taken = steady_tokens if steady else plain_tokens
    tokens = taken(running, torch.from_numpy(table).to(running.device)).cpu().numpy()
    borders = [np.cumsum([len(one) for one in sets])[:-1] for sets in drawn]
    return [
        [tally(one) for one in np.split(row[: sum(map(len, sets))], places)]
        for row, sets, places in zip(tokens, drawn, borders, strict=True)
    ]


def plain_tokens(running: Any, draws: Any) -> Any:
    """Where each draw falls, tokens laid end to end."""
    total = running[:, -1:].contiguous()
    last = torch.searchsorted(running, total)
    return torch.searchsorted(running, draws * total, right=True).minimum(last)


def end_tokens(loaded: Loaded) -> frozenset[int]:
    """The tokens with which a model ends a text: as it generates, else by config or tokenizer."""
    model = loaded.model
    for source in (getattr(model, "generation_config", None), model.config, loaded.tokenizer):
        found = getattr(source, "eos_token_id", None)
        if found is not None:
            listed = found if isinstance(found, list | tuple) else [found]
            return frozenset(token_id(loaded, "eos_token_id", id) for id in listed)
    return frozenset()


PARTS = 4
GOLDEN = 0x9E3779B97F4A7C15 - 2**64
FIRST = 0xBF58476D1CE4E5B9 - 2**64
SECOND = 0x94D049BB133111EB - 2**64


def steady_tokens(running: Any, draws: Any) -> Any:
    """The token of every draw, [rows, n]; one without weight is never taken.

    Where a draw falls among tokens laid end to end (`plain_tokens`) is exact but not steady: a
    shift of the running sum by a millionth moves every draw among tokens rarer than that. Here it
    goes down a tree over the vocabulary, the tokens of a node parted in four and a fresh number
    drawn from the first for each parting: it changes its way only where shares of a parting change.
    A distribution that is off by some share moves two to three times that share of the draws, where
    laying end to end moves fifty times as many (decisions/041).

    `running` are sums of weights [rows, tokens], `draws` [rows, n] lie in [0, 1); both are double.
    """
    size = running.shape[-1]
    levels = next(n for n in range(64) if PARTS**n >= size)
    at = torch.zeros_like(draws, dtype=torch.long)
    edges = torch.arange(PARTS + 1, device=draws.device)
    for level, fresh in enumerate(numbers(draws, levels), 1):
        width = PARTS ** (levels - level)
        places = (at[..., None] + width * edges).clamp(max=size)
        sums = running.gather(-1, (places - 1).clamp(min=0).flatten(1)).view_as(places)
        sums = torch.where(places > 0, sums, 0.0)
        inside = sums[..., 1:] - sums[..., :1]
        sought = fresh * inside[..., -1]
        # a part without weight is passed over, at the end too, lest rounding lead into it
        passed = (inside[..., :-1] <= sought[..., None]) & (inside[..., :-1] < inside[..., -1:])
        at = at + width * passed.sum(-1)
    return at


def numbers(draws: Any, count: int) -> list[Any]:
    """So many uniform numbers for each draw, which depend on it alone (splitmix64)."""
    state = _mixed((draws * 2**53).long())
    found = []
    for _ in range(count):
        state = state + GOLDEN
        found.append(_shifted(_mixed(state), 11).double() * 2.0**-53)
    return found


def _mixed(words: Any) -> Any:
    """The words, bits stirred; products wrap around."""
    words = (words ^ _shifted(words, 30)) * FIRST
    words = (words ^ _shifted(words, 27)) * SECOND
    return words ^ _shifted(words, 31)


def _shifted(words: Any, bits: int) -> Any:
    """Words without sign, moved to the right."""
    return (words >> bits) & (2 ** (64 - bits) - 1)
