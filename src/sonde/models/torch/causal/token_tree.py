"""Feed a tree of tokens in one pass, behind a prefix whose keys and values are computed once.

Layers that see everything and layers with a sliding window get the masks they need. What does not
take a tree, as a trial shows, is fed row by row, and what is too long piece by piece. Knows trees
and configs; nothing of prompts or text. `reference` is the naive twin.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache

from sonde.engine.encode import Span, shortened
from sonde.engine.prefixes import PrefixCache
from sonde.engine.schedule import Pieces
from sonde.engine.token_tree import Reading, TokenTree, merge_prompts
from sonde.models.torch.loading.device import (
    fetched,
    kept,
    onto,
    padded,
    steady_attention,
    token_logps,
)
from sonde.models.torch.loading.trials import NOT_FINITE, largest, tried, unlike

log = logging.getLogger("sonde")

KeysAndValues = list[tuple[Any, Any]]
"""Those of every layer."""

# what configs call the reach of attention that is neither full nor a sliding window
OTHER_WINDOWS = ("window_size", "attention_window_size", "attention_chunk_size")

Reach = Mapping[str, int | None]
"""For each kind of layer a model has, how many tokens back it sees with its own; None: all."""

Depths = Sequence[int] | np.ndarray

OTHER_REACH = "some of its layers look back in a way that no tree of tokens is known to fit"
FLAT = "so texts go one by one: a prompt with 100 options is read 100 times and not once"


def kept_prefixes(model: Any, budget: int) -> PrefixCache[KeysAndValues]:
    """Keys and values of prefixes, so many bytes of them."""

    def sized(layers: KeysAndValues) -> tuple[KeysAndValues, int]:
        return layers, sum(t.numel() * t.element_size() for pair in layers for t in pair)

    return PrefixCache(
        lambda ids: sized(prefill(model, ids)),
        budget,
        lambda several: [sized(layers) for layers in prefill_rows(model, several)],
    )


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


@torch.inference_mode()
def prefill_rows(model: Any, prefixes: Sequence[tuple[int, ...]]) -> list[KeysAndValues]:
    """The same for several sequences, each a row; what fills a row up stands behind all it has."""
    cache = DynamicCache()
    ids = np.zeros((len(prefixes), max(map(len, prefixes))), dtype=np.int64)
    for row, own in zip(ids, prefixes, strict=True):
        row[: len(own)] = own
    with steady_attention(model):
        fed = onto(model.device, ids)
        model(input_ids=fed, past_key_values=cache, use_cache=True, logits_to_keep=1)
    layers: list[Any] = cache.layers
    lengths = [len(own) for own in prefixes]
    pairs = [(_apart(each.keys, lengths), _apart(each.values, lengths)) for each in layers]
    return [[(keys[row], values[row]) for keys, values in pairs] for row in range(len(lengths))]


def _apart(tensor: Any, lengths: Sequence[int]) -> list[Any]:
    """Keys or values of each row by itself, so that one can go while others stay."""
    return [row[:, :, :own].clone() for row, own in zip(tensor.split(1), lengths, strict=True)]


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
    logits = tree_logits(model, tree, cache if prefix else None, length)
    return fetched(token_logps(logits, tree.read[1], tree.tokens))


def tree_logits(model: Any, tree: TokenTree, cache: Any, length: int) -> Any:
    """Logits at the distinct nodes that are read, behind a cache of so many tokens."""
    with steady_attention(model):
        output = model(
            input_ids=onto(model.device, tree.ids[None]),
            position_ids=onto(model.device, tree.depths[None] + length),
            attention_mask=additive_mask(model, tree.seen, tree.depths, length, tree.depths),
            logits_to_keep=kept(model, tree.read[0]),
            past_key_values=cache,
            use_cache=cache is not None,
        )
    return output.logits[0]


@torch.inference_mode()
def chain_logps(model: Any, pieces: Pieces, prefix: KeysAndValues) -> Callable[[], np.ndarray]:
    """The same for one text behind a prefix, a piece in each pass."""
    ids, reads = map(np.array, pieces.text)
    cache, length = cache_behind(prefix)
    caches = bool(prefix) or len(pieces.bounds) > 1
    logps = []
    for start, stop in pieces.bounds:
        here = reads[(reads > start) & (reads <= stop)]
        logits = _piece(
            model, ids, start, stop, length, cache if caches else None, here - 1 - start
        )
        if len(here):
            logps.append(token_logps(logits, np.arange(len(here)), ids[here]))
    return fetched(torch.cat(logps))


def _piece(
    model: Any, ids: np.ndarray, start: int, stop: int, prefix: int, cache: Any, places: np.ndarray
) -> Any:
    """Feed a text from start up to stop, behind what is in the cache; logits at some places."""
    own, before = np.arange(start, stop), np.arange(stop)
    with steady_attention(model):
        output = model(
            input_ids=onto(model.device, ids[None, start:stop]),
            position_ids=onto(model.device, own[None] + prefix),
            attention_mask=additive_mask(model, own[:, None] >= before[None], own, prefix, before),
            logits_to_keep=kept(model, places) if len(places) else 1,
            past_key_values=cache,
            use_cache=cache is not None,
        )
    return output.logits[0]


@torch.inference_mode()
def row_logps(model: Any, texts: Sequence[Reading]) -> Callable[[], np.ndarray]:
    """The same for some texts, each a padded row of its own."""
    read = [[place - 1 for place in reads] for _, reads in texts]
    places = np.unique(np.concatenate(read))
    narrow = "logits_to_keep" in signature(model.forward).parameters
    named = {"logits_to_keep": kept(model, places)} if narrow else {}
    fed = padded(model.device, [tokens[: reads[-1]] for tokens, reads in texts])
    logits = model(**fed, **named, use_cache=False).logits
    logps = []
    for row, (tokens, reads), before in zip(logits, texts, read, strict=True):
        at = np.searchsorted(places, before) if narrow else np.array(before)
        logps.append(token_logps(row, at, np.array([tokens[place] for place in reads])))
    return fetched(torch.cat(logps))


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


def why_flat(model: Any) -> str:
    """Why a model is not fed trees, and what that costs; empty if it is. Tried, not assumed."""
    if reach_of(model) is None:  # a short trial would not show where such a layer stops looking
        return f"{OTHER_REACH}, {FLAT}"
    try:
        with short_window(model):
            why = tried(model, partial(tree_trial, model))
    except Exception as error:  # who asks it something will be told
        log.debug("the trial failed", exc_info=True)
        why = f"it could not be tried ({type(error).__name__})"
    return why and f"{why}, {FLAT}"


@contextmanager
def short_window(model: Any) -> Iterator[None]:
    """Narrow a sliding window for the length of a trial, so that a short text shows it."""
    config = model.config.get_text_config()
    window = getattr(config, "sliding_window", None)
    if window is None:
        yield
        return
    config.sliding_window = 3
    try:
        yield
    finally:
        config.sliding_window = window


@torch.inference_mode()
def tree_trial(model: Any) -> str:
    """Why a small tree, whole or behind a prefix, is not scored as its texts are; empty if so."""
    head, spans = trial_texts(model.config.get_text_config().vocab_size)
    texts = [(span.ids, tuple(range(span.start, span.end))) for span in spans]
    apart = np.concatenate([row_logps(model, [text])() for text in texts])
    logits = model(torch.tensor([spans[0].ids], device=model.device), use_cache=False).logits[0]
    ends = tuple(shortened(span, len(head)) for span in spans)
    try:
        whole, rest = merge_prompts([(head, ends)]), merge_prompts([(head[2:], ends)])
        together = tree_logps(model, whole, [])()
        behind = tree_logps(model, rest, prefill(model, head[:2]))()
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # each architecture refuses in its own way
        log.debug("tree attention failed", exc_info=True)
        return f"it does not take a tree of tokens ({type(error).__name__})"
    plain, again = torch.from_numpy(apart), torch.from_numpy(row_logps(model, texts)())
    other = torch.from_numpy(np.concatenate([together, behind]))
    differ = unlike(model, plain.repeat(2), other, noise=largest(plain - again), logits=logits)
    if differ in ("", NOT_FINITE):
        return differ
    return f"it does not heed the mask or the positions of a tree of tokens ({differ})"


def trial_texts(size: int) -> tuple[tuple[int, ...], list[Span]]:
    """Two texts of a vocabulary of that size that begin alike, and what they begin with.

    The first is the longer, so that positions counted on through it are far off in the second.
    """
    ids = tuple(token % size for token in (11, 7, 23, 5, 17, 29, 13, 3, 19))
    other = (*ids[:3], ids[4], ids[5], ids[0])
    return ids[:3], [
        Span(ids=each, start=3, stop=len(each), end=len(each)) for each in (ids, other)
    ]
