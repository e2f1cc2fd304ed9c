"""`random:MODEL`: a model as its architecture begins, before anything was learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sonde.core.abilities import Model
from sonde.core.facts import Dataset
from sonde.models.options import LoadOptions
from sonde.models.wrappers.randomised import load_randomised


@dataclass(frozen=True, slots=True)
class RandomWeights:
    """A model with every weight drawn anew."""

    name: ClassVar[str] = "random"
    usage: ClassVar[str] = "random:MODEL"
    summary: ClassVar[str] = (
        "a model with every weight drawn anew, as a control (random:SEED:MODEL for another draw)"
    )

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        """Load the model and draw its weights."""
        return load_randomised(self.name, rest, options, dataset, embeddings=False)


COMPONENT = RandomWeights()
