"""LAMA-UHN: facts whose answer can be guessed from the subject's name.

Two filters: the object's name stands in the subject's; or, for facts about persons, a part of the
name alone already suggests the answer to a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sonde.core.facts import Fact, Template
from sonde.core.prompts import Key, Prompt, Want

PERSON_ANSWERS = {
    "P19": "city",
    "P20": "city",
    "P27": "country",
    "P103": "language",
    "P1412": "language",
}
"""Relations of persons, with the kind of thing their objects are."""

GUESSABLE_RANK = 3

CONTEXT = "uhn"
"""The context of prompts that ask about a part of a name."""


def object_in_subject(fact: Fact) -> bool:
    """Whether a usual name of an accepted object stands in the subject's, ignoring case."""
    return stand_in((entity.name for entity in fact.objects), fact.subject.name)


def stand_in(objects: Iterable[str], subject: str) -> bool:
    """Whether one of some names stands in another, ignoring case.

    >>> stand_in(["Lima"], "Lima Province"), stand_in(["Lima"], "Peru")
    (True, False)
    """
    within = subject.casefold()
    return any(name.casefold() in within for name in objects)


def name_template(relation: str) -> Template:
    """The sentence that asks what a part of a name suggests."""
    kind = PERSON_ANSWERS[relation]
    text = f"[X] is a common name in the following {kind}: [Y]"
    return Template(id=f"uhn-{kind}", text=text, group=f"uhn-{kind}")


def name_prompts(fact: Fact, want: Want) -> Iterator[Prompt]:
    """What is asked about each part of a person's name; nothing where the subject is no person."""
    if fact.relation not in PERSON_ANSWERS:
        return
    template = name_template(fact.relation)
    for part in dict.fromkeys(fact.subject.name.split()):
        prefix, suffix = template.fill(part)
        key = Key(
            fact=fact.id,
            relation=fact.relation,
            template=template.id,
            subject=part,
            context=CONTEXT,
        )
        yield Prompt(key=key, prefix=prefix, suffix=suffix, want=want)


def suggests(rank: int | None) -> bool:
    """Whether a part of a name brings the object, by its rank among all answers, to the top."""
    return rank is not None and rank <= GUESSABLE_RANK
