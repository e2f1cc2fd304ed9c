"""`control:NAME`: models that count facts instead of reading text.

What such a control scores, a language model can score without knowing anything. The majority counts
the facts that are asked about, the other controls those of the split `train`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Any, ClassVar

from sonde.core.abilities import Identity, Model
from sonde.core.answers import Filled, Generated, Sampled, Scored, Traced
from sonde.core.columns import FilledColumns
from sonde.core.errors import UsageError, nearest
from sonde.core.facts import Dataset, commonest_objects
from sonde.core.fingerprints import canonical, fingerprint
from sonde.core.prompts import Prompt, Prompts
from sonde.models.controls.bayes import NaiveBayes, counted
from sonde.models.controls.training_facts import training_facts
from sonde.models.options import LoadOptions
from sonde.models.tables import (
    fill_distinct,
    fill_from,
    generate_from,
    sample_from,
    score_from,
    trace_from,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Majority:
    """Answers every prompt of a relation with the most frequent of the objects it counted."""

    shares: Mapping[str, Mapping[str, float]]
    name: str = "control:majority"
    details: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> Identity:
        """Named by what it counted."""
        weights = fingerprint([canonical({r: dict(s) for r, s in self.shares.items()})])
        return Identity(
            name=self.name, architecture="counting", weights=weights, details=self.details
        )

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        """Yield (position, answer)."""
        for i, prompt in enumerate(prompts):
            yield i, score_from(prompt, self.shares.get(prompt.key.relation, {}))

    def fill(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Filled]]:
        """Yield (position, answer)."""
        for i, prompt in enumerate(prompts):
            yield i, fill_from(prompt, self.shares.get(prompt.key.relation, {}))

    def fill_columns(self, prompts: Prompts) -> Iterator[tuple[Any, FilledColumns]]:
        """Yield (positions, answers); every prompt of a relation is answered alike."""
        shares = self.shares
        return fill_distinct(
            prompts, ("relation",), lambda p: fill_from(p, shares.get(p.key.relation, {}))
        )

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Generated]]:
        """Yield (position, answer)."""
        for i, prompt in enumerate(prompts):
            yield i, generate_from(prompt, self.shares.get(prompt.key.relation, {}))

    def sample(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Sampled]]:
        """Yield (position, answer)."""
        for i, prompt in enumerate(prompts):
            yield i, sample_from(prompt, self.shares.get(prompt.key.relation, {}))

    def trace(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Traced]]:
        """Yield (position, answer)."""
        for i, prompt in enumerate(prompts):
            yield i, trace_from(prompt, [self.shares.get(prompt.key.relation, {})])


def majority(dataset: Dataset) -> Majority:
    """Count the objects of the split that is asked about."""
    orders = (
        (r.id, commonest_objects(dataset.split_frame(r.id))) for r in dataset.asked_relations()
    )
    return Majority(shares={relation: object_shares(order) for relation, order in orders})


def class_prior(dataset: Dataset) -> Majority:
    """Count the objects of the training facts: argmax P(object | relation)."""
    fitted = training_facts("control:class-prior", dataset)
    return Majority(
        shares={r: object_shares(commonest_objects(facts)) for r, facts in fitted.facts.items()},
        name="control:class-prior",
        details=fitted.details,
    )


def naive_bayes(dataset: Dataset) -> NaiveBayes:
    """Count the words of the subjects of each object in the training facts."""
    fitted = training_facts("control:naive-bayes", dataset)
    frames = (dataset.split_frame(relation.id) for relation in dataset.asked_relations())
    return NaiveBayes(
        words={relation: counted(facts) for relation, facts in fitted.facts.items()},
        subjects={id: name for f in frames for id, name in f.select("fact", "subject").iter_rows()},
        details=fitted.details,
    )


def object_shares(order: Sequence[tuple[str, int]]) -> dict[str, float]:
    """Log share of each object name; equal counts are told apart so that one comes first."""
    total = sum(count for _, count in order)
    return {
        name: log((count - rank / (len(order) + 1)) / total)
        for rank, (name, count) in enumerate(order)
    }


CONTROLS: Mapping[str, Callable[[Dataset], Model]] = {
    "majority": majority,
    "class-prior": class_prior,
    "naive-bayes": naive_bayes,
}


@dataclass(frozen=True, slots=True)
class Controls:
    """Controls by name."""

    name: ClassVar[str] = "control"
    usage: ClassVar[str] = "control:NAME"
    summary: ClassVar[str] = (
        "majority, class-prior or naive-bayes: counts facts and reads no text; fills, scores and "
        "writes"
    )

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        """Fit the control on the dataset."""
        if rest not in CONTROLS:
            raise UsageError(f"no control called {rest!r}; {nearest(rest, CONTROLS)}")
        if dataset is None:
            raise UsageError(f"control:{rest} counts a dataset's facts; name one with -d")
        return CONTROLS[rest](dataset)


COMPONENT = Controls()
