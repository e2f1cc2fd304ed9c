"""`hf:PATH_OR_ID`: a transformers model, causal, masked or encoder-decoder, by folder or hub id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sonde.core.abilities import Model
from sonde.core.errors import UsageError
from sonde.core.facts import Dataset
from sonde.models.options import LoadOptions, needs


@dataclass(frozen=True, slots=True)
class HuggingFace:
    """A transformers model, weights read from safetensors only."""

    name: ClassVar[str] = "hf"
    usage: ClassVar[str] = "hf:PATH_OR_ID"
    summary: ClassVar[str] = (
        "a transformers folder or hub id; causal and encoder-decoder ones score and write, masked "
        "ones fill and score"
    )

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        """Load it, as the kind its config names."""
        if not rest:
            raise UsageError("hf: needs a folder or a hub id, as in hf:./my-model")
        needs(f"hf:{rest}", "torch", "transformers")
        from sonde.models.torch.loading.open import open_model
        from sonde.models.torch.loading.weights import resolve

        return open_model(f"hf:{rest}", resolve(rest, options), options)


COMPONENT = HuggingFace()
