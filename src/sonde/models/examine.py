"""Find what can show a model's tokens. Models that answer from a table have none."""

from __future__ import annotations

from typing import Any, cast

from sonde.core.abilities import Examines, Model


def examiner(model: Model) -> Examines | None:
    """The model itself if it can be examined, what examines it, or None."""
    if isinstance(model, Examines):
        return model
    if not hasattr(model, "loaded"):
        return None
    from sonde.models.torch.examine import examiner as of_torch

    return of_torch(cast(Any, model))
