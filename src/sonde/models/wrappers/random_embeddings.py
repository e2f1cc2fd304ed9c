"""`random-embeddings:MODEL`: a model that kept its layers and forgot its words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sonde.core.abilities import Model
from sonde.core.facts import Dataset
from sonde.models.options import LoadOptions
from sonde.models.wrappers.randomised import load_randomised


@dataclass(frozen=True, slots=True)
class RandomEmbeddings:
    """A model with its token embeddings drawn anew, and the output ones that are tied to them."""

    name: ClassVar[str] = "random-embeddings"
    usage: ClassVar[str] = "random-embeddings:MODEL"
    summary: ClassVar[str] = (
        "a model with only its token embeddings drawn anew, as a control; seed as above"
    )

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        """Load the model and draw its embeddings."""
        return load_randomised(self.name, rest, options, dataset, embeddings=True)


COMPONENT = RandomEmbeddings()
