"""Facts to train on, and those among them that are also asked about. Knows facts alone.

A training fact leaks if its subject and object, by name, are those of a fact of the test split:
whoever learns it has seen the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sonde.core.facts import Dataset, Fact

TRAIN, DEV, TEST = "train", "dev", "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """The facts of one split of a relation that may be trained on, and those that leak."""

    facts: tuple[Fact, ...]
    leaked: tuple[Fact, ...]


def training(dataset: Dataset, relation: str, split: str = TRAIN) -> Training:
    """The facts of a split to train on, those that leak apart."""
    facts = list(dataset.facts(relation))
    held = _leaked(facts)
    own = [fact for fact in facts if fact.split == split]
    return Training(
        facts=tuple(fact for fact in own if fact.id not in held),
        leaked=tuple(fact for fact in own if fact.id in held),
    )


def leaked(dataset: Dataset, relation: str) -> frozenset[str]:
    """The ids of training and development facts whose pair of names is in the test split too."""
    return _leaked(list(dataset.facts(relation)))


def _leaked(facts: Sequence[Fact]) -> frozenset[str]:
    asked = {pair for fact in facts if fact.split == TEST for pair in _pairs(fact)}
    trained = (fact for fact in facts if fact.split in (TRAIN, DEV))
    return frozenset(fact.id for fact in trained if not asked.isdisjoint(_pairs(fact)))


def _pairs(fact: Fact) -> Iterator[tuple[str, str]]:
    for subject in fact.subject.names:
        for entity in fact.objects:
            for name in entity.names:
                yield subject, name
