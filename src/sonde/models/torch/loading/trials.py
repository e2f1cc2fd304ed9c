"""Hold one way of feeding a model against another: are they the same but for rounding?

Masks, positions and caches are right or wrong in every layer alike, and rounding hides it. So a
model is tried in float32, on its first layers and some of its tokens: there two right ways differ
by millionths of how far log-probabilities lie apart, and a wrong one by hundredths (decisions/004).
What cannot be cast is tried as it is, and may differ as much as its precision and other batches
make it. Knows models and tensors; nothing of token trees, masked positions or prompts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import repeat
from math import isfinite
from typing import Any, TypeVar

import torch

from sonde.models.torch.loading.spread import is_fetched

log = logging.getLogger("sonde")

NOT_FINITE = "its log-probabilities are not finite and cannot be compared"

FEWEST = 2
"""Layers that a model is tried with, where all are of one kind."""

TOKENS = 4096
"""Tokens that a model keeps while it is tried, counted from the first."""

LARGEST = 2**33
"""Bytes of float32 up to which a part of a model is copied."""

LEAST = 1e-5
"""Nats that make no difference to anybody."""

HALVES = (torch.bfloat16, torch.float16)

Found = TypeVar("Found")


def tried(model: Any, trial: Callable[[], Found]) -> Found:
    """What a trial finds on a small part of a model in float32, or else on the model as it is."""
    try:
        with in_float32(model):
            return trial()
    except Exception:  # it has no such part, or its code takes only the precision it has
        log.debug("tried as it is, not in float32", exc_info=True)
    # weights that are fetched for every pass would make a trial of all layers slow
    with first_layers(model) if is_fetched(model) else nullcontext():
        return trial()


def unlike(model: Any, plain: Any, other: Any, *, noise: float, logits: Any) -> str:
    """Why two ways of feeding a model are not the same; empty if they are.

    `plain` and `other` are log-probabilities from the two, `noise` is how far plain ones differ
    between batches, and `logits` [places, tokens] show how far those of one place lie apart.
    """
    share = 1e-3 if model.dtype == torch.float32 else 16 * torch.finfo(model.dtype).eps
    allowed = max(LEAST, share * spread(logits), 2 * noise)
    gap = largest(plain - other)
    if gap <= allowed:
        return ""
    if not isfinite(gap):
        return NOT_FINITE
    return f"log-probabilities then differ by {gap:.2g} nats, and rounding explains {allowed:.1g}"


def spread(logits: Any) -> float:
    """How far apart the logits of one place lie: from quartile to quartile, mean over places."""
    edges = torch.tensor([0.25, 0.75], device=logits.device)
    low, high = logits.float().quantile(edges, -1).mean(-1).tolist()
    return float(high - low)


def largest(values: Any) -> float:
    """The largest absolute value of a tensor."""
    return float(values.abs().max())


@contextmanager
def in_float32(model: Any) -> Iterator[None]:
    """Make a model its own first layers and tokens in float32; afterwards it is as it was."""
    with first_layers(model):
        smaller = parts(model)
        held = [(tensor, tensor.data) for tensor, _ in smaller]
        try:
            for tensor, part in smaller:
                tensor.data = part.float()
            yield
        finally:
            for tensor, own in held:
                tensor.data = own


def parts(model: Any) -> list[tuple[Any, Any]]:
    """Every tensor of a model that has to change, with the part of it that is kept."""
    quantised = getattr(model, "hf_quantizer", None) is not None
    if quantised or any(p.dtype not in (torch.float32, *HALVES) for p in model.parameters()):
        raise ValueError("its weights are quantised")
    if is_fetched(model):
        raise ValueError("its weights are not all in memory")
    ends = (model.get_input_embeddings(), model.get_output_embeddings())
    tables = [end for end in ends if isinstance(end, torch.nn.Embedding | torch.nn.Linear)]
    rows = max([TOKENS, *((getattr(table, "padding_idx", None) or 0) + 1 for table in tables)])
    by_token = {id(tensor): tensor[:rows] for table in tables for tensor in table.parameters()}
    tensors = (*model.parameters(), *model.buffers())
    found = [
        (tensor, by_token.get(id(tensor), tensor).detach())
        for tensor in tensors
        if id(tensor) in by_token or tensor.dtype in HALVES
    ]
    size = sum(4 * part.numel() for _, part in found if part.dtype in HALVES)
    if size > LARGEST:
        raise ValueError(f"its first layers would take {size:,} bytes")
    return found


@contextmanager
def first_layers(model: Any) -> Iterator[None]:
    """Leave a model the first of its layers, so many that there is one of each kind."""
    found = stack(model)
    if found is None:
        yield
        return
    parent, name, layers = found
    types = getattr(model.config.get_text_config(), "layer_types", None) or repeat("")
    kinds = [f"{kind} {layer!r}" for layer, kind in zip(layers, types, strict=False)]
    setattr(parent, name, layers[: max(FEWEST, *(kinds.index(kind) + 1 for kind in kinds))])
    try:
        yield
    finally:
        setattr(parent, name, layers)


def stack(model: Any) -> tuple[Any, str, Any] | None:
    """The list that holds a model's layers: what it is part of, by which name, and the list."""
    count = getattr(model.config.get_text_config(), "num_hidden_layers", None)
    for parent in model.modules():
        for name, child in parent.named_children():
            if isinstance(child, torch.nn.ModuleList) and len(child) == count:
                return parent, name, child
    return None
