"""Put facts, templates and names of several sources together into one dataset.

A joined dataset has one fact per subject and relation, with every correct object: that is the pair
that BELIEF asks about. Facts are still read a relation at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from sonde.core.facts import APART, Card, Dataset, Entity, Fact, Template
from sonde.core.fingerprints import fingerprint
from sonde.data.wordings import Wordings


def merged(dataset: Dataset) -> Dataset:
    """One fact per subject, relation and split, with the objects of all of them."""
    rows = facts = apart = 0
    for relation in dataset.relations:
        tags = [fact.tags for fact in dataset.facts(relation.id)]
        rows += len(tags)
        apart += sum(APART in own for own in tags)
        facts += sum(1 for _ in merged_facts(dataset.facts(relation.id)))
    how = "merged, some apart" if apart else "merged"
    return replace(
        dataset,
        read=lambda id: merged_facts(dataset.facts(id)),
        fingerprint=fingerprint([dataset.fingerprint, how]),
        notes={**dataset.notes, "rows_merged": rows - facts},
    )


def merged_facts(facts: Iterable[Fact]) -> Iterator[Fact]:
    """The facts of one relation, those of one subject and split made one, in order of appearance.

    A merged fact is called after its relation and subject, `P36:Q142`. Facts collected apart follow
    as they are: they name things that may share a name, and to count them is what they are for.
    """
    groups: dict[tuple[str, str], list[Fact]] = {}
    apart = []
    for fact in facts:
        if APART in fact.tags:
            apart.append(fact)
        else:
            groups.setdefault((fact.subject.id, fact.split), []).append(fact)
    for (subject, split), group in groups.items():
        first = group[0]
        objects = united_entities(entity for fact in group for entity in fact.objects)
        right = {entity.id for entity in objects}
        yield replace(
            first,
            id=f"{first.relation}:{subject}" + (f":{split}" if split != "test" else ""),
            subject=_united([fact.subject for fact in group]),
            objects=objects,
            wrong=tuple(entity for entity in first.wrong if entity.id not in right),
            tags=tuple(dict.fromkeys(tag for fact in group for tag in fact.tags)),
        )
    yield from apart


def united_entities(entities: Iterable[Entity]) -> tuple[Entity, ...]:
    """Entities by id, each once, with all the names it has, in order of appearance."""
    groups: dict[str, list[Entity]] = {}
    for entity in entities:
        groups.setdefault(entity.id, []).append(entity)
    return tuple(_united(group) for group in groups.values())


def _united(entities: Sequence[Entity]) -> Entity:
    names = dict.fromkeys(name for entity in entities for name in entity.names)
    return Entity(id=entities[0].id, names=tuple(names))


def worded(dataset: Dataset, sources: Sequence[Wordings]) -> Dataset:
    """The facts under the sources' templates, which take the place of the dataset's own.

    A template that says what one of these says has its origin. Relations that only one side has are
    left out and counted.
    """
    templates = _together(sources)
    known = {relation.id for relation in dataset.relations}
    kept = tuple(
        replace(relation, templates=tuple(_of_origin(templates[relation.id], relation.templates)))
        for relation in dataset.relations
        if relation.id in templates
    )
    left = [relation for relation in dataset.relations if relation.id not in templates]
    notes = {
        "relations_without_templates": len(left),
        "facts_without_templates": sum(1 for r in left for _ in dataset.facts(r.id)),
        "relations_without_facts": len(set(templates) - known),
        "templates_without_facts": sum(len(t) for id, t in templates.items() if id not in known),
    }
    for source in sources:
        notes = summed(notes, source.notes)
    brought = sum(len(t) for source in sources for t in source.templates.values())
    shared = brought - sum(map(len, templates.values()))
    notes = summed(notes, {"templates_repeated": shared})
    return replace(dataset, relations=kept, notes={**dataset.notes, **notes})


def _of_origin(templates: Iterable[Template], own: Iterable[Template]) -> Iterator[Template]:
    """Templates, with the origin of those that a dataset had of the same words; spaces apart."""
    origins = {"".join(template.text.split()): template.origin for template in own}
    for template in templates:
        origin = origins.get("".join(template.text.split()), "")
        yield replace(template, origin=origin) if origin else template


def wordings_of(dataset: Dataset) -> Wordings:
    """A dataset's own templates, for the facts of another."""
    templates = {r.id: r.templates for r in dataset.relations if r.templates}
    return Wordings(
        card=dataset.card,
        templates=templates,
        fingerprint=dataset.fingerprint,
        notes={"templates_read": sum(map(len, templates.values()))},
    )


def _together(sources: Sequence[Wordings]) -> dict[str, tuple[Template, ...]]:
    """The templates of several sources; where two have the same text, the first one's stays.

    An id that another source's template has already gets a number behind it.
    """
    found: dict[str, dict[str, Template]] = {}
    for source in sources:
        for relation, templates in source.templates.items():
            texts = found.setdefault(relation, {})
            ids = _ids(texts, templates)
            for t in templates:
                named = replace(t, id=ids[t.id], group=ids.get(t.group, t.group))
                texts.setdefault(t.text, named)
    return {relation: tuple(texts.values()) for relation, texts in found.items()}


def _ids(texts: Mapping[str, Template], templates: Sequence[Template]) -> dict[str, str]:
    """What the templates of one more source are to be called: one that is there is that one."""
    taken = {template.id for template in texts.values()}
    own = {template.id for template in templates}

    def free(id: str) -> str:
        return next(f"{id}~{k}" for k in count(2) if f"{id}~{k}" not in taken | own)

    return {
        t.id: texts[t.text].id if t.text in texts else free(t.id) if t.id in taken else t.id
        for t in templates
    }


def summed(notes: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Counts of two sources; those of the same name are added."""
    return {key: notes.get(key, 0) + more.get(key, 0) for key in (*notes, *more)}


def named_after(dataset: Dataset, names: Sequence[str], cards: Sequence[Card]) -> Dataset:
    """The dataset with a card that names everything it was joined from."""
    cards = (dataset.card, *cards)
    licences = dict.fromkeys(f"{card.name}: {card.licence}" for card in cards)
    card = Card(
        name="+".join((dataset.card.name, *names)),
        licence="; ".join(licences),
        sources=tuple(dict.fromkeys(source for card in cards for source in card.sources)),
        description=f"{dataset.card.name}, joined with {', '.join(names)}",
    )
    return replace(dataset, card=card)
