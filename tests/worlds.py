"""Small worlds for tests: entities, facts, relations and datasets out of a few words.

`world()` is the one that most tests ask about, `numbered()` the plainest one. Folders of datasets
are written by `tests.written`, models by `tests.tiny`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sonde.core.facts import Card, Dataset, Entity, Fact, Kind, Relation, Selection, Template
from sonde.core.fingerprints import fingerprint

Thing = str | Entity
"""An entity, or the only name it has, which is then its id too."""


def entity(*names: str, id: str = "") -> Entity:
    """A thing with these names, the usual one first."""
    return Entity(id=id or names[0], names=names)


def fact(
    relation: str,
    subject: Thing,
    *objects: Thing,
    id: str = "",
    split: str = "test",
    wrong: Iterable[Thing] = (),
    tags: tuple[str, ...] = (),
) -> Fact:
    """A fact; its id is made of the relation and the subject's name, such as P36-Peru."""
    about = _entity(subject)
    return Fact(
        id=id or f"{relation}-{about.name}",
        relation=relation,
        subject=about,
        objects=tuple(map(_entity, objects)),
        split=split,
        wrong=tuple(map(_entity, wrong)),
        tags=tags,
    )


def _entity(thing: Thing) -> Entity:
    return entity(thing) if isinstance(thing, str) else thing


def template(id: str, text: str, **more: Any) -> Template:
    """A template that heads a group of its own, unless it is told otherwise."""
    return Template(**{"id": id, "text": text, "group": id} | more)


def question(id: str, text: str) -> Template:
    """A question, from its words without the place of the answer."""
    return template(id, f"{text} [Y].", style="question")


def relation(
    id: str, *templates: str | Template, label: str | None = None, kind: Kind | None = "N-1"
) -> Relation:
    """A relation with templates, or with their texts: these get the ids P36-1, P36-2, …"""
    return Relation(
        id=id,
        label=f"label of {id}" if label is None else label,
        kind=kind,
        templates=tuple(
            template(f"{id}-{number}", given) if isinstance(given, str) else given
            for number, given in enumerate(templates, 1)
        ),
    )


def dataset_of(
    facts: Iterable[Fact], *relations: Relation, name: str = "world", **selection: Any
) -> Dataset:
    """Facts held in memory; without relations, those of the facts, with one template each."""
    held = tuple(facts)
    ids = dict.fromkeys(fact.relation for fact in held)
    whole = Dataset(
        card=Card(name=name),
        relations=relations or tuple(relation(id, f"{id} of [X] is [Y].") for id in ids),
        read=lambda id: [fact for fact in held if fact.relation == id],
        fingerprint=fingerprint(fact.id for fact in held),
    )
    return whole.select(Selection(**selection)) if selection else whole


CAPITALS = (
    ("Peru", "Lima"),
    ("Chile", "Santiago"),
    ("Norway", "Oslo"),
    ("Kenya", "Nairobi"),
    ("Japan", "Tokyo"),
    ("France", "Paris"),
    ("Austria", "Vienna"),
    ("Egypt", "Cairo"),
)
MUSIC = (
    ("Ann", "guitar"),
    ("Bob", "piano"),
    ("Cy", "drums"),
    ("Dee", "guitar"),
    ("Eve", "flute"),
    ("Flo", "guitar"),
    ("Gus", "violin"),
    ("Hal", "guitar"),
)
CAPITAL = relation(
    "P36",
    "The capital of [X] is [Y].",
    "[Y] is the capital of [X].",
    question("P36-3", "What is the capital of [X]?"),
    template("P36-4", "[X] has [Y] as its capital.", source="paraphrase"),
    label="capital",
    kind="1-1",
)
INSTRUMENT = relation(
    "P1303",
    "[X] plays the [Y].",
    question("P1303-2", "Which instrument does [X] play?"),
    question("P1303-3", "What does [X] play?"),
    label="instrument",
    kind="N-M",
)
RELATIONS = (CAPITAL, INSTRUMENT)


def facts(training: int = 6) -> list[Fact]:
    """Capitals and instruments; the last of each are asked about. Peru is also called old Peru."""
    return [
        fact(id, entity(subject, f"old {subject}"), object, split=split)
        for id, pairs in (("P36", CAPITALS), ("P1303", MUSIC))
        for number, (subject, object) in enumerate(pairs)
        for split in ["train" if number < training else "test"]
    ]


def world(given: Iterable[Fact] | None = None, *relations: Relation, **selection: Any) -> Dataset:
    """Six facts to show and two to ask about in each of two relations, or other facts of them."""
    held = facts() if given is None else given
    return dataset_of(held, *(relations or RELATIONS), **selection)


def numbered_fact(relation: str, number: int, split: str = "test") -> Fact:
    """The fact of that number: subject 3 has object 3."""
    return fact(
        relation,
        entity(f"subject {number}", id=f"s{number}"),
        entity(f"object {number}", id=f"o{number}"),
        id=f"{relation}:{number}",
        split=split,
    )


def numbered(facts: int = 6) -> Dataset:
    """Two relations, P1 and P2, with so many facts each."""
    return dataset_of(numbered_fact(id, number) for id in ("P1", "P2") for number in range(facts))
