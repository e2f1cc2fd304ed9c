"""Find what can say which part of a prompt an answer comes from."""

from __future__ import annotations

from typing import Any, cast

from sonde.core.abilities import Attributes, Model
from sonde.core.errors import AbilityError
from sonde.models.extras import needs_extra


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
