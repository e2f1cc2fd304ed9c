"""Look a dataset over, line by line, and say everything that is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sonde.core.facts import Dataset, Relation


def problems(dataset: Dataset) -> Iterator[str]:
    """Each fault of a dataset in a sentence; nothing for a sound one."""
    ids: set[str] = set()
    worded = any(relation.templates for relation in dataset.relations)
    for relation in dataset.relations:
        if worded and not relation.templates:  # with none at all, it is for in-context probes
            yield f"relation {relation.id} has no template"
        yield from _template_problems(relation)
        yield from _fact_problems(dataset, relation, ids)


def _template_problems(relation: Relation) -> Iterator[str]:
    ids = [t.id for t in relation.templates]
    texts = [_bare(t.text) for t in relation.templates]
    for template, bare in zip(relation.templates, texts, strict=True):
        if ids.count(template.id) > 1:
            yield f"template id {template.id!r} stands more than once"
        if texts.count(bare) > 1:
            yield f"template {template.id!r} repeats another's text: {template.text!r}"
        if template.group not in ids:
            yield f"template {template.id!r} is grouped under {template.group!r}, no template"


def _fact_problems(dataset: Dataset, relation: Relation, ids: set[str]) -> Iterator[str]:
    splits: dict[str, str] = {}
    objects: set[str] = set()
    for fact in dataset.facts(relation.id):
        if fact.id in ids:
            yield f"fact id {fact.id!r} stands more than once"
        ids.add(fact.id)
        pair = f"{fact.subject.id}\0{fact.objects[0].id}"
        if splits.setdefault(pair, fact.split) != fact.split:
            yield f"fact {fact.id!r} stands in two splits: {splits[pair]} and {fact.split}"
        repeated = [o.id for o in fact.objects]
        if len(set(repeated)) < len(repeated):
            yield f"fact {fact.id!r} lists an object twice"
        right = {name for o in fact.objects for name in o.names}
        if both := sorted(right & {name for o in fact.wrong for name in o.names}):
            yield f"fact {fact.id!r} lists as wrong what is correct: {both[0]!r}"
        objects.update(name for o in fact.objects for name in o.names)
    if not objects:
        yield f"relation {relation.id} has no fact"
    for name in sorted(objects):
        for template in relation.templates:
            if stands_in(name, template.text):
                yield f"template {template.id!r} gives an answer away: {name!r} stands in it"


def stands_in(name: str, text: str) -> bool:
    """Whether a name stands in a text as words; capitals matter for acronyms (WHO is not who)."""
    if len(name) < 3:
        return False
    if name.isupper():
        return f" {name} " in f" {re.sub(r'[^A-Za-z0-9]+', ' ', text)} "
    return f" {_bare(name)} " in f" {_bare(text)} "


def _bare(text: str) -> str:
    """Lower-case words alone, without punctuation; the slots stay recognisable."""
    return re.sub(r"\W+", " ", text.casefold()).strip()
