"""Which probe uses which field of a dataset: found by taking the field away and asking again.

A probe uses a field if its prompts change without it, or else what it reads from the same answers.
What it has no prompts for without the field, it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial, reduce
from typing import Any

import sonde
from sonde.analysis.readings import readings
from sonde.core.abilities import ABILITIES
from sonde.core.columns import Answers
from sonde.core.components import settings_of
from sonde.core.errors import AbilityError, SondeError
from sonde.core.facts import Dataset, Entity, Fact, Relation, Template
from sonde.core.prompts import Block, blocks_of
from sonde.core.reports import Report
from sonde.models.scripted import Scripted
from sonde.probes import PROBES
from sonde.testing import answer_all

ASKED, TRAINED = 4, 12

FEW_DRAWS = 50
"""Of a bootstrap, where a probe lets one choose: intervals are not looked at."""

FEW = 3
"""So many exceptions are named instead of what they are exceptions of."""

DISTRACTOR, SECOND = Entity.named("Atlantis"), Entity.named("Eldorado")

OfRelation = Callable[[Relation], Relation]
OfTemplate = Callable[[Template], Template]
OfFact = Callable[[Fact], Fact]

RELATIONS: Mapping[str, OfRelation] = {
    "label": lambda r: replace(r, label=r.id),
    "kind": lambda r: replace(r, kind=None),
    "tags": lambda r: replace(r, tags=()),
    "answers": lambda r: replace(r, answers=()),
    "language": lambda r: replace(r, language=""),
    "same": lambda r: replace(r, same=""),
}
TEMPLATES: Mapping[str, OfTemplate] = {
    "source": lambda t: replace(t, source="manual"),
    "style": lambda t: replace(t, style="statement"),
    "group": lambda t: replace(t, group=t.id),
    "weight": lambda t: replace(t, weight=None),
    "origin": lambda t: replace(t, origin=""),
}
FACTS: Mapping[str, OfFact] = {
    "further names of `subject`": lambda f: replace(f, subject=_usual(f.subject)),
    "further names of `objects`": lambda f: replace(f, objects=tuple(map(_usual, f.objects))),
    "several `objects`": lambda f: replace(f, objects=f.objects[:1]),
    "split": lambda f: replace(f, split="test"),
    "tags": lambda f: replace(f, tags=()),
    "wrong": lambda f: replace(f, wrong=()),
    "details": lambda f: replace(f, details={}),
    "numbers": lambda f: replace(f, numbers={}),
    "date": lambda f: replace(f, date=""),
    "valid": lambda f: replace(f, valid_from="", valid_to=""),
}
"""The dataset without each field, by the field."""


def _usual(entity: Entity) -> Entity:
    return replace(entity, names=entity.names[:1])


@cache
def full() -> Dataset:
    """Some facts of the atlas, with every field of the form in use."""
    atlas = sonde.dataset("atlas", relations=("P36",))
    facts = {r.id: list(_facts(atlas, r)) for r in atlas.asked_relations()}
    relations = (_relation(r, facts[r.id]) for r in atlas.asked_relations())
    words = {n for own in facts.values() for fact in own for o in fact.objects for n in o.names}
    return replace(
        atlas,
        relations=tuple(relations),
        read=facts.__getitem__,
        selection=replace(atlas.selection, relations=()),
        vocabulary=tuple(sorted(words | {DISTRACTOR.name})),
    )


def _facts(atlas: Dataset, relation: Relation) -> Iterator[Fact]:
    """Some to train on and some to ask about, each with everything that a fact can have."""
    facts = list(atlas.facts(relation.id))
    objects = list({o.name: o for fact in facts for o in fact.objects}.values())
    for split, most in (("train", TRAINED), ("test", ASKED)):
        for n, fact in enumerate([f for f in facts if f.split == split][:most]):
            right = {o.name for o in fact.objects}
            wrong = tuple(o for o in objects if o.name not in right)[n : n + 5]
            yield replace(
                fact,
                subject=_named(fact.subject),
                objects=(_named(fact.objects[0]), *([SECOND] if n % 2 else [])),
                tags=("easy",),
                wrong=wrong if n % 2 else (),
                details={"note": f"Note {n}."},
                numbers={"popularity": float(n)},
                date="2015",
                valid_from="2010",
                valid_to="2020",
            )


def _named(entity: Entity) -> Entity:
    return replace(entity, names=(entity.names[0], entity.names[0][::-1].title()))


def _relation(relation: Relation, facts: list[Fact]) -> Relation:
    questions = [t for t in relation.templates if t.style == "question"]
    first, *rest = [t for t in relation.templates if t.style == "statement"][:5] + questions[:3]
    space = {o.id: o for fact in facts for o in (*fact.objects, *fact.wrong)}
    more = (
        Template(id="dated", text="In [T], [X] belongs to [Y].", source="mined"),
        Template(id="own", text="[details.note] [X] belongs to [Y].", source="mined"),
    )
    return replace(
        relation,
        templates=(replace(first, weight=0.5, origin="lama"), *rest, *more),
        tags=("places",),
        answers=(*space.values(), DISTRACTOR),
        language="fr",  # English is what is taken for granted
        same="same",
    )


Without = Callable[[Dataset], Dataset]


def fields() -> dict[tuple[str, str], Without]:
    """What takes a field away from a dataset, by the file and the field."""
    found: dict[tuple[str, str], Without] = {}
    for name, of_relation in RELATIONS.items():
        found["relations.jsonl", name] = partial(_changed, change=of_relation)
    for name, of_template in TEMPLATES.items():
        found["templates.jsonl", name] = partial(_changed, change=_worded(of_template))
    for name, of_fact in FACTS.items():
        found["facts/ID.jsonl", name] = partial(_read_otherwise, change=of_fact)
    found["vocabulary.txt", ""] = lambda dataset: replace(dataset, vocabulary=None)
    return found


def _plainly(relation: Relation) -> Relation:
    """Answers without further names, which are those of objects."""
    return replace(relation, answers=tuple(map(_usual, relation.answers)))


def _changed(whole: Dataset, change: OfRelation) -> Dataset:
    return replace(whole, relations=tuple(map(change, whole.relations)))


def _worded(change: OfTemplate) -> OfRelation:
    return lambda r: replace(r, templates=tuple(map(change, r.templates)))


def _read_otherwise(whole: Dataset, change: OfFact) -> Dataset:
    usual = change is FACTS["further names of `objects`"]
    relations = map(_plainly, whole.relations) if usual else whole.relations
    read = _reader(whole, change)
    return replace(whole, relations=tuple(relations), read=read)


def _reader(whole: Dataset, change: OfFact) -> Callable[[str], list[Fact]]:
    return cache(lambda relation: [change(fact) for fact in whole.facts(relation)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A probe with what it asks and reads where no field is missing."""

    probe: Any
    asked: list[Block]
    answers: list[Answers]
    report: Report


