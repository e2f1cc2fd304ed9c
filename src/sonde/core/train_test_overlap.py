"""Training facts that are asked about too: their subject and object, by name, are a test fact's.

Whoever learns such a fact has seen the answer. Knows facts alone.
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
    held = leaking(facts)
    own = [fact for fact in facts if fact.split == split]
    return Training(
        facts=tuple(fact for fact in own if fact.id not in held),
        leaked=tuple(fact for fact in own if fact.id in held),
    )


def leaked(dataset: Dataset, relation: str) -> frozenset[str]:
    """The ids of training and development facts whose pair of names is in the test split too."""
    return leaking(list(dataset.facts(relation)))


def leaking(facts: Sequence[Fact]) -> frozenset[str]:
    """The same of the facts of one relation."""
    asked = {pair for fact in facts if fact.split == TEST for pair in name_pairs(fact)}
    trained = (fact for fact in facts if fact.split in (TRAIN, DEV))
    return frozenset(fact.id for fact in trained if not asked.isdisjoint(name_pairs(fact)))


def name_pairs(fact: Fact) -> Iterator[tuple[str, str]]:
    """Every name of the subject with every name of an object."""
    for subject in fact.subject.names:
        for entity in fact.objects:
            for name in entity.names:
                yield subject, name
