"""Look a dataset over, line by line, and say everything that is wrong with it.

An error is a line that cannot be read, or an id that stands twice, so that answers would be mixed:
it is not for sealing nor for asking. A warning is for a person to look at. Of relations in several
languages the facts are held against each other. Knows nothing of where faults are shown.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sonde.core.dates import FORM, holds, in_order, is_date
from sonde.core.errors import DataError
from sonde.core.fact_frames import DATES, outside
from sonde.core.facts import DATE_SLOT, Dataset, Relation, Template
from sonde.data.fact_files import fact_files, facts_path, placed_frame
from sonde.data.format import card_of, notes_of, read_relations, read_templates
from sonde.data.lines import Complain, read_lines, read_object
from sonde.prompting.matching import UNSPACED

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


UNSPACED_NAME = re.compile(f"[{UNSPACED}]")


class Fault(NamedTuple):
    """One thing that is wrong, in a sentence; `where`: file and line, if it stands in a file."""

    text: str
    where: str = ""
    error: bool = True

    def __str__(self) -> str:
        return f"{self.where}: {self.text}" if self.where else self.text


def problems(dataset: Dataset) -> Iterator[str]:
    """Each fault of a dataset in a sentence, errors first; nothing for a sound one."""
    return map(str, faults(dataset))


def faults(dataset: Dataset) -> list[Fault]:
    """Each fault of a dataset, errors first."""
    relations = {relation.id: ("", relation) for relation in dataset.relations}
    templates = {r.id: [("", t) for t in r.templates] for r in dataset.relations}
    return _faults(relations, templates, lambda id: (f := dataset.frame(id), [""] * f.height))


def folder_faults(folder: Path) -> list[Fault]:
    """Each fault of a dataset folder; a line that cannot be read hides no other."""
    unread: list[Fault] = []

    def complain(fault: DataError) -> None:
        unread.append(Fault(str(fault)))

    def facts(id: str) -> tuple[DataFrame, list[str]]:
        return placed_frame(folder, id, complain)

    _read_head(folder, complain)
    relations = read_relations(folder, complain)
    if not relations:
        unread.append(Fault("no relation in it", str(folder / "relations.jsonl")))
    templates = read_templates(folder, relations, complain)
    faults = _faults(relations, templates, facts)
    for id in sorted({path.stem for path in fact_files(folder)} - set(relations)):
        facts(id)
        text = "its relation does not stand in relations.jsonl; its facts are not asked"
        unread.append(Fault(text, str(facts_path(folder, id)), error=False))
    return unread + faults


def _read_head(folder: Path, complain: Complain) -> None:
    """Read what is no list of relations, templates or facts."""
    try:
        head = read_object(folder / "dataset.json")
        card_of(head)
        notes_of(head)
    except DataError as unread:
        complain(unread)
    if (folder / "vocabulary.txt").is_file():
        deque(read_lines(folder / "vocabulary.txt", complain), maxlen=0)


def _faults(
    relations: Mapping[str, tuple[str, Relation]],
    templates: Mapping[str, Sequence[tuple[str, Template]]],
    read: Callable[[str], tuple[DataFrame, list[str]]],
) -> list[Fault]:
    """Errors, then doubts, each in the order of relations, whose places are given by their ids.

    `read` gives the facts of a relation and the place of each.
    """
    ids: set[str] = set()
    found: list[Fault] = []
    across: dict[str, frozenset[Fact]] = {}
    for id, (where, relation) in relations.items():
        facts, places = read(id)
        across[id] = facts_across(facts) if relation.same else frozenset()
        wrong = [*outside_answers(relation, facts, places), *bad_dates(facts, places)]
        found += [Fault(text, place) for place, text in wrong]
        for fact, place in zip(facts["fact"], places, strict=True):
            if fact in ids:
                found.append(Fault(f"fact id {fact!r} stands more than once", place))
            ids.add(fact)
        names = set(facts["object_names"].explode().explode().drop_nulls())
        doubts = [(where, text) for text in relation_doubts(relation)]
        doubts += [*_fact_doubts(facts, places), *date_doubts(facts, places)]
        doubts += _template_doubts(templates[id], names)
        doubts += [(at, text) for at, t in templates[id] for text in _slot_doubts(t, facts)]
        if not templates[id] and any(templates.values()):  # with none, it is for in-context probes
            doubts.append((where, f"relation {id} has no template"))
        if not names:
            doubts.append((where, f"relation {id} has no fact"))
        found += _repeated_templates(templates[id])
        found += [Fault(text, place or where, error=False) for place, text in doubts]
    for id, text in language_doubts([relation for _, relation in relations.values()], across):
        found.append(Fault(text, relations[id][0], error=False))
    if relations and not ids:
        found.append(Fault("no relation has a fact"))
    return sorted(found, key=lambda fault: not fault.error)


def _repeated_templates(templates: Sequence[tuple[str, Template]]) -> Iterator[Fault]:
    often = Counter(template.id for _, template in templates)
    for place, template in templates:
        if often[template.id] > 1:
            yield Fault(f"template id {template.id!r} stands more than once", place)


def _fact_doubts(facts: DataFrame, places: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What may be meant, or may be an oversight, each behind its place."""
    from polars import col, element

    right, wrong = (
        col(names).list.eval(element().explode()) for names in ("object_names", "wrong_names")
    )
    judged = facts.select(
        "fact",
        "split",
        first=col("split").first().over("subject_id", col("object_ids").list.first()),
        twice=col("object_ids").list.n_unique() < col("object_ids").list.len(),
        both=right.list.set_intersection(wrong).list.sort().list.first(),
    ).with_row_index()
    moved, both = col("first") != col("split"), col("both").is_not_null()
    for row, fact, split, first, twice, name in judged.filter(moved | both | "twice").iter_rows():
        if first != split:
            yield places[row], f"fact {fact!r} stands in two splits: {first} and {split}"
        if twice:
            yield places[row], f"fact {fact!r} lists an object twice"
        if name is not None:
            yield places[row], f"fact {fact!r} lists as wrong what is correct: {name!r}"