@cache
def uses() -> dict[tuple[str, str], dict[str, list[str]]]:
    """For each field, the probes that `ask` by it, those that `read` it, and what reads it
    beside any probe."""
    whole = full()
    said = {f.id: f.objects[0].names[1] for r in whole.relations for f in whole.facts(r.id)}
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    bases = {name: list(_bases(name, whole, said)) for name in PROBES}
    for field, without in fields().items():
        less = without(whole)
        cells: dict[str, list[str]] = {"asks": [], "reads": [], "readings": _readings(field)}
        for name, several in bases.items():
            kind = _how(several, less)
            if kind:
                cells[kind].append(name)
        found[field] = cells
    return found


@cache
def _bare() -> Dataset:
    """The dataset without any field."""
    return reduce(lambda data, without: without(data), fields().values(), _in_two_languages(full()))


def _readings(field: tuple[str, str]) -> list[str]:
    """What no longer applies without the field, or applies to what has this field alone."""
    whole, bare = _in_two_languages(full()), _bare()
    less = fields()[field](whole)
    others = (without for other, without in fields().items() if other != field)
    alone = reduce(lambda data, without: without(data), others, whole)
    return [
        name
        for name, reading in readings().items()
        if reading.applies(whole) > reading.applies(less)
        or reading.applies(alone) > reading.applies(bare)
    ]


def _in_two_languages(dataset: Dataset) -> Dataset:
    """Every relation twice, under an id for each language."""

    def read(id: str) -> list[Fact]:
        return [replace(fact, relation=id) for fact in dataset.facts(id.partition(".")[0])]

    relations = (
        replace(r, id=f"{r.id}.{code}", language=code)
        for r in dataset.relations
        for code in ("en", "fr")
    )
    return replace(dataset, relations=tuple(relations), read=read)


def table() -> Iterator[str]:
    """The lines of the table for the documentation."""
    yield "| file | field | changes what is asked by | changes what is reported by | reading |"
    yield "| --- | --- | --- | --- | --- |"
    for (file, field), cells in uses().items():
        named = field if "`" in field else f"`{field}`" if field else ""
        probes, readings = (_listed(cells[kind]) for kind in ("asks", "reads")), cells["readings"]
        yield f"| {' | '.join([f'`{file}`', named, *probes, ', '.join(readings) or '–'])} |"


def _listed(names: list[str]) -> str:
    """Probes in a cell: all, all but some, or some."""
    others = [name for name in PROBES if name not in names]
    if len(others) <= FEW:
        but = f" but {', '.join(f'`{name}`' for name in others)}" if others else ""
        return f"every probe{but}"
    return ", ".join(f"`{name}`" for name in names) or "–"


def _bases(name: str, whole: Dataset, said: dict[str, str]) -> Iterator[Base]:
    """The probe for each ability that is enough for it."""
    for probe in _suited(name):
        asked = list(blocks_of(probe.ask(whole)))
        answers = answer_all(Scripted(answers=said), asked)
        report = probe.read(whole, answers)
        yield Base(probe=probe, asked=asked, answers=answers, report=report)


def _suited(name: str) -> list[Any]:
    """The probe for each ability that is enough by itself; where none is, for all together."""
    draws = "draws" in {setting.name for setting in settings_of(PROBES.find(name))}
    probe = sonde.probe(name, **({"draws": FEW_DRAWS} if draws else {}))
    found: list[Any] = []
    for ability in ABILITIES:
        with suppress(AbilityError):
            found.append(probe.suited(frozenset({ability})))
    return found or [probe.suited(frozenset(ABILITIES))]


def _how(bases: list[Base], less: Dataset) -> str:
    """Whether a probe asks otherwise without a field, or reads otherwise, or neither."""
    try:
        if not all(_same(base.asked, list(blocks_of(base.probe.ask(less)))) for base in bases):
            return "asks"
        read = [base.probe.read(less, base.answers) for base in bases]
    except SondeError:
        return "asks"
    return "" if all(map(_tell_the_same, read, (base.report for base in bases))) else "reads"


def _same(one: list[Block], two: list[Block]) -> bool:
    return len(one) == len(two) and all(
        a.want == b.want and a.frame.equals(b.frame) for a, b in zip(one, two, strict=True)
    )


def _tell_the_same(one: Report, two: Report) -> bool:
    return _told(one) == _told(two)


def _told(report: Report) -> tuple[Any, ...]:
    return report.estimates, report.counts, [table.rows for table in report.tables]
