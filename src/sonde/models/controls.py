"""`control:NAME`: models that count facts instead of reading text.

What such a control scores, a language model can score without knowing anything. The majority counts
the facts that are asked about, the other controls those of the split `train`. Naive Bayes gives an
object, by the words of the subject's name alone,

    P(o | r) Π_i (count(o, w_i) + 1) / Σ_w (count(o, w) + 1)

over the words w_i of the subject, separated by spaces; w runs over all words of the relation's
training subjects. Logarithms throughout.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sonde.core.abilities import Identity, Model
from sonde.core.errors import DataError, UsageError, nearest
from sonde.core.facts import Dataset, Fact, commonest_objects
from sonde.core.fingerprints import canonical, fingerprint
from sonde.core.prompts import Prompt
from sonde.core.train_test_overlap import TRAIN, training
from sonde.models.options import LoadOptions
from sonde.models.tables import UNSEEN, Table, TableModel

log = logging.getLogger(__name__)

Floats = NDArray[np.float64]

LEAST_APART = 1e-3
"""Nats between the commonest and the rarest of objects that are equally likely, so that none tie;
enough to outlast being stored with seven digits."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Majority(TableModel):
    """Answers every prompt of a relation with the most frequent of the objects it counted."""

    KEYS: ClassVar = ("relation",)
    shares: Mapping[str, Table]
    name: str = "control:majority"
    details: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> Identity:
        """Named by what it counted."""
        weights = fingerprint([canonical({r: dict(s) for r, s in self.shares.items()})])
        return Identity(
            name=self.name, architecture="counting", weights=weights, details=self.details
        )

    def tables(self, prompt: Prompt) -> tuple[list[Table], float]:
        """The shares of the relation."""
        return [self.shares.get(prompt.key.relation, {})], UNSEEN


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Words:
    """One relation counted: entries go by object, the commonest first.

    prior: log P(object | relation). spread: log of how many words the object's subjects have, each
    word counted once more. more: for each word, log (count + 1) of every object.
    """

    objects: tuple[str, ...]
    prior: Floats
    spread: Floats
    more: Mapping[str, Floats]

    def scores(self, subject: str) -> Floats:
        """The log-likelihood of every object for a subject of that name, no two of them equal."""
        words = subject.split()
        found = self.prior - len(words) * self.spread
        for word in words:
            if word in self.more:
                found = found + self.more[word]
        return found - np.arange(len(found)) * (LEAST_APART / len(found))

    def table(self, subject: str) -> Table:
        """The log-probability of every object for a subject of that name; they sum to 1."""
        found = self.scores(subject)
        highest = found.max()
        found = found - highest - np.log(np.exp(found - highest).sum())
        return dict(zip(self.objects, found.tolist(), strict=True))


def counted(facts: Sequence[Fact]) -> Words:
    """Count the subjects' words of each object; a fact counts for every object it has."""
    order = commonest_objects(facts)
    places = {name: i for i, (name, _) in enumerate(order)}
    counts: dict[str, Counter[int]] = {}
    for fact in facts:
        for word in fact.subject.name.split():
            own = counts.setdefault(word, Counter())
            own.update(places[entity.name] for entity in fact.objects)
    table = {word: _spread_out(own, len(order)) for word, own in counts.items()}
    total = sum((np.bincount(list(c), list(c.values()), len(order)) for c in counts.values()), 0.0)
    numbers = np.array([count for _, count in order], dtype=np.float64)
    return Words(
        objects=tuple(places),
        prior=np.log(numbers / numbers.sum()),
        spread=np.log(np.asarray(total) + len(counts)) * np.ones(len(order)),
        more=table,
    )


