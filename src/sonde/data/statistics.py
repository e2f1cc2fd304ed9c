"""Count what a dataset holds, in one pass over each relation.

A unique triple is a subject, a relation and one correct object, whatever they are called. Derived
triples are all the ways to say them: subject names x object names x templates. A pair is a subject
and a relation; its prompts are subject names x templates. Facts collected apart, to train on, count
in their split alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields

from sonde.core.facts import APART, Dataset, Relation


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What a dataset or a relation of it holds, as the papers count it."""

    relations: int
    templates: int
    facts: int
    unique_triples: int
    derived_triples: int
    pairs: int
    prompts: int

    @property
    def quantity(self) -> float | None:
        """Prompts per pair; None where there is no pair."""
        return self.prompts / self.pairs if self.pairs else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationStatistics:
    """What one relation holds."""

    relation: Relation
    totals: Totals
    splits: dict[str, int]
    hard: int
    objects: int
    objects_per_fact: float
    subject_names: float
    object_names: float


def relation_statistics(dataset: Dataset, relation: Relation) -> RelationStatistics:
    """Count one relation's facts, objects and names."""
    splits: Counter[str] = Counter()
    names: dict[str, int] = {}
    subjects: dict[str, int] = {}
    triples: dict[tuple[str, str], int] = {}
    facts = hard = objects = subject_names = 0
    for fact in dataset.facts(relation.id):
        splits[fact.split] += 1
        if APART in fact.tags:
            continue
        facts += 1
        hard += "hard" in fact.tags
        objects += len(fact.objects)
        subject_names += len(fact.subject.names)
        subjects[fact.subject.id] = len(fact.subject.names)
        for entity in fact.objects:
            names[entity.id] = len(entity.names)
            triples[fact.subject.id, entity.id] = len(fact.subject.names) * len(entity.names)
    return RelationStatistics(
        relation=relation,
        splits=dict(sorted(splits.items())),
        hard=hard,
        objects=len(names),
        objects_per_fact=objects / max(facts, 1),
        subject_names=subject_names / max(facts, 1),
        object_names=sum(names.values()) / max(len(names), 1),
        totals=Totals(
            relations=1,
            templates=len(relation.templates),
            facts=splits.total(),
            unique_triples=len(triples),
            derived_triples=sum(triples.values()) * len(relation.templates),
            pairs=len(subjects),
            prompts=sum(subjects.values()) * len(relation.templates),
        ),
    )


def totals(rows: Sequence[RelationStatistics]) -> Totals:
    """A dataset's counts from those of its relations."""
    names = [field.name for field in fields(Totals)]
    return Totals(**{name: sum(getattr(row.totals, name) for row in rows) for name in names})
