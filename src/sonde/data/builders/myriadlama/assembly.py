"""The facts to begin with, then with all their objects and names, then as rows of prompts.

What can be guessed from names has been left out before, object by object (`runs/guessing.py`). What
a masked model judged is kept in the working folder, so that it is asked once.

A thing's original name stands first among its names, as the base calls it, before those that a
table or Wikidata adds. An object that no source has a name for is left out; so is one that is
another object of the pair, merged with it or known by one of its names, and one outside the answer
space of a relation that has one. What came and what was left out is counted.

Rows are those of MyriadLAMA as published, which `readers/myriadlama.py` reads: a prompt each. A
paraphrase's `group` is the text of the template that it came from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sonde.core.errors import DataError
from sonde.core.fact_frames import frame_of, is_apart
from sonde.core.facts import Dataset, Entity, Fact, Relation
from sonde.core.fingerprints import fingerprint
from sonde.data.builders import write_whole
from sonde.data.builders.myriadlama.objects import Names, Objects
from sonde.data.catalog import merged
from sonde.data.format import is_dataset, open_dataset

KEY = "base.key"


def pairs(dataset: Dataset) -> Dataset:
    """The same facts, those of one subject made one; facts collected apart are left out."""
    alone = replace(
        dataset,
        read=lambda id: dataset.frame(id).filter(~is_apart()),
        fingerprint=fingerprint([dataset.fingerprint, "without apart"]),
    )
    held = tuple(r for r in alone.relations if alone.frame(r.id).height)
    if not held:
        raise DataError(f"dataset {dataset.name!r} has no facts to build on")
    return merged(replace(alone, relations=held))


def kept(work: Path, key: str, make: Callable[[], Dataset]) -> Dataset:
    """A dataset that was made with this key before, or else is made, and kept in a folder."""
    folder, written = work / "base", work / KEY
    if is_dataset(folder) and written.is_file() and written.read_text(encoding="utf-8") == key:
        return open_dataset(folder)
    made = make()
    written.unlink(missing_ok=True)
    write_whole(made, folder, force=True)
    written.write_text(key, encoding="utf-8")
    return open_dataset(folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What the steps brought: objects by where they were found, and names."""

    objects: Mapping[str, Objects]
    names: Names


def translated(base: Dataset, names: Names, language: str) -> Dataset:
    """The facts of a dataset in another language: things are called by their names there alone.

    A subject or object without any is left out, and so is a fact without its subject or all of its
    objects; an answer space is that of the things that have names.
    """
    counts: Counter[str] = Counter()

    def named(entities: Iterable[Entity]) -> tuple[Entity, ...]:
        known = ((e.id, names[e.id].names) for e in entities if e.id in names)
        return tuple(Entity(id=id, names=more) for id, more in known if more)

    def facts(relation: str) -> Iterator[Fact]:
        for fact in base.facts(relation):
            subject, objects = named([fact.subject]), named(fact.objects)
            counts["facts_without_names"] += not (subject and objects)
            if subject and objects:
                yield replace(fact, subject=subject[0], objects=objects, wrong=named(fact.wrong))

    frames = {relation.id: frame_of(list(facts(relation.id))) for relation in base.relations}
    kept = [relation for relation in base.relations if frames[relation.id].height]
    if not kept:
        raise DataError(f"no fact of {base.name!r} has names in {language!r}")
    return replace(
        base,
        relations=tuple(replace(r, language=language, answers=named(r.answers)) for r in kept),
        read=frames.__getitem__,
        vocabulary=None,  # the words of another language
        fingerprint=fingerprint([base.fingerprint, "translated", language]),
        notes={**base.notes, **counts},
    )


def extended(base: Dataset, gathered: Gathered, language: str) -> Dataset:
    """The facts of a dataset with what was gathered; its notes have the counts."""
    counts: Counter[str] = Counter()
    facts = {
        relation.id: frame_of(list(_facts(base, relation, gathered, counts)))
        for relation in base.relations
    }
    spoken = tuple(replace(r, language=r.language or language) for r in base.relations)
    return replace(
        base,
        relations=spoken,
        read=facts.__getitem__,
        fingerprint=fingerprint([base.fingerprint, "extended"]),  # written, it has its own
        notes={**base.notes, **counts},
    )


