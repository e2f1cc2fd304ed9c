"""One relation of a dataset looked over: its facts, what they give away, and what is there twice.

Whatever can be said of a fact is a column with an entry for each fact that is asked about. Knows
nothing of reports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import numpy as np

from sonde.cards.alike import LEAST, Near, likest, near
from sonde.cards.guesses import Guesses, Spread, guesses, spread
from sonde.core.facts import ANSWER_SLOT, SUBJECT_SLOT, Dataset, Fact, Relation, slot_values
from sonde.core.progress import told
from sonde.core.train_test_overlap import DEV, TRAIN, leaking, name_pairs
from sonde.data.check import finder
from sonde.evaluation.stats import Floats


class Twin(NamedTuple):
    """Two facts, subjects or templates that are alike, as they are listed."""

    id: str
    text: str
    split: str
    other: str
    other_text: str
    other_split: str
    alike: float


class Shared(NamedTuple):
    """How many facts of a split have a subject, and subject and object, that another split has."""

    subjects: int
    facts: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Described:
    """A relation; columns have an entry for each fact that is asked about.

    `seen`: the fact stands among those to train on too, by its names; `subject_seen`: its subject
    does. `doubled`: another fact is alike. `prompted`: the answer stands in the fact's own prompt.
    nan where there was nothing to look at. `leaks` are training facts that are asked about,
    `given_away` templates with an answer that stands in them.
    """

    relation: Relation
    subjects: tuple[str, ...]
    splits: Counter[str]
    tags: Counter[str]
    numbers: Mapping[str, Sequence[float]]
    guesses: Guesses
    spread: Spread
    seen: Floats
    subject_seen: Floats
    doubled: Floats
    prompted: Floats
    leaks: tuple[Fact, ...]
    shared: Mapping[tuple[str, str], Shared]
    given_away: tuple[tuple[str, str, str], ...]
    twin_facts: tuple[Twin, ...]
    twin_subjects: tuple[Twin, ...]
    twin_templates: tuple[Twin, ...]


def described(dataset: Dataset, seed: int = 0, least: float = LEAST) -> Iterator[Described]:
    """Every relation of a dataset; texts are alike from `least` on."""
    for relation in told(dataset.relations, f"reading {dataset.name}", len(dataset.relations)):
        yield _described(dataset, relation, seed, least)


def _described(dataset: Dataset, relation: Relation, seed: int, least: float) -> Described:
    facts = list(dataset.facts(relation.id))
    asked = [fact for fact in facts if fact.split == dataset.selection.split]
    held, alike = leaking(facts), near((fact.subject.name for fact in facts), least)
    partners = _twin_facts(facts, alike)
    trained = [fact for fact in facts if fact.split == TRAIN and fact.id not in held]
    seen, subject_seen = _seen(facts, asked)
    return Described(
        relation=relation,
        subjects=tuple(fact.subject.id for fact in asked),
        splits=Counter(fact.split for fact in facts),
        tags=Counter(tag for fact in facts for tag in fact.tags),
        numbers=_numbers(asked),
        guesses=guesses(asked, trained, dataset.object_names(relation.id), seed),
        spread=spread(asked, facts, dataset.object_names(relation.id)),
        seen=seen,
        subject_seen=subject_seen,
        doubled=np.array([float(fact.id in partners) for fact in asked]),
        prompted=_prompted(relation, asked),
        leaks=tuple(fact for fact in facts if fact.id in held),
        shared=_shared(facts),
        given_away=tuple(_given_away(relation, facts)),
        twin_facts=tuple(partners.values()),
        twin_subjects=tuple(_twin_subjects(facts, alike)),
        twin_templates=tuple(_twin_templates(relation, least)),
    )


def _seen(facts: Sequence[Fact], asked: Sequence[Fact]) -> tuple[Floats, Floats]:
    """Which facts, and which subjects, stand among those to train on; nan where there are none."""
    trained = [fact for fact in facts if fact.split in (TRAIN, DEV)]
    if not trained:
        return np.full(len(asked), np.nan), np.full(len(asked), np.nan)
    pairs = {pair for fact in trained for pair in name_pairs(fact)}
    names = {name for fact in trained for name in fact.subject.names}
    return (
        np.array([float(not pairs.isdisjoint(name_pairs(fact))) for fact in asked]),
        np.array([float(not names.isdisjoint(fact.subject.names)) for fact in asked]),
    )


def _prompted(relation: Relation, asked: Sequence[Fact]) -> Floats:
    """Whether the answer stands in what templates take from a fact; nan where they take nothing."""
    slots = {slot for template in relation.templates for slot in template.fact_slots}
    if not slots:
        return np.full(len(asked), np.nan)
    told = np.zeros(len(asked))
    for place, fact in enumerate(asked):
        find = finder({name for entity in fact.objects for name in entity.names})
        texts = (text for slot, text in slot_values(fact).items() if slot in slots)
        told[place] = any(map(find, texts))
    return told


def _shared(facts: Sequence[Fact]) -> dict[tuple[str, str], Shared]:
    """What of each split stands in each other one, by any of the names."""
    splits: dict[str, list[set[tuple[str, str]]]] = {}
    for fact in facts:
        splits.setdefault(fact.split, []).append(set(name_pairs(fact)))
    held = {split: set().union(*own) for split, own in splits.items()}
    names = {split: {subject for subject, _ in own} for split, own in held.items()}
    return {
        (a, b): Shared(
            sum(not names[b].isdisjoint(subject for subject, _ in own) for own in splits[a]),
            sum(not held[b].isdisjoint(own) for own in splits[a]),
        )
        for a, b in permutations(sorted(splits), 2)
    }


def _numbers(asked: Sequence[Fact]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for fact in asked:
        for name, value in fact.numbers.items():
            found.setdefault(name, []).append(value)
    return found


def _given_away(relation: Relation, facts: Sequence[Fact]) -> Iterator[tuple[str, str, str]]:
    """Templates in which an answer stands: their id, their text, the answer."""
    find = finder({name for fact in facts for entity in fact.objects for name in entity.names})
    for template in relation.templates:
        for name in find(template.text):
            yield template.id, template.text, name


def _apart(a: Fact, b: Fact) -> bool:
    """Whether two facts are of different subjects. The same name in another split is the same
    subject: those to train on may have no identifiers."""
    same = a.subject.name == b.subject.name and a.split != b.split
    return a.subject.id != b.subject.id and not same


def _twin_facts(facts: Sequence[Fact], alike: Near) -> dict[str, Twin]:
    """Facts that share an object with one whose subject's name is alike, by their ids."""
    each = [(fact, entity.name) for fact in facts for entity in fact.objects]
    found = likest(
        [name for _, name in each],
        [fact.subject.name for fact, _ in each],
        lambda a, b: _apart(each[a][0], each[b][0]),
        alike,
    )
    twins: dict[str, Twin] = {}
    for place, (other, share) in found.items():
        fact, name = each[place]
        twins.setdefault(fact.id, _twin(fact, each[other][0], share, f": {name}"))
    return twins


def _twin_subjects(facts: Sequence[Fact], alike: Near) -> Iterator[Twin]:
    """Subjects whose names are alike, whatever the objects."""
    each = list({fact.subject.id: fact for fact in reversed(facts)}.values())[::-1]
    names = [fact.subject.name for fact in each]
    found = likest([""] * len(each), names, lambda a, b: _apart(each[a], each[b]), alike)
    for place, (other, share) in found.items():
        yield _twin(each[place], each[other], share)


def _twin(fact: Fact, other: Fact, alike: float, more: str = "") -> Twin:
    return Twin(
        *(fact.id, f"{fact.subject.name}{more}", fact.split),
        *(other.id, f"{other.subject.name}{more}", other.split),
        alike,
    )


def _twin_templates(relation: Relation, least: float) -> Iterator[Twin]:
    """Templates that are alike and have subject and answer in the same order."""
    templates = relation.templates
    texts = [template.text for template in templates]
    orders = [str(text.find(SUBJECT_SLOT) < text.find(ANSWER_SLOT)) for text in texts]
    found = likest(orders, texts, lambda a, b: True, near(texts, least))
    for place, (other, share) in found.items():
        own, its = templates[place], templates[other]
        yield Twin(own.id, own.text, "", its.id, its.text, "", share)
