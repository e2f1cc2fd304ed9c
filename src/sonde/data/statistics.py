"""Count what a dataset holds, in one pass over each relation."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sonde.core.facts import Dataset, Relation


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationStatistics:
    """What one relation holds."""

    relation: Relation
    splits: dict[str, int]
    hard: int
    objects: int
    objects_per_fact: float
    subject_names: float
    object_names: float

    @property
    def facts(self) -> int:
        """Facts of all splits."""
        return sum(self.splits.values())


def relation_statistics(dataset: Dataset, relation: Relation) -> RelationStatistics:
    """Count one relation's facts, objects and names."""
    splits: Counter[str] = Counter()
    names: dict[str, int] = {}
    hard = objects = subject_names = 0
    for fact in dataset.facts(relation.id):
        splits[fact.split] += 1
        hard += "hard" in fact.tags
        objects += len(fact.objects)
        subject_names += len(fact.subject.names)
        names.update({entity.id: len(entity.names) for entity in fact.objects})
    facts = max(sum(splits.values()), 1)
    return RelationStatistics(
        relation=relation,
        splits=dict(sorted(splits.items())),
        hard=hard,
        objects=len(names),
        objects_per_fact=objects / facts,
        subject_names=subject_names / facts,
        object_names=sum(names.values()) / max(len(names), 1),
    )
