"""`control:NAME`: models that count facts instead of reading text.

What such a control scores, a language model can score without knowing anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import ClassVar

from sonde.core.abilities import Identity, Model
from sonde.core.answers import Filled, Scored
from sonde.core.errors import UsageError, nearest
from sonde.core.facts import Dataset, Fact
from sonde.core.prompts import Prompt
from sonde.models.options import LoadOptions
from sonde.models.tables import fill_from, score_from


@dataclass(frozen=True, slots=True, kw_only=True)
class Majority:
    """Answers every prompt of a relation with that relation's most frequent test object."""

    shares: Mapping[str, Mapping[str, float]]
    fitted_on: str

    @property
    def identity(self) -> Identity:
        """The control's name and the dataset it counted."""
        return Identity(
            name="control:majority", architecture="counting", weights=f"counts:{self.fitted_on}"
        )

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        """Yield (position, answer)."""
        for i, prompt in enumerate(prompts):
            yield i, score_from(prompt, self.shares.get(prompt.key.relation, {}))

    def fill(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Filled]]:
        """Yield (position, answer)."""
        for i, prompt in enumerate(prompts):
            yield i, fill_from(prompt, self.shares.get(prompt.key.relation, {}))


def majority(dataset: Dataset) -> Majority:
    """Count the objects of the facts that are asked about."""
    shares = {r.id: object_shares(dataset.asked(r.id)) for r in dataset.asked_relations()}
    return Majority(shares=shares, fitted_on=dataset.fingerprint)


def object_shares(facts: Iterator[Fact]) -> dict[str, float]:
    """Log share of each object name; equal counts go by name, so that one comes first."""
    counts = Counter(entity.name for fact in facts for entity in fact.objects)
    total = sum(counts.values())
    order = sorted(counts, key=lambda name: (-counts[name], name))
    return {
        name: log((counts[name] - rank / (len(order) + 1)) / total)
        for rank, name in enumerate(order)
    }


CONTROLS: Mapping[str, Callable[[Dataset], Model]] = {"majority": majority}


@dataclass(frozen=True, slots=True)
class Controls:
    """Controls by name."""

    name: ClassVar[str] = "control"
    usage: ClassVar[str] = "control:majority"
    summary: ClassVar[str] = "answers each relation with its most frequent object; fills and scores"

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        """Fit the control on the dataset."""
        if rest not in CONTROLS:
            raise UsageError(f"no control called {rest!r}; {nearest(rest, CONTROLS)}")
        if dataset is None:
            raise UsageError(f"control:{rest} counts a dataset's facts; name one with -d")
        return CONTROLS[rest](dataset)


COMPONENT = Controls()
