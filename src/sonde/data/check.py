"""Look a dataset over, line by line, and say everything that is wrong with it.

An error is a line that cannot be read, or an id that stands twice, so that answers would be mixed:
it is not for sealing nor for asking. A warning is for a person to look at. Knows nothing of where
faults are shown.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Entity, Fact, Template
from sonde.data.format import (
    card_of,
    facts_path,
    notes_of,
    placed_facts,
    read_relations,
    read_templates,
)
from sonde.data.lines import Complain, read_lines, read_object

T = TypeVar("T")


class Fault(NamedTuple):
    """One thing that is wrong, in a sentence; `where`: file and line, if it stands in a file."""

    text: str
    where: str = ""
    error: bool = True

    def __str__(self) -> str:
        return f"{self.where}: {self.text}" if self.where else self.text


Placed = Iterable[tuple[str, T]]
"""Things, each behind the file and line where it stands, if it stands in a file."""


def problems(dataset: Dataset) -> Iterator[str]:
    """Each fault of a dataset in a sentence, errors first; nothing for a sound one."""
    return map(str, faults(dataset))


def faults(dataset: Dataset) -> list[Fault]:
    """Each fault of a dataset, errors first."""
    relations = {relation.id: "" for relation in dataset.relations}
    templates = {r.id: [("", t) for t in r.templates] for r in dataset.relations}
    return _faults(relations, templates, lambda id: (("", fact) for fact in dataset.facts(id)))


def folder_faults(folder: Path) -> list[Fault]:
    """Each fault of a dataset folder; a line that cannot be read hides no other."""
    unread: list[Fault] = []

    def complain(fault: DataError) -> None:
        unread.append(Fault(str(fault)))

    _read_head(folder, complain)
    relations = read_relations(folder, complain)
    if not relations:
        unread.append(Fault("no relation in it", str(folder / "relations.jsonl")))
    templates = read_templates(folder, relations, complain)
    facts = partial(placed_facts, folder, complain=complain)
    faults = _faults({id: where for id, (where, _) in relations.items()}, templates, facts)
    for id in sorted({path.stem for path in (folder / "facts").glob("*.jsonl")} - set(relations)):
        deque(facts(id), maxlen=0)
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
    relations: Mapping[str, str],
    templates: Mapping[str, Sequence[tuple[str, Template]]],
    facts: Callable[[str], Placed[Fact]],
) -> list[Fault]:
    """Errors, then doubts, each in the order of relations, whose places are given by their ids."""
    ids: set[str] = set()
    found: list[Fault] = []
    for id, where in relations.items():
        if not templates[id] and any(templates.values()):  # with none, it is for in-context probes
            found.append(Fault(f"relation {id} has no template", where, error=False))
        found += _of_relation(id, where, templates[id], facts(id), ids)
    return sorted(found, key=lambda fault: not fault.error)


def _of_relation(
    relation: str,
    where: str,
    templates: Sequence[tuple[str, Template]],
    facts: Placed[Fact],
    ids: set[str],
) -> Iterator[Fault]:
    """The faults of a relation; `ids` are those of facts that were met before."""
    often = Counter(template.id for _, template in templates)
    for place, template in templates:
        if often[template.id] > 1:
            yield Fault(f"template id {template.id!r} stands more than once", place)
    objects: set[str] = set()
    splits: dict[tuple[str, str], str] = {}
    for place, fact in facts:
        if fact.id in ids:
            yield Fault(f"fact id {fact.id!r} stands more than once", place)
        ids.add(fact.id)
        objects.update(_names(fact.objects))
        for text in _fact_doubts(fact, splits):
            yield Fault(text, place or where, error=False)
    if not objects:
        yield Fault(f"relation {relation} has no fact", where, error=False)
    for place, text in _template_doubts(templates, objects):
        yield Fault(text, place or where, error=False)


def _names(entities: Iterable[Entity]) -> set[str]:
    return {name for entity in entities for name in entity.names}


def _fact_doubts(fact: Fact, splits: dict[tuple[str, str], str]) -> Iterator[str]:
    """What may be meant, or may be an oversight; `splits` of subjects and objects met before."""
    split = splits.setdefault((fact.subject.id, fact.objects[0].id), fact.split)
    if split != fact.split:
        yield f"fact {fact.id!r} stands in two splits: {split} and {fact.split}"
    if len({entity.id for entity in fact.objects}) < len(fact.objects):
        yield f"fact {fact.id!r} lists an object twice"
    if both := sorted(_names(fact.objects) & _names(fact.wrong)):
        yield f"fact {fact.id!r} lists as wrong what is correct: {both[0]!r}"


def _template_doubts(
    templates: Sequence[tuple[str, Template]], objects: Collection[str]
) -> Iterator[tuple[str, str]]:
    ids = {template.id for _, template in templates}
    texts = Counter(bare(template.text) for _, template in templates)
    for where, template in templates:
        if texts[bare(template.text)] > 1:
            yield where, f"template {template.id!r} repeats another's text: {template.text!r}"
        if (template.group or template.id) not in ids:
            text = f"is grouped under {template.group!r}, no template"
            yield where, f"template {template.id!r} {text}"
        for name in sorted(objects):
            if stands_in(name, template.text):
                yield where, f"template {template.id!r} gives an answer away: {name!r} stands in it"


def stands_in(name: str, text: str) -> bool:
    """Whether a name stands in a text as words; capitals matter for acronyms (WHO is not who)."""
    if len(name) < 3:
        return False
    if name.isupper():
        return f" {name} " in f" {re.sub(r'[^A-Za-z0-9]+', ' ', text)} "
    return f" {bare(name)} " in f" {bare(text)} "


def bare(text: str) -> str:
    """Lower-case words alone, without punctuation; the slots stay recognisable."""
    return re.sub(r"\W+", " ", text.casefold()).strip()
