"""Feed rows of tokens behind shared prefixes, at once or token by token, and read some places.

What rows have of their own lies in buffers of a fixed size; rows may leave, come several times and
join others. Which models take rows is tried, not assumed; `reference` is the naive twin. Knows
tensors, nothing of prompts or text.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from transformers import Cache

from sonde.engine.tree_rows import TreeRows
from sonde.models.torch.causal.shared_prefix import SHARED_PREFIX, Attending, SharedPrefixes
from sonde.models.torch.causal.token_tree import (
    KeysAndValues,
    prefill,
    reach_of,
    row_logps,
    trial_texts,
)
from sonde.models.torch.loading.device import fetched, onto, token_logps
from sonde.models.torch.loading.trials import largest, tried, unlike

log = logging.getLogger("sonde")


class RowCache(Cache):
    """Keys and values of rows' own tokens in buffers of `room` tokens a row.

    `lengths` says how many tokens each row has; what lies beyond is not seen.
    """

    def __init__(self, rows: int, room: int) -> None:
        super().__init__(layers=[])
        self.room = room
        self.lengths = np.zeros(rows, dtype=np.int64)
        self.kept: dict[int, tuple[Any, Any]] = {}
        self.places: Any = None

    @property
    def filled(self) -> int:
        """The length of the longest row."""
        return int(self.lengths.max(initial=0))

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """What an architecture asks to count positions, which it is given."""
        return 0

    def update(
        self, key_states: Any, value_states: Any, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Any, Any]:
        """Put new keys and values behind those of each row; all that may be seen."""
        count = key_states.shape[-2]
        if layer_idx not in self.kept:
            rows, heads, _, width = key_states.shape
            shape = (rows, heads, self.room)
            self.kept[layer_idx] = (
                key_states.new_zeros(*shape, width),
                value_states.new_zeros(*shape, value_states.shape[-1]),
            )
        for buffer, new in zip(self.kept[layer_idx], (key_states, value_states), strict=True):
            self._put(buffer, new, count)
        stop = self.filled + count
        keys, values = self.kept[layer_idx]
        return keys[:, :, :stop], values[:, :, :stop]

    def _put(self, buffer: Any, new: Any, count: int) -> None:
        if self.lengths.min() == self.lengths.max():
            buffer[:, :, self.filled : self.filled + count] = new
            return
        if self.places is None:
            self.places = onto(new.device, self.lengths[:, None] + np.arange(count)[None])
        each = torch.arange(len(new), device=new.device)[:, None]
        buffer[each, :, self.places.to(new.device)] = new.transpose(1, 2)

    def add(self, counts: np.ndarray | int) -> None:
        """Let rows be so many tokens longer, which have been put."""
        self.lengths = self.lengths + counts
        self.places = None

    def take(self, rows: np.ndarray, room: int | None = None) -> RowCache:
        """A cache of some of the rows, in that order; a row may come several times, or not."""
        made = RowCache(len(rows), self.room if room is None else room)
        made.lengths = self.lengths[rows]
        filled = made.filled
        for layer, pair in self.kept.items():
            index = onto(pair[0].device, rows)
            made.kept[layer] = (
                _moved(pair[0][:, :, :filled].index_select(0, index), made.room),
                _moved(pair[1][:, :, :filled].index_select(0, index), made.room),
            )
        return made

    def split(self, at: int) -> tuple[RowCache, RowCache]:
        """The rows up to one and those from it on; this cache is given up, layer by layer."""
        count = len(self.lengths)
        parts = RowCache(at, self.room), RowCache(count - at, self.room)
        parts[0].lengths, parts[1].lengths = self.lengths[:at], self.lengths[at:]
        for layer in list(self.kept):
            keys, values = self.kept.pop(layer)
            for part, own in zip(parts, (slice(at), slice(at, count)), strict=True):
                part.kept[layer] = keys[own].clone(), values[own].clone()
            del keys, values
        return parts

    def join(self, other: RowCache) -> RowCache:
        """A cache of these rows and then the other's."""
        made = RowCache(len(self.lengths) + len(other.lengths), max(self.room, other.room))
        made.lengths = np.concatenate([self.lengths, other.lengths])
        for layer, pair in self.kept.items():
            parts = zip(pair, other.kept[layer], strict=True)
            made.kept[layer] = tuple(  # type: ignore[assignment]
                torch.cat([_moved(one, made.room), _moved(two, made.room)]) for one, two in parts
            )
        return made


def _moved(tensor: Any, room: int) -> Any:
    """Keys or values with room for so many tokens a row."""
    missing = room - tensor.shape[2]
    if missing <= 0:
        return tensor[:, :, :room]
    return torch.nn.functional.pad(tensor, (0, 0, 0, missing))


@torch.inference_mode()
def row_logits(
    model: Any,
    ids: np.ndarray,
    depths: np.ndarray,
    prefixes: SharedPrefixes,
    *,
    reads: np.ndarray,
    seen: np.ndarray | None = None,
    cache: RowCache | None = None,
) -> Any:
    """Feed rows [rows, width] in one pass; logits at `reads`, counted through all rows.

    `depths`: how many tokens of its row stand before each. `seen[r, i, j]`: whether token i of row
    r sees its token j; None: itself and all before. With a cache, rows see what they have there
    too, and go behind it; how many of the new ones count is for `cache.add` to say.
    """
    device = model.device
    positions = depths + prefixes.lengths[:, None]
    now = Attending(prefixes=prefixes, seen=_seen(device, ids.shape, seen, cache))
    with _reading(model, reads), SHARED_PREFIX.used(model, now):
        output = model(
            input_ids=onto(device, ids),
            position_ids=onto(device, positions),
            past_key_values=cache,
            use_cache=cache is not None,
        )
    return output.logits[0]