def _spread_out(counts: Counter[int], size: int) -> Floats:
    """log (count + 1) of every object."""
    found = np.zeros(size)
    found[list(counts)] = np.log1p(np.array(list(counts.values()), dtype=np.float64))
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class NaiveBayes(TableModel):
    """Answers by the words of the subject's name alone, as the training facts have them.

    `subjects`: the usual name of each fact's subject, for prompts that ask about several.
    """

    KEYS: ClassVar = ("relation", "subject", "fact")
    words: Mapping[str, Words]
    subjects: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> Identity:
        """Named by what it counted."""
        return Identity(
            name="control:naive-bayes",
            architecture="counting",
            weights=fingerprint(_parts(self.words)),
            details=self.details,
        )

    def tables(self, prompt: Prompt) -> tuple[list[Table], float]:
        """A table for the subject, or for each of the facts that a prompt asks about."""
        words = self.words.get(prompt.key.relation)
        if words is None:
            return [{}], UNSEEN
        subject = prompt.key.subject
        subjects = [subject] if subject else [self.subjects.get(f, "") for f in prompt.facts]
        tables = [words.table(name) for name in subjects]
        # below all that the tables hold: what an object has that no training fact has
        return tables, min(UNSEEN, min(min(table.values()) for table in tables) - 1.0)


def _parts(words: Mapping[str, Words]) -> Iterator[str]:
    """Everything that was counted, in an order that does not depend on the facts'."""
    for relation in sorted(words):
        own = words[relation]
        yield canonical([relation, own.objects, own.prior.tolist(), own.spread.tolist()])
        for word in sorted(own.more):
            (places,) = np.nonzero(own.more[word])
            yield canonical([word, places.tolist(), own.more[word][places].tolist()])


def majority(dataset: Dataset) -> Majority:
    """Count the objects of the split that is asked about."""
    orders = (
        (r.id, commonest_objects(dataset.split_frame(r.id))) for r in dataset.asked_relations()
    )
    return Majority(shares={relation: object_shares(order) for relation, order in orders})


def class_prior(dataset: Dataset) -> Majority:
    """Count the objects of the training facts: argmax P(object | relation)."""
    trained, details = training_facts("control:class-prior", dataset)
    return Majority(
        shares={r: object_shares(commonest_objects(facts)) for r, facts in trained.items()},
        name="control:class-prior",
        details=details,
    )


def naive_bayes(dataset: Dataset) -> NaiveBayes:
    """Count the words of the subjects of each object in the training facts."""
    trained, details = training_facts("control:naive-bayes", dataset)
    frames = (dataset.split_frame(relation.id) for relation in dataset.asked_relations())
    return NaiveBayes(
        words={relation: counted(facts) for relation, facts in trained.items()},
        subjects={id: name for f in frames for id, name in f.select("fact", "subject").iter_rows()},
        details=details,
    )


def training_facts(
    control: str, dataset: Dataset
) -> tuple[dict[str, tuple[Fact, ...]], dict[str, str]]:
    """The facts of the split `train` by relation, without what leaks, and how many there were."""
    trained = {r.id: training(dataset, r.id) for r in dataset.asked_relations()}
    facts = {relation: own.facts for relation, own in trained.items() if own.facts}
    if not facts:
        raise DataError(
            f"{control} learns from training facts, and dataset {dataset.name!r} has none for "
            f"what is asked; give some facts the split {TRAIN!r}, or use control:majority"
        )
    used = sum(map(len, facts.values()))
    leaked = sum(len(own.leaked) for own in trained.values())
    without = [relation for relation in trained if relation not in facts]
    log.info(
        "%s: fitted on %s training facts; %s more were dropped because they are also asked about%s",
        control,
        f"{used:,}",
        f"{leaked:,}" if leaked else "no",
        f"; no training facts for {', '.join(without)}" if without else "",
    )
    details = {
        "fitted_on": f"{used:,} facts of split {TRAIN}",
        "leaked_dropped": f"{leaked:,}",
        "relations_without_training": f"{len(without):,}",
    }
    return facts, details


def object_shares(order: Sequence[tuple[str, int]]) -> dict[str, float]:
    """Log share of each object name; equal counts are told apart so that one comes first."""
    total = sum(count for _, count in order)
    return {
        name: math.log((count - rank / (len(order) + 1)) / total)
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
            raise UsageError(
                f"control:{rest} counts the facts of a dataset, and is given none here; name a "
                "model that reads text, or give it a dataset"
            )
        return CONTROLS[rest](dataset)


COMPONENT = Controls()