def _template_doubts(
    templates: Sequence[tuple[str, Template]], objects: Collection[str]
) -> Iterator[tuple[str, str]]:
    ids, given_away = {template.id for _, template in templates}, finder(objects)
    texts = Counter(bare(template.text) for _, template in templates)
    for where, template in templates:
        if texts[bare(template.text)] > 1:
            yield where, f"template {template.id!r} repeats another's text: {template.text!r}"
        if (template.group or template.id) not in ids:
            text = f"is grouped under {template.group!r}, no template"
            yield where, f"template {template.id!r} {text}"
        for name in given_away(template.text):
            yield where, f"template {template.id!r} gives an answer away: {name!r} stands in it"


def _slot_doubts(template: Template, facts: DataFrame) -> Iterator[str]:
    """What a template takes from facts that some do not have, or that holds their answer."""
    for slot in template.fact_slots:
        values = _values(facts, slot)
        takes = f"template {template.id!r} takes {slot}"
        if without := [fact for fact, text in values if not text]:
            yield f"{takes}, which {len(without):,} facts, such as {without[0]!r}, do not have"
        told = [
            fact
            for (fact, text), names in zip(values, facts["object_names"], strict=True)
            if any(stands_in(name, text) for of in names for name in of)
        ]
        if told:
            yield f"{takes}, in which the answer of {len(told):,} facts stands, such as {told[0]!r}"


def _values(facts: DataFrame, slot: str) -> list[tuple[str, str]]:
    """Each fact with what it has for a slot; empty where it has nothing."""
    if slot == DATE_SLOT:
        return list(facts.select("fact", "date").iter_rows())
    given = facts.select("fact", "details").iter_rows()
    name = slot[9:-1]
    return [(f, next((d["value"] for d in own if d["name"] == name), "")) for f, own in given]


def stands_in(name: str, text: str) -> bool:
    """Whether a name stands in a text as words; capitals matter for acronyms (WHO is not who).

    In a script without spaces two characters are enough, wherever they stand.
    """
    if UNSPACED_NAME.search(name):
        return len(name) > 1 and name in text
    if len(name) < 3:
        return False
    if name.isupper():
        return f" {name} " in f" {re.sub(r'[^A-Za-z0-9]+', ' ', text)} "
    return f" {bare(name)} " in f" {bare(text)} "


def finder(names: Collection[str]) -> Callable[[str], list[str]]:
    """What finds those of many names that stand in a text, as `stands_in` says, but quickly.

    >>> finder(["New York", "WHO", "Oslo"])("Who lives in New York?")
    ['New York']
    """
    unspaced = {n for n in names if UNSPACED_NAME.search(n)}
    acronyms = {n for n in names if n.isupper()} - unspaced
    others = defaultdict[str, list[str]](list)
    for name in set(names) - acronyms - unspaced:
        others[bare(name)].append(name)
    longest = max((name.count(" ") + 1 for name in (*acronyms, *others)), default=0)

    def find(text: str) -> list[str]:
        as_written = re.sub(r"[^A-Za-z0-9]+", " ", text)
        found = acronyms.intersection(runs(as_written, longest))
        found.update(*(others.get(run, ()) for run in runs(bare(text), longest)))
        anywhere = (name for name in unspaced if len(name) > 1 and name in text)
        return sorted((*(name for name in found if len(name) > 2), *anywhere))

    return find


def runs(text: str, longest: int) -> Iterator[str]:
    """Words that follow each other in a text, so many at most."""
    words = text.split()
    for start in range(len(words)):
        for stop in range(start + 1, min(start + longest, len(words)) + 1):
            yield " ".join(words[start:stop])


def bare(text: str) -> str:
    """Lower-case words alone, without punctuation; the slots stay recognisable."""
    return re.sub(r"\W+", " ", text.casefold()).strip()
