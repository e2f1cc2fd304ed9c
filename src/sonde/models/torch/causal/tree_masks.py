"""Attention masks for trees of tokens, for layers that see everything and layers with a window.

Knows configs and positions; nothing of tries or prompts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from sonde.models.torch.loading.device import onto

# what configs call the reach of attention that is neither full nor a sliding window
OTHER_WINDOWS = ("window_size", "attention_window_size", "attention_chunk_size")

Reach = Mapping[str, int | None]
"""For each kind of layer a model has, how many tokens back it sees with its own; None: all."""


Depths = Sequence[int] | np.ndarray


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


def additive_mask(model: Any, seen: np.ndarray, own: Depths, stem: int, before: Depths) -> Any:
    """What to add to attention so that each new node sees the stem and what it may of the rest.

    `seen[i, j]`: whether new node i is or descends from node j; `own` and `before` are their
    depths below the stem of `stem` tokens, which all of them see. One mask, or one for each kind
    of layer where the kinds differ.
    """
    reach = reach_of(model) or {"full_attention": None}
    deepest = stem + int(max(own)) + 1
    windows = {kind: w if w is not None and w < deepest else None for kind, w in reach.items()}
    made = {w: _mask(model, seen, own, stem, before, w) for w in set(windows.values())}
    if len(made) == 1:
        return next(iter(made.values()))
    return {kind: made[window] for kind, window in windows.items()}


def _mask(
    model: Any,
    seen: np.ndarray,
    own: Depths,
    stem: int,
    before: Depths,
    window: int | None,
) -> Any:
    mask = torch.zeros(len(own), stem + len(before), dtype=model.dtype, device=model.device)
    least = torch.finfo(model.dtype).min
    if window is not None:
        depths = np.asarray(own)[:, None]
        seen = seen & (depths - np.asarray(before)[None] < window)
        far = stem + depths - np.arange(stem)[None] >= window
        mask[:, :stem].masked_fill_(onto(model.device, far), least)
    mask[:, stem:].masked_fill_(onto(model.device, ~seen), least)
    return mask[None, None]
