"""What relations are called and how they are worded, by a source and by what is known already.

Templates come from sources such as ParaRel, which have no facts, and take the place of those that a
dataset has. The bundled atlas has the relations of LAMA's T-REx part. Facts stay as they are.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import NamedTuple

from sonde.core.errors import TemplateError
from sonde.core.facts import ANSWER_SLOT, Card, Dataset, Kind, Relation, Source, Style, Template
from sonde.data.format import hash_files, worded_relations
from sonde.data.lines import Row, complete_rows, read_rows
from sonde.prompting.languages import QUESTION_MARKS, add_answer_slot

ATLAS = Path(__file__).parent / "bundled" / "atlas"


class Wording(NamedTuple):
    """One sentence as a source has it, before anything is known of its soundness."""

    relation: str
    text: str
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Wordings:
    """Templates by relation, with the count of what was left out; `fingerprint` names the files."""

    card: Card
    templates: Mapping[str, tuple[Template, ...]]
    fingerprint: str
    notes: Mapping[str, int]


def gather(
    name: str, wordings: Iterable[Wording]
) -> tuple[dict[str, tuple[Template, ...]], dict[str, int]]:
    """Templates by relation and notes: those that repeat another or lack a slot are left out.

    A question needs no [Y]: the answer follows it.
    A template is numbered by its place among all the relation's wordings, so that leaving one out
    renames no other.
    """
    kept: dict[str, dict[str, Template]] = {}
    places: Counter[str] = Counter()
    repeated = without_slots = 0
    for relation, words, source in wordings:
        places[relation] += 1
        texts, text = kept.setdefault(relation, {}), add_answer_slot(" ".join(words.split()))
        if text in texts:
            repeated += 1
            continue
        id = f"{relation}-{name}-{places[relation]}"
        try:
            texts[text] = Template(id=id, text=text, source=source, style=style_of(text), group=id)
        except TemplateError:
            without_slots += 1
    notes = {
        "templates_read": places.total(),
        "templates_repeated": repeated,
        "templates_without_slots": without_slots,
    }
    return {relation: tuple(t.values()) for relation, t in kept.items() if t}, notes


def read_wordings(
    card: Card, folder: Path, paths: Sequence[Path], wording: Callable[[Path, Row], Wording]
) -> Wordings:
    """The templates of files of JSON lines below a folder; `wording` says how a row is read."""
    incomplete: Counter[str] = Counter()
    rows = (
        wording(path, row)
        for path in paths
        for row in complete_rows(read_rows(path), ("pattern", "template"), incomplete)
    )
    templates, notes = gather(card.name, rows)
    notes |= incomplete
    return Wordings(
        card=card, templates=templates, fingerprint=hash_files(folder, paths), notes=notes
    )


def style_of(text: str) -> Style:
    """A question where a question mark stands before the answer.

    >>> style_of("What is the capital of [X]? [Y]."), style_of("[X] lies in [Y].")
    ('question', 'statement')
    """
    head = text.partition(ANSWER_SLOT)[0]
    return "question" if any(mark in head for mark in QUESTION_MARKS) else "statement"


def regrouped(templates: Collection[Template]) -> tuple[Template, ...]:
    """The same templates; one whose group is not among them is a group of its own."""
    ids = {template.id for template in templates}
    return tuple(t if t.group in ids else replace(t, group=t.id) for t in templates)


def worded(dataset: Dataset, sources: Sequence[Wordings]) -> Dataset:
    """The facts under the sources' templates, which take the place of the dataset's own.

    A template that says what one of these says has its origin. Relations that only one side has are
    left out and counted.
    """
    templates = _together(sources)
    asked = {relation.id for relation in dataset.relations}
    kept = tuple(
        replace(relation, templates=tuple(_of_origin(templates[relation.id], relation.templates)))
        for relation in dataset.relations
        if relation.id in templates
    )
    left = [relation for relation in dataset.relations if relation.id not in templates]
    brought = sum(len(t) for source in sources for t in source.templates.values())
    notes = Counter(
        relations_without_templates=len(left),
        facts_without_templates=replace(dataset, relations=tuple(left)).size,
        relations_without_facts=len(set(templates) - asked),
        templates_without_facts=sum(len(t) for id, t in templates.items() if id not in asked),
    )
    for source in sources:
        notes.update(source.notes)
    notes.update(templates_repeated=brought - sum(map(len, templates.values())))
    return replace(dataset, relations=kept, notes={**dataset.notes, **notes})


def _of_origin(templates: Iterable[Template], before: Iterable[Template]) -> Iterator[Template]:
    """Templates, with the origin of those that a dataset had of the same words; spaces apart."""
    origins = {"".join(template.text.split()): template.origin for template in before}
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
    together: dict[str, dict[str, Template]] = {}
    for source in sources:
        for relation, templates in source.templates.items():
            texts = together.setdefault(relation, {})
            ids = _ids(texts, templates)
            for t in templates:
                named = replace(t, id=ids[t.id], group=ids.get(t.group, t.group))
                texts.setdefault(t.text, named)
    return {relation: tuple(texts.values()) for relation, texts in together.items()}


def _ids(texts: Mapping[str, Template], templates: Sequence[Template]) -> dict[str, str]:
    """What the templates of one more source are to be called: one that is there is that one."""
    taken = {template.id for template in texts.values()}
    new = {template.id for template in templates}

    def free(id: str) -> str:
        return next(f"{id}~{k}" for k in count(2) if f"{id}~{k}" not in taken | new)

    return {
        t.id: texts[t.text].id if t.text in texts else free(t.id) if t.id in taken else t.id
        for t in templates
    }


@cache
def atlas_relations() -> dict[str, Relation]:
    """The relations of the bundled atlas, by identifier."""
    return {relation.id: relation for relation in worded_relations(ATLAS)}


def asked_by(id: str, source: str, question: str, *, label: str) -> Relation:
    """A relation with one question of a source; label and type are the atlas's where it has it."""
    known, worded = atlas_relations().get(id), f"{id}-{source}"
    template = Template(id=worded, text=f"{question} {ANSWER_SLOT}", style="question", group=worded)
    return Relation(
        id=id,
        label=known.label if known else label,
        kind=known.kind if known else None,
        templates=(template,),
    )


