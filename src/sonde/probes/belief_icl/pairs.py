"""The pairs that BELIEF-ICL asks about, with everything that counts as right. Knows no answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nsmallest

import numpy as np

from sonde.core.facts import Dataset, Relation, Template, commonest_objects
from sonde.core.fingerprints import draw_key
from sonde.metrics.grid import Bools, Ints
from sonde.prompting.few_shot import Eligible
from sonde.prompting.matching import normal, within
from sonde.prompting.pairs import Pair, asked_pairs


def sampled_pairs(dataset: Dataset, eligible: Eligible, most: int) -> frozenset[tuple[str, str]]:
    """The pairs, as (relation, fact), whose answers are also drawn: all, or some by the seed."""
    seed = dataset.selection.seed
    every = (
        (relation.id, pair.fact)
        for relation in dataset.asked_relations()
        if eligible(relation)
        for pair in asked_pairs(dataset, relation.id)
    )
    return frozenset(nsmallest(most, every, key=lambda p: draw_key(seed, f"samples:{p[0]}:{p[1]}")))


def sampled_prompt(
    pair: Pair, templates: tuple[Template, ...], names: tuple[str, ...], seed: int
) -> tuple[str, str]:
    """The one prompt of a pair whose answers are drawn, as (template, name)."""
    prompts = ((template.id, name) for template in templates for name in names)
    return min(prompts, key=lambda p: draw_key(seed, f"samples:{pair.fact}:{p[0]}:{p[1]}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A pair by its number: the subject's names, and the lemmas of every correct name."""

    number: int
    names: tuple[str, ...]
    gold: tuple[str, ...]
    correct: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class World:
    """What was asked about, counted from 0: relations, their templates, their pairs.

    `by_majority[p]`: whether the commonest object of its relation is right for pair p.
    """

    relations: tuple[Relation, ...]
    templates: tuple[Template, ...]
    template_relations: Ints
    template_numbers: dict[tuple[str, str], int]
    pairs: dict[tuple[str, str], Known]
    pair_relations: Ints
    by_majority: Bools

    @property
    def relations_without_templates(self) -> int:
        """How many relations have no template that may be asked."""
        return len(self.relations) - len(np.unique(self.template_relations))


def world(dataset: Dataset, eligible: Eligible, language: str) -> World:
    """Count what is asked about."""
    relations = dataset.asked_relations()
    templates = [(r, t) for r, relation in enumerate(relations) for t in eligible(relation)]
    pairs: dict[tuple[str, str], Known] = {}
    owners: list[int] = []
    controls: list[bool] = []
    for number, relation in enumerate(relations):
        if not eligible(relation):
            continue
        commonest = _commonest(dataset, relation.id, language)
        for known, fact in _known(dataset, relation.id, len(pairs), language):
            pairs[relation.id, fact] = known
            owners.append(number)
            controls.append(any(within(name, commonest) for name in known.gold))
    return World(
        relations=relations,
        templates=tuple(t for _, t in templates),
        template_relations=np.array([r for r, _ in templates], dtype=np.int64),
        template_numbers={(relations[r].id, t.id): i for i, (r, t) in enumerate(templates)},
        pairs=pairs,
        pair_relations=np.array(owners, dtype=np.int64),
        by_majority=np.array(controls, dtype=np.bool_),
    )


def _known(
    dataset: Dataset, relation: str, first: int, language: str
) -> Iterator[tuple[Known, str]]:
    for number, pair in enumerate(asked_pairs(dataset, relation), first):
        names = (normal(name, language) for names in pair.objects for name in names)
        known = Known(
            number=number,
            names=pair.names,
            gold=tuple(name for name in dict.fromkeys(names) if name),
            correct=", ".join(names[0] for names in pair.objects),
        )
        yield known, pair.fact


def _commonest(dataset: Dataset, relation: str, language: str) -> str:
    found = commonest_objects(dataset.split_frame(relation))
    return normal(found[0][0], language) if found else ""
