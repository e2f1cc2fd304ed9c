"""`random:MODEL` and `random-embeddings:MODEL`: models that forgot what they learned."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sonde.core.abilities import Model
from sonde.core.errors import UsageError
from sonde.core.facts import Dataset
from sonde.models.load import load
from sonde.models.options import LoadOptions

SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Randomised:
    """A model with every weight drawn anew, or only its token embeddings and those tied to them."""

    name: str
    usage: str
    summary: str
    embeddings: bool

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
