"""Facts that are there twice: under one id, or to train on and among those that are asked about.

The first is refused, because answers are joined to facts by ids. A training fact leaks if its
subject and object, by name, are those of a fact of the test split: whoever learns it has seen the
answer. Knows facts alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sonde.core.errors import DataError
from sonde.core.fact_frames import FactFrames
from sonde.core.facts import Dataset, Fact, Relation

if TYPE_CHECKING:
    from polars import Series


SHOWN = 5


def refuse_repeats(dataset: Dataset, relations: Sequence[Relation]) -> None:
    """Raise DataError if an id of these relations stands for two things."""
    repeated = list(_repeated_templates(relations)) or list(_repeated_facts(dataset, relations))
    if not repeated:
        return
    more = [f"and {len(repeated) - SHOWN} more"] if len(repeated) > SHOWN else []
    raise DataError(
        f"dataset {dataset.name!r} has {len(repeated)} ids that stand for something else "
        "already, so that answers would be mixed:\n  "
        + "\n  ".join([*repeated[:SHOWN], *more])
        + "\ngive each an id of its own; 'sonde data check' lists everything that is wrong"
    )


def _repeated_templates(relations: Sequence[Relation]) -> Iterator[str]:
    """Relations that have another's id, and templates that have that of another of the relation."""
    for id, count in Counter(relation.id for relation in relations).items():
        yield from [f"relation id {id!r}"] * (count - 1)
    for relation in relations:
        for id, count in Counter(template.id for template in relation.templates).items():
            yield from [f"relation {relation.id}: template id {id!r}"] * (count - 1)


def _repeated_facts(dataset: Dataset, relations: Sequence[Relation]) -> Iterator[str]:
    """Where the facts stand that have another's id, and where the other stands."""
    import polars

    if not relations:
        return
    hashes = polars.concat([_hashes(dataset, relation) for relation in relations])
    if hashes.n_unique() == len(hashes):
        return
    assert isinstance(dataset.read, FactFrames)
    firsts: dict[str, str] = {}
    for relation in relations:
        ids = dataset.frame(relation.id)["fact"]
        for id, place in zip(ids, dataset.read.places(relation.id), strict=False):
            first = firsts.setdefault(id, place)
            if first != place:
                yield f"{place}: fact id {id!r}, as in {first}"


def _hashes(dataset: Dataset, relation: Relation) -> Series:
    """Eight bytes a fact, however many there are."""
    return dataset.frame(relation.id)["fact"].hash()


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
