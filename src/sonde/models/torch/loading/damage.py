"""Find the weights of a model that hold NaN or infinity. Knows tensors and their names."""

from __future__ import annotations

from typing import Any

import torch


@torch.inference_mode()
def damaged(model: Any) -> tuple[str, ...]:
    """The names of the parameters with a number that is not finite."""
    return tuple(name for name, weight in model.named_parameters() if not _sound(weight))


def _sound(weight: Any) -> bool:
    """Whether least and largest are finite; both are NaN where any number is."""
    if not weight.is_floating_point() or not weight.numel():
        return True
    least, largest = torch.aminmax(weight)
    return bool(torch.isfinite(least) & torch.isfinite(largest))