@torch.inference_mode()
def tree_row_logps(
    model: Any, rows: TreeRows, prefixes: Sequence[KeysAndValues]
) -> Callable[[], np.ndarray]:
    """Begin to compute the log-probability of every read of rows of trees, in order."""
    before = SharedPrefixes.of(prefixes, rows.owners)
    logits = row_logits(model, rows.ids, rows.depths, before, reads=rows.reads, seen=rows.seen)
    return fetched(token_logps(logits, rows.which, rows.tokens))


def _seen(
    device: Any, shape: tuple[int, ...], seen: np.ndarray | None, cache: RowCache | None
) -> Any:
    """What each new token sees of its own row, [rows, 1, new tokens, all tokens]."""
    rows, width = shape
    if seen is not None:
        if cache is not None and cache.filled:
            raise ValueError("rows that are trees must come first in a cache")
        return onto(device, seen)[:, None]
    before = cache.lengths if cache is not None else np.zeros(rows, dtype=np.int64)
    places = torch.arange(int(before.max()) + width, device=device)
    own = onto(device, before)[:, None] + torch.arange(width, device=device)[None]
    return (places <= own[..., None])[:, None]


@contextmanager
def _reading(model: Any, reads: np.ndarray) -> Iterator[None]:
    """Let the head see some places of all rows alone."""
    head = model.get_output_embeddings()

    def narrow(_: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        states = args[0].reshape(-1, args[0].shape[-1])
        return (states[onto(states.device, reads)][None], *args[1:])

    hook = head.register_forward_pre_hook(narrow)
    try:
        yield
    finally:
        hook.remove()


def why_not_rows(model: Any) -> str:
    """Why a model is not fed rows behind shared prefixes; empty if it is. Tried, not assumed."""
    try:
        return tried(model, partial(rows_trial, model))
    except Exception as error:  # who asks it something will be told
        log.debug("the trial failed", exc_info=True)
        return f"it could not be tried ({type(error).__name__})"


def farthest(model: Any) -> int | None:
    """How many tokens a row may have with its prefix, so that every layer sees all; None: any."""
    reach = reach_of(model)
    if reach is None:
        return 0
    return min((window for window in reach.values() if window is not None), default=None)


@torch.inference_mode()
def rows_trial(model: Any) -> str:
    """Why rows behind prefixes of three lengths, fed in two steps, are not read as whole texts."""
    _, spans = trial_texts(model.config.get_text_config().vocab_size)
    texts = [span.ids for span in (*spans, spans[0])]
    whole = [(ids, tuple(range(3, len(ids)))) for ids in texts]
    apart = torch.from_numpy(np.concatenate([row_logps(model, [text])() for text in whole]))
    again = torch.from_numpy(row_logps(model, whole)())
    logits = model(torch.tensor([texts[0]], device=model.device), use_cache=False).logits[0]
    try:
        together = _in_two_steps(model, texts, (2, 1, 0))
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # each architecture refuses in its own way
        log.debug("rows behind prefixes failed", exc_info=True)
        return f"it does not take rows behind a prefix ({type(error).__name__})"
    return unlike(model, apart, together, noise=largest(apart - again), logits=logits)


def _in_two_steps(model: Any, texts: Sequence[tuple[int, ...]], lengths: Sequence[int]) -> Any:
    """Log-probabilities from each text's fourth token on, behind prefixes of so many tokens."""
    kept = [prefill(model, ids[:length]) for ids, length in zip(texts, lengths, strict=True)]
    prefixes = SharedPrefixes.of(kept, np.arange(len(texts)))
    cache = RowCache(len(texts), max(map(len, texts)))
    firsts = [ids[length:4] for ids, length in zip(texts, lengths, strict=True)]
    first = [logps[-1:] for logps in _stepped(model, firsts, prefixes, cache)]
    rest = _stepped(model, [ids[3:] for ids in texts], prefixes, cache)
    return torch.cat([part for pair in zip(first, rest, strict=True) for part in pair]).cpu()


def _stepped(
    model: Any, rows: Sequence[tuple[int, ...]], prefixes: SharedPrefixes, cache: RowCache
) -> Any:
    """Feed all but the last token of each row; the log-probabilities of all but the first."""
    counts = np.array([len(row) - 1 for row in rows])
    width = int(counts.max())
    ids = np.array([(*row[:-1], *[0] * (width - len(row) + 1)) for row in rows])
    depths = cache.lengths[:, None] + np.arange(width)[None]
    reads = np.flatnonzero(np.arange(width)[None] < counts[:, None])
    logits = row_logits(model, ids, depths, prefixes, reads=reads, cache=cache)
    cache.add(counts)
    wanted = np.concatenate([row[1:] for row in rows])
    return token_logps(logits, np.arange(len(wanted)), wanted).split(counts.tolist())
