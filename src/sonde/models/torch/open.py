"""Open a model folder as the kind of model it is."""

from __future__ import annotations

from pathlib import Path

from sonde.models.options import LoadOptions
from sonde.models.torch.causal import CausalModel
from sonde.models.torch.masked import MaskedModel
from sonde.models.torch.weights import is_causal, load_folder, read_config


def open_model(name: str, folder: Path, options: LoadOptions) -> CausalModel | MaskedModel:
    """A causal or a masked model, as config.json says."""
    causal = is_causal(read_config(folder))
    loaded = load_folder(name, folder, options)
    return CausalModel(loaded) if causal else MaskedModel(loaded)
