"""LAMA-UHN: facts whose answer can be guessed from the subject's name.

Two filters: the object's name stands in the subject's; or, for facts about persons, a part of the
name alone already suggests the answer to a model.
"""

from __future__ import annotations

from collections.abc import Iterable

from sonde.core.facts import Fact, Template

PERSON_ANSWERS = {
    "P19": "city",
    "P20": "city",
    "P27": "country",
    "P103": "language",
    "P1412": "language",
}
"""Relations of persons, with the kind of thing their objects are."""

GUESSABLE_RANK = 3


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
