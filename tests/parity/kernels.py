"""What the kernels for a GPU compute, in plain PyTorch and slowly."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch

from sonde.models.torch.masked.kernels import GROUP


def attend(
    query: Any, key: Any, value: Any, starts: Any, owners: Any, scale: float, tile: int
) -> Any:
    """Tile by tile; nothing is known of what no tile holds."""
    out = torch.full_like(query.transpose(1, 2), torch.nan)
    for start, end in pairwise(starts.tolist()):
        assert end - start <= tile
        if start < end:
            q, k, v = (tensor[0, :, start:end] for tensor in (query, key, value))
            own = owners[start:end]
            scores = (q @ k.transpose(1, 2) * scale).float()
            scores = scores.masked_fill(own[:, None] != own[None], -torch.inf)
            out[0, start:end] = (scores.softmax(-1).to(v.dtype) @ v).transpose(0, 1)
    return out


def normalise(more: Any, norm: Any, values: Any) -> Any:
    """The sum first."""
    whole = values if more is None else values + more
    return torch.nn.functional.layer_norm(
        whole, norm.normalized_shape, norm.weight, norm.bias, norm.eps
    )


def peaks(logits: Any) -> tuple[Any, Any]:
    """Groups of neighbours, the last one filled up."""
    filled = torch.nn.functional.pad(logits, (0, -logits.shape[1] % GROUP), value=-torch.inf)
    return torch.logsumexp(logits, -1), filled.view(len(logits), -1, GROUP).amax(-1)


def gelu(values: Any) -> Any:
    """With the error function itself."""
    return torch.nn.functional.gelu(values)
