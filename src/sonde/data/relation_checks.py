"""What may be wrong with relations: their answers, dates, tags and languages.

Of relations in several languages the facts are held against each other. Knows nothing of files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from sonde.core.dates import FORM, holds, in_order, is_date
from sonde.core.fact_frames import DATES, outside
from sonde.core.facts import Relation

if TYPE_CHECKING:
    from polars import DataFrame

CODES = frozenset(
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv "
    "cy da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr "
    "ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw "
    "ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv "
    "ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq "
    "sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh "
    "yi yo za zh zu".split()
)
"""ISO 639-1."""

Fact = tuple[str, str, str]
"""What makes facts of two languages one: subject, split and date."""


def outside_answers(
    relation: Relation, facts: DataFrame, places: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Facts with an object that may not be answered, or not so, each behind its place."""
    if not relation.answers:
        return
    space = {entity.id: entity.names for entity in relation.answers}
    for row, text in outside(facts, space, relation.id):
        yield places[row], text


def bad_dates(facts: DataFrame, places: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Facts with a date that is none, or that end before they begin, each behind its place."""
    rows = zip(facts["fact"], *(facts[name] for name in DATES), strict=True)
    for place, (fact, *dates) in zip(places, rows, strict=True):
        if wrong := [date for date in dates if date and not is_date(date)]:
            yield place, f"fact {fact!r} has a date that is none, {wrong[0]!r}; write {FORM}"
        elif not in_order(*dates[1:]):
            yield place, f"fact {fact!r} is right until {dates[2]}, before it is from {dates[1]} on"


def date_doubts(facts: DataFrame, places: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Facts that are asked about at a time when they are not right, each behind its place."""
    rows = zip(facts["fact"], *(facts[name] for name in DATES), strict=True)
    for place, (fact, date, first, last) in zip(places, rows, strict=True):
        if date and not holds(date, first, last):
            since, until = f"from {first} " if first else "", f"to {last} alone" if last else "on"
            yield place, f"fact {fact!r} is asked about {date}, but right {since}{until}"


def relation_doubts(relation: Relation) -> Iterator[str]:
    """What a relation says of itself that may be an oversight."""
    if twice := [tag for tag, count in Counter(relation.tags).items() if count > 1]:
        yield f"relation {relation.id!r} lists tag {twice[0]!r} twice"
    names = Counter(entity.name for entity in relation.answers)
    for name in (name for name, count in names.items() if count > 1):
        yield f"relation {relation.id!r} has several answers called {name!r}, alike as options"
    code = relation.language
    if code and not is_language(code):
        yield f"relation {relation.id!r} has language {code!r}, no ISO 639-1 code such as 'en'"
    if relation.same and not code:
        yield f"relation {relation.id!r} is {relation.same!r} in a language that it does not name"


def is_language(code: str) -> bool:
    """Whether it is a code of ISO 639-1, or one of three letters, with a script or region or not.

    >>> [is_language(code) for code in ("en", "zh-Hant", "ceb", "english", "EN", "xx")]
    [True, True, True, False, False, False]
    """
    first = code.partition("-")[0]
    return first in CODES or (len(first) == 3 and first.isalpha() and first.islower())


def language_doubts(
    relations: Sequence[Relation], facts: Mapping[str, frozenset[Fact]]
) -> Iterator[tuple[str, str]]:
    """What relations that are the same in several languages do not share, by the relation's id."""
    groups: dict[str, list[Relation]] = {}
    for relation in relations:
        if relation.same:
            groups.setdefault(relation.same, []).append(relation)
    for same, group in groups.items():
        if len(group) == 1:
            yield group[0].id, f"relation {group[0].id!r} is {same!r} in no other language"
        for one, two in combinations(group, 2):
            if one.language == two.language:
                both = f"relations {one.id!r} and {two.id!r} are both {same!r}"
                yield two.id, f"{both} in language {one.language!r}"
        every = frozenset().union(*(facts[r.id] for r in group))
        for relation in group:
            if missing := every - facts[relation.id]:
                subject = min(missing)[0]
                count = f"{len(missing):,} facts of {same!r} that another language has"
                text = f"relation {relation.id!r} lacks {count}, such as of subject {subject!r}"
                yield relation.id, text


def facts_across(facts: DataFrame) -> frozenset[Fact]:
    """What the facts of a relation are in every language."""
    return frozenset(facts.select("subject_id", "split", "date").iter_rows())
