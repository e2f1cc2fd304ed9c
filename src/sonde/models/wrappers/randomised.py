"""What the two schemes of random models have in common: how they are named, and the wrapping."""

from __future__ import annotations

import re

from sonde.core.abilities import Model
from sonde.core.errors import UsageError
from sonde.core.facts import Dataset
from sonde.models.load import load
from sonde.models.options import LoadOptions

SEED = 0


def load_randomised(
    scheme: str, rest: str, options: LoadOptions, dataset: Dataset | None, *, embeddings: bool
) -> Model:
    """Load the model that `rest` names and draw its weights, or its embeddings, anew."""
    seed, reference = named(scheme, rest)
    model = load(reference, options, dataset)
    from sonde.models.torch.loading.randomise import randomised

    return randomised(model, f"{scheme}:{rest}", seed, embeddings=embeddings)


def named(scheme: str, rest: str) -> tuple[int, str]:
    """The seed, 0 where none is given, and the model: MODEL or SEED:MODEL.

    >>> named("random", "hf:gpt2"), named("random", "7:hf:gpt2")
    ((0, 'hf:gpt2'), (7, 'hf:gpt2'))
    """
    found = re.fullmatch(r"(?:(\d+):)?(.+)", rest)
    if found is None:
        raise UsageError(f"{scheme}: needs a model, as in {scheme}:hf:FOLDER")
    return int(found[1] or SEED), found[2]
