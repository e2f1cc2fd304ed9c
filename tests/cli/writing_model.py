"""`writes:SHARE`: a model from another package that only generates text.

It knows this share of the facts, misses some of them by instrument, and guesses else.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from sonde.core.abilities import Identity, Model
from sonde.core.answers import Generated
from sonde.core.facts import Dataset
from sonde.core.prompts import Prompt
from sonde.models.options import LoadOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """Generates an object of the dataset."""

    share: float
    objects: Mapping[str, str]

    @property
    def identity(self) -> Identity:
        return Identity(name=f"writes-{self.share}", architecture="words", weights=str(self.share))

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Generated]]:
        for position, prompt in enumerate(prompts):
            fact = prompt.key.fact
            rng = Random(f"{fact} {prompt.prefix}")
            is_known = Random(fact).random() < self.share and rng.random() < 0.8
            guess = rng.choice(sorted(set(self.objects.values())))
            yield (
                position,
                Generated(text=f" {self.objects[fact] if is_known else guess}", logps=()),
            )


@dataclass(frozen=True, slots=True)
class WritesScheme:
    """Names the share that is known."""

    name: ClassVar[str] = "writes"
    usage: ClassVar[str] = "writes:SHARE"
    summary: ClassVar[str] = "generates only"

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        assert dataset is not None
        facts = (fact for r in dataset.relations for fact in dataset.facts(r.id))
        return Writes(share=float(rest), objects={f.id: f.objects[0].name for f in facts})


COMPONENT = WritesScheme()
