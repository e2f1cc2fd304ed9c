"""Find what takes a model apart: shows its tokens, or says what its answers come from."""

from __future__ import annotations

from typing import Any, cast

from sonde.core.abilities import Attributes, Examines, Model
from sonde.core.errors import AbilityError
from sonde.models.options import needs_extra


def attributor(model: Model) -> Attributes:
    """The model itself if it can, else what does it for the model; refuses where nothing can."""
    if isinstance(model, Attributes):
        return model
    name = model.identity.name
    if not hasattr(model, "loaded"):
        raise AbilityError(
            f"{name} answers from a table and has no gradients, so its answers cannot be "
            "attributed; use a causal or encoder-decoder model, such as smollm2 or hf:FOLDER"
        )
    needs_extra("attribute", "attribution", "captum")
    from sonde.models.torch.attribution import attributor as of_torch

    return of_torch(cast(Any, model))


def examiner(model: Model) -> Examines | None:
    """The model itself if it can be examined, what examines it, or None."""
    if isinstance(model, Examines):
        return model
    if not hasattr(model, "loaded"):
        return None
    from sonde.models.torch.examine import examiner as of_torch

    return of_torch(cast(Any, model))
