"""Choose the facts that a method may learn from. A test fact is never among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Fact, Relation
from sonde.core.fingerprints import draw_key
from sonde.core.train_test_overlap import leaked

HELD_OUT = 5  # one in so many training facts, where a relation has none for development
SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A relation with the facts to train on and those to choose by; `counts` of what was left."""

    relation: Relation
    train: tuple[Fact, ...]
    dev: tuple[Fact, ...]
    counts: Mapping[str, int] = field(default_factory=dict)


def tasks(
    dataset: Dataset, relations: Sequence[Relation], *, limit: int | None, seed: int, drop: bool
) -> list[Task]:
    """The facts of each relation; training facts that are test facts are refused or dropped."""
    found = {relation.id: leaked(dataset, relation.id) for relation in relations}
    if not drop and any(found.values()):
        raise DataError(leaks_told(dataset, found))
    if not any(f.split == "train" for r in relations for f in dataset.facts(r.id)):
        raise DataError(
            f"dataset {dataset.name!r} has no facts of split 'train' for the relations asked for; "
            "there is nothing to learn from"
        )
    return [task_of(dataset, relation, found[relation.id], limit, seed) for relation in relations]


def task_of(
    dataset: Dataset, relation: Relation, left: frozenset[str], limit: int | None, seed: int
) -> Task:
    """The facts of one relation, without those left out."""
    splits: dict[str, list[Fact]] = {"train": [], "dev": []}
    for fact in dataset.facts(relation.id):
        if fact.split in splits and fact.id not in left:
            splits[fact.split].append(fact)
    train, dev = splits["train"], splits["dev"]
    held = 0
    if not dev and len(train) > 1:
        drawn = drawn_of(train, max(len(train) // HELD_OUT, 1), seed)
        dev = [fact for fact in train if fact.id in drawn]
        train = [fact for fact in train if fact.id not in drawn]
        held = len(dev)
    if limit is not None:
        train, dev = limited(train, limit, seed), limited(dev, limit, seed)
    counts = {"leaked": len(left), "held_out": held}
    return Task(relation=relation, train=tuple(train), dev=tuple(dev), counts=counts)


def limited(facts: list[Fact], limit: int, seed: int) -> list[Fact]:
    """At most so many of the facts, drawn, in their own order."""
    drawn = drawn_of(facts, limit, seed)
    return [fact for fact in facts if fact.id in drawn]


def drawn_of(facts: Sequence[Fact], count: int, seed: int) -> set[str]:
    """The ids of some facts, drawn each by its own name."""
    ordered = sorted(facts, key=lambda fact: draw_key(seed, fact.id))
    return {fact.id for fact in ordered[:count]}


def leaks_told(dataset: Dataset, found: Mapping[str, frozenset[str]]) -> str:
    """Say which training facts are test facts too."""
    shown = list(_first(dataset, found))
    total = sum(map(len, found.values()))
    listed = "; ".join(shown) + ("; …" if total > len(shown) else "")
    return (
        f"{total} facts of {dataset.name!r} to learn from are test facts too ({listed}); leave "
        "them out with --drop-leaked, which says how many, or mend the dataset"
    )


def _first(dataset: Dataset, found: Mapping[str, frozenset[str]]) -> Iterator[str]:
    left = SHOWN
    for relation, ids in found.items():
        for fact in dataset.facts(relation) if ids else ():
            if fact.id in ids and left:
                left -= 1
                yield f"{relation} {fact.split}: {fact.subject.name} – {fact.objects[0].name}"
