"""What relations are called, and what the bundled atlas and other datasets know of them.

The atlas has the relations of LAMA's T-REx part. Knows nothing of facts.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import cast

from sonde.core.facts import Dataset, Kind, Relation, Template
from sonde.data.format import template_of
from sonde.data.lines import read_rows

ATLAS = Path(__file__).parent / "bundled" / "atlas"


@cache
def known_relations() -> dict[str, Relation]:
    """Relations by identifier, without templates."""
    return {
        row.text("id"): Relation(
            id=row.text("id"), label=row.text("label"), kind=cast(Kind, row.text("kind"))
        )
        for row in read_rows(ATLAS / "relations.jsonl")
    }


@cache
def known_statements() -> dict[str, tuple[Template, ...]]:
    """The statement templates of relations, by identifier."""
    found: dict[str, tuple[Template, ...]] = {}
    for row in read_rows(ATLAS / "templates.jsonl"):
        made = template_of(row)
        if made.style == "statement":
            id = row.text("relation")
            found[id] = (*found.get(id, ()), made)
    return found


def kind_of(objects: Iterable[Collection[str]]) -> Kind:
    """The type of a relation by the objects of each subject.

    N-M where some subject has several objects, 1-1 where no object comes twice.
    """
    counts = Counter(object for several in objects for object in several)
    if any(len(several) > 1 for several in objects):
        return "N-M"
    return "N-1" if any(count > 1 for count in counts.values()) else "1-1"


def relation_ids(names: Iterable[str]) -> dict[str, str]:
    """An identifier for each relation's name, fit for a file name and different from the others.

    >>> relation_ids(["P36", "[City] is in [Country]"])
    {'P36': 'P36', '[City] is in [Country]': 'City-is-in-Country'}
    """
    plain = {name: re.sub(r"[^\w.]+", "-", name).strip("-.")[:80] for name in names}
    often = Counter(id.casefold() for id in plain.values())
    return {
        name: id if id and often[id.casefold()] == 1 else f"{id}-{_short_hash(name)}".lstrip("-")
        for name, id in plain.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRelations:
    """Relations of datasets, by identifier or label, with all their templates.

    Those of LAMA's T-REx part are known by identifier in any case, without templates.
    """

    by_name: Mapping[str, tuple[Relation, ...]]

    @classmethod
    def of(cls, datasets: Sequence[Dataset]) -> KnownRelations:
        """All relations of some datasets."""
        found: dict[str, list[Relation]] = {}
        for dataset in datasets:
            for relation in dataset.relations:
                for name in dict.fromkeys((relation.id.casefold(), relation.label.casefold())):
                    found.setdefault(name, []).append(relation)
        return cls(by_name={name: tuple(relations) for name, relations in found.items()})

    def relation(self, id: str, name: str, kind: Kind) -> Relation:
        """The relation of that name; its type is a dataset's where one knows it."""
        known = self._found(id, name)
        return Relation(
            id=id,
            label=self.label(id, name),
            kind=known[0].kind if known else kind,
            templates=self.templates(id, name),
        )

    def label(self, id: str, name: str) -> str:
        """What the relation is called, in words where a dataset has them."""
        known = self._found(id, name)
        return known[0].label if known else name

    def templates(self, id: str, name: str) -> tuple[Template, ...]:
        """The templates of all datasets that know it; of equal texts the first stays."""
        texts: dict[str, Template] = {}
        for relation in self._found(id, name):
            for template in relation.templates:
                texts.setdefault(template.text, template)
        ids = {template.id for template in texts.values()}
        return tuple(t if t.group in ids else replace(t, group=t.id) for t in texts.values())

    def _found(self, id: str, name: str) -> tuple[Relation, ...]:
        for each in (name, id):
            if found := self.by_name.get(each.casefold()):
                return found
        return (known_relations()[id],) if id in known_relations() else ()


def _short_hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8]