def _facts(
    base: Dataset, relation: Relation, gathered: Gathered, counts: Counter[str]
) -> Iterator[Fact]:
    space = {entity.id: entity for entity in relation.answers}
    for fact in base.facts(relation.id):
        subject = _renamed(fact.subject, gathered.names)
        own = _own(fact, gathered.names)
        found = _found(fact, own, gathered, space, counts)
        counts["facts_with_more_subject_names"] += len(subject.names) > len(fact.subject.names)
        counts["facts_with_more_object_names"] += _named(own) > _named(fact.objects)
        counts["facts_with_more_objects"] += bool(found)
        yield replace(fact, subject=subject, objects=(*own, *found))


def _named(entities: Iterable[Entity]) -> int:
    return sum(len(entity.names) for entity in entities)


def _own(fact: Fact, names: Names) -> list[Entity]:
    """A fact's own objects with all their names; two that were merged are one."""
    known: dict[str, Entity] = {}
    for entity in fact.objects:
        same, renamed = _same(entity.id, names), _renamed(entity, names)
        known[same] = _joined(known[same], renamed) if same in known else renamed
    return list(known.values())


def _found(
    fact: Fact,
    own: list[Entity],
    gathered: Gathered,
    space: Mapping[str, Entity],
    counts: Counter[str],
) -> list[Entity]:
    """The objects that were found for a fact beside its own, each once."""
    pair, names = (fact.relation, fact.subject.id), gathered.names
    known = {_same(entity.id, names) for entity in own}
    called = {name.casefold() for entity in own for name in entity.names}
    left: dict[str, str] = {}
    kept = []
    for source, objects in gathered.objects.items():
        # what has a name alone comes last: it may be what has an identifier
        for id, name in sorted(objects.get(pair, {}).items(), key=lambda each: each[0] == each[1]):
            same, entity = _same(id, names), _entity(id, name, names)
            if same in known or (id == name and name.casefold() in called):
                continue
            if not entity.names or (space and id not in space):
                left[same] = "objects_outside_answers" if entity.names else "objects_without_names"
                continue
            entity = _joined(space[id], entity) if space else entity
            kept.append(entity)
            known.add(same)
            called |= {each.casefold() for each in entity.names}
            counts[f"objects_from_{source}"] += 1
    counts.update(why for same, why in left.items() if same not in known)
    return kept


def _entity(id: str, name: str, names: Names) -> Entity:
    """A thing that was found, by its names, or else by what its source calls it."""
    more = names[id].names if id in names else ()
    return Entity(id=id, names=more or ((name,) if name else ()))


def _joined(one: Entity, other: Entity) -> Entity:
    """Two things that are one: as the first is called, then as the other is."""
    return Entity(id=one.id, names=tuple(dict.fromkeys((*one.names, *other.names))))


def _renamed(entity: Entity, names: Names) -> Entity:
    """The same thing with all its names, its own first."""
    more = names[entity.id].names if entity.id in names else ()
    return _joined(entity, Entity(id=entity.id, names=more))


def _same(id: str, names: Names) -> str:
    return names[id].same if id in names else id


def prompt_rows(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """A row for each fact, template and name of the subject, in this order."""
    for relation in dataset.relations:
        wordings = list(_wordings(relation))
        for fact in dataset.facts(relation.id):
            about = _about(fact)
            for wording in wordings:
                for place, name in enumerate(fact.subject.names):
                    yield {**about, "sub_ent": name, "is_original": place == 0, **wording}


def _about(fact: Fact) -> dict[str, Any]:
    """What all rows of a fact say."""
    return {
        "uuid": fact.id,
        "rel_uri": fact.relation,
        "sub_uri": fact.subject.id,
        "sub_label": fact.subject.name,
        "obj_uris": [entity.id for entity in fact.objects],
        "obj_ents": [entity.name for entity in fact.objects],
        "obj_aliases": [list(entity.names[1:]) for entity in fact.objects],
    }


def _wordings(relation: Relation) -> Iterator[dict[str, Any]]:
    """What all rows of a template say."""
    texts = {template.id: template.text for template in relation.templates}
    for template in relation.templates:
        yield {
            "template": template.text,
            "is_manual": template.source == "manual",
            "group": texts.get(template.group, template.text),
        }
