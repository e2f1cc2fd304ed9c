"""`gguf:PATH`: a GGUF file, dequantised once and kept in plain form in the cache."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sonde.core.abilities import Model
from sonde.core.errors import ModelError
from sonde.core.facts import Dataset
from sonde.models.extras import needs
from sonde.models.options import LoadOptions


@dataclass(frozen=True, slots=True)
class Gguf:
    """A GGUF file through transformers."""

    name: ClassVar[str] = "gguf"
    usage: ClassVar[str] = "gguf:PATH"
    summary: ClassVar[str] = "a GGUF file, dequantised once into the cache; scores and writes"

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        """Dequantise it unless the cache has it, then load the plain form."""
        path = Path(rest).expanduser()
        if not path.is_file():
            raise ModelError(f"gguf:{rest}: {path} is not a file; give the path of a .gguf file")
        needs(f"gguf:{rest}", "torch", "transformers", "gguf")
        from sonde.models.torch.loading.dequantise import open_gguf

        return open_gguf(f"gguf:{rest}", path, options)


COMPONENT = Gguf()
