"""LAMA-UHN: facts whose answer can be guessed from the subject's name.

Two filters: the object's name stands in the subject's; or, for facts about persons, a part of the
name alone already suggests the answer to a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sonde.core.facts import Fact, Relation, Template
from sonde.core.prompts import Block, Want
from sonde.prompting.sentences import in_parts, sentences

if TYPE_CHECKING:
    from polars import DataFrame

PERSON_ANSWERS = {
    "P19": "city",
    "P20": "city",
    "P27": "country",
    "P103": "language",
    "P1412": "language",
}
"""Relations of persons, with the kind of thing their objects are."""

GUESSABLE_RANK = 3

TEMPLATE = "uhn-"
"""How the templates that ask about a part of a name are called."""


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
    return Template(id=TEMPLATE + kind, text=text, group=TEMPLATE + kind)


def name_prompts(relation: Relation, facts: DataFrame, want: Want) -> Iterator[Block]:
    """What is asked about each part of persons' names; nothing where subjects are no persons.

    `facts` has the columns `fact` and `subject`.
    """
    import polars

    if relation.id not in PERSON_ANSWERS:
        return
    parts = [list(dict.fromkeys(name.split())) for name in facts["subject"].to_list()]
    names = polars.Series(parts, dtype=polars.List(polars.String))
    subjects = facts.select("fact", names=names)
    for part in in_parts(subjects, 1):
        block = sentences(relation, [name_template(relation.id)], part, want)
        yield replace(block, cloze=False)


def is_name_template(id: str) -> bool:
    """Whether a template asks what a part of a name suggests."""
    return id.startswith(TEMPLATE)


def suggests(rank: Any) -> Any:
    """Whether a part of a name brings the object, by its rank among all answers, to the top.

    Of one rank, or of an array of ranks; 0 is that of an object that cannot be answered.
    """
    return (rank > 0) & (rank <= GUESSABLE_RANK)
