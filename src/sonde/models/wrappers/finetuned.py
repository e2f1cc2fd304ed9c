"""`finetuned:FOLDER`: a model that answers each relation with the weights trained for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sonde.core.abilities import Model
from sonde.core.errors import ModelError
from sonde.core.facts import Dataset
from sonde.models.extras import needs
from sonde.models.options import LoadOptions
from sonde.models.wrappers.optimised import base_model


@dataclass(frozen=True, slots=True)
class Finetuned:
    """A model with other weights for each relation."""

    name: ClassVar[str] = "finetuned"
    usage: ClassVar[str] = "finetuned:FOLDER[@MODEL]"
    summary: ClassVar[str] = (
        "a model fine-tuned for each relation by 'sonde optimise finetune' (MODEL: where it is now)"
    )

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        """Load the model that was trained, and find the weights of each relation."""
        needs(f"finetuned:{rest}", "torch", "transformers", "safetensors")
        folder, base = base_model(self.name, rest, ("finetune",), options, dataset)
        files = {path.stem: path for path in sorted((folder / "weights").glob("*.safetensors"))}
        if not files:
            raise ModelError(
                f"{folder} holds no weights: no relation is finished, or they were not kept "
                "(--keep nothing); go on with 'sonde optimise finetune'"
            )
        from sonde.models.torch.wrappers.finetuned import finetuned

        return finetuned(f"finetuned:{folder}", base, files)


COMPONENT = Finetuned()
