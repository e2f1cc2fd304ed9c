"""A dataset small enough to read: two relations, some facts for examples, some to ask about."""

from __future__ import annotations

from sonde.core.facts import Card, Dataset, Entity, Fact, Relation, Source, Style, Template

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


def template(id: str, text: str, style: Style = "statement", source: Source = "manual") -> Template:
    return Template(id=id, text=text, style=style, source=source, group=id)


RELATIONS = (
    Relation(
        id="P36",
        label="capital",
        kind="1-1",
        templates=(
            template("P36-1", "The capital of [X] is [Y]."),
            template("P36-2", "[Y] is the capital of [X]."),
            template("P36-3", "What is the capital of [X]? [Y].", "question"),
            template("P36-4", "[X] has [Y] as its capital.", source="paraphrase"),
        ),
    ),
    Relation(
        id="P1303",
        label="instrument",
        kind="N-M",
        templates=(
            template("P1303-1", "[X] plays the [Y]."),
            template("P1303-2", "Which instrument does [X] play? [Y].", "question"),
            template("P1303-3", "What does [X] play? [Y].", "question"),
        ),
    ),
)


def fact(relation: str, subject: str, *objects: str, split: str = "test") -> Fact:
    return Fact(
        id=f"{relation}-{subject}",
        relation=relation,
        subject=Entity(id=subject, names=(subject, f"old {subject}")),
        objects=tuple(Entity(id=o, names=(o,)) for o in objects),
        split=split,
    )


def facts(training: int = 6) -> list[Fact]:
    """The last facts of each relation are asked about."""
    return [
        fact(relation, *pair, split="train" if number < training else "test")
        for relation, pairs in (("P36", CAPITALS), ("P1303", MUSIC))
        for number, pair in enumerate(pairs)
    ]


def dataset(given: list[Fact] | None = None, *relations: Relation) -> Dataset:
    held = facts() if given is None else given
    return Dataset(
        card=Card(name="tiny"),
        relations=relations or RELATIONS,
        read=lambda id: [f for f in held if f.relation == id],
        fingerprint="0",
    )