def known_relation(
    id: str, name: str, datasets: Sequence[Dataset] = (), kind: Kind = "N-M"
) -> Relation:
    """A relation, its label and type as the first dataset knows them by name or identifier.

    Then those of the atlas count, else the name and `kind`. The templates are those of all datasets
    that know it; of equal texts the first stays.
    """
    known: list[Relation] = []
    for wanted in (name.casefold(), id.casefold()):
        known = known or [
            relation
            for dataset in datasets
            for relation in dataset.relations
            if wanted in (relation.id.casefold(), relation.label.casefold())
        ]
    texts: dict[str, Template] = {}
    for template in (template for relation in known for template in relation.templates):
        texts.setdefault(template.text, template)
    first = known[0] if known else atlas_relations().get(id)
    return Relation(
        id=id,
        label=first.label if first else name,
        kind=first.kind if first else kind,
        templates=regrouped(texts.values()),
    )


def kind_of(objects: Collection[Collection[str]]) -> Kind:
    """The type of a relation by the objects of each subject.

    N-M where some subject has several objects, 1-1 where no object comes twice.
    """
    if any(len(several) > 1 for several in objects):
        return "N-M"
    counts = Counter(object for several in objects for object in several)
    return "N-1" if any(count > 1 for count in counts.values()) else "1-1"


def relation_ids(names: Iterable[str]) -> dict[str, str]:
    """An identifier for each relation's name, fit for a file name and different from the others.

    >>> relation_ids(["P36", "[City] is in [Country]"])
    {'P36': 'P36', '[City] is in [Country]': 'City-is-in-Country'}
    """
    ids = {name: re.sub(r"[^\w.]+", "-", name).strip("-.")[:80] for name in names}
    often = Counter(id.casefold() for id in ids.values())
    for name, id in ids.items():
        if not id or often[id.casefold()] > 1:
            digest = hashlib.sha256(name.encode()).hexdigest()[:8]
            ids[name] = f"{id}-{digest}".lstrip("-")
    return ids
