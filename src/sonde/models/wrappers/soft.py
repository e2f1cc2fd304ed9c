"""`soft:FOLDER`: a model that reads the soft prompts of a folder, as `sonde optimise` made them.

It is the model they were trained on, with the vectors as further tokens; another one is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sonde.core.abilities import Model
from sonde.core.errors import ModelError
from sonde.core.facts import Dataset
from sonde.core.fingerprints import file_hash, fingerprint
from sonde.models.extras import needs
from sonde.models.options import LoadOptions
from sonde.models.wrappers.optimised import base_model

VECTORS = "vectors.safetensors"
METHODS = ("optiprompt", "autoprompt")
"""What may leave vectors behind."""


@dataclass(frozen=True, slots=True)
class Soft:
    """A model with the vectors of its soft prompts."""

    name: ClassVar[str] = "soft"
    usage: ClassVar[str] = "soft:FOLDER[@MODEL]"
    summary: ClassVar[str] = (
        "soft prompts made by 'sonde optimise', in the model they were made for (MODEL: where it "
        "is now)"
    )

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        """Load the model that the folder names and give it the folder's vectors."""
        needs(f"soft:{rest}", "torch", "transformers", "safetensors")
        folder, base = base_model(self.name, rest, METHODS, options, dataset)
        return opened(f"soft:{folder}", folder, base)


def opened(name: str, folder: Path, base: Model) -> Model:
    """The base model with the vectors of a folder."""
    from safetensors.numpy import load_file

    from sonde.models.torch.wrappers.soft import soft_model

    if not (folder / VECTORS).is_file():
        raise ModelError(
            f"{folder} holds no {VECTORS}: its templates are plain text, or no relation is "
            "finished; ask the model itself, or go on with 'sonde optimise'"
        )
    try:
        vectors = load_file(folder / VECTORS)
    except Exception as error:  # safetensors raises its own
        raise ModelError(f"{folder / VECTORS} does not read back: {error}") from error
    weights = fingerprint([base.identity.weights, file_hash(folder / VECTORS)])
    return soft_model(name, base, vectors, weights)


COMPONENT = Soft()
