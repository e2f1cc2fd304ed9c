"""Further names of things, from a table, and further correct objects, from triples and statements.

A triple belongs to a fact by the identifier of its subject and by its relation; where triples have
names alone, by a name that is that of one subject of the relation only. Nothing is held but what
belongs to a fact, so that memory depends on the facts, not on how many triples there are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from sonde.core.errors import DataError
from sonde.core.facts import Dataset
from sonde.data.builders.triples import Faults, Triple, clean, triple_files
from sonde.data.builders.work import Journal
from sonde.data.readers.aliases import read_names


class Named(NamedTuple):
    """What a thing is called, and the identifier that it goes by now: items are merged at times."""

    names: tuple[str, ...]
    same: str


Names = Mapping[str, Named]


def table_names(folder: Path, language: str, wanted: Collection[str]) -> Names:
    """The names that the table of a language has for some identifiers: `en.tsv`."""
    rows = read_names(names_path(folder, language))
    return {id: named(names, id) for id, names in rows if id in wanted}


def names_path(folder: Path, language: str) -> Path:
    """Where the names of a language stand; refuses clearly where they do not."""
    path = folder / f"{language}.tsv"
    if not path.is_file():
        raise DataError(
            f"{path} is missing: names in {language!r} stand there, an identifier and its names a "
            "line, separated by tabs"
        )
    return path


def named(names: Collection[str], id: str) -> Named:
    """Names without spare spaces, each once."""
    return Named(tuple(filter(None, dict.fromkeys(map(clean, names)))), id)


Pair = tuple[str, str]
"""A relation and a subject, by their identifiers."""

Objects = dict[Pair, dict[str, str]]
"""What was found for pairs: objects by identifier, with what a source calls them, if it says."""

Progress = Callable[[int], None]


@dataclass(slots=True, kw_only=True)
class Base:
    """How a triple finds its fact: pairs by identifiers, and by names that tell them apart.

    Relations are known by identifier, by label and by what they are in every language. A name that
    two things have is that of none.
    """

    relations: Mapping[str, str]
    pairs: frozenset[Pair]
    subjects: Mapping[Pair, str]
    objects: Mapping[Pair, str]

    def pair(self, triple: Triple) -> Pair | None:
        """The pair that a triple is about, if it is one of the base."""
        relation = self.relations.get(triple.relation.casefold())
        if relation is None:
            return None
        if (pair := (relation, triple.subject_id)) in self.pairs:
            return pair
        if triple.things and triple.subject_id != triple.subject:
            return None  # it is another thing, whatever its name
        subject = self.subjects.get((relation, triple.subject.casefold()))
        return (relation, subject) if subject else None

    def object(self, relation: str, triple: Triple) -> str:
        """The identifier of a triple's object; its name where nothing else is known."""
        _, thing = triple.entities
        if thing.id != triple.object:
            return thing.id
        return self.objects.get((relation, triple.object.casefold())) or triple.object


def base_of(dataset: Dataset) -> Base:
    """The pairs of a dataset, and the names of their things."""
    known_as = ({r.label: r.id, r.same: r.id, r.id: r.id} for r in dataset.relations)
    relations = {name.casefold(): id for names in known_as for name, id in names.items() if name}
    pairs: set[Pair] = set()
    subjects: dict[Pair, str] = {}
    objects: dict[Pair, str] = {}
    for relation in dataset.relations:
        for fact in dataset.facts(relation.id):
            pairs.add((relation.id, fact.subject.id))
            for known, entity in ((subjects, fact.subject), *((objects, e) for e in fact.objects)):
                for name in entity.names:
                    key = (relation.id, name.casefold())
                    known[key] = entity.id if known.get(key, entity.id) == entity.id else ""
    return Base(relations=relations, pairs=frozenset(pairs), subjects=subjects, objects=objects)


@dataclass(slots=True, kw_only=True)
class Mined:
    """What a stream of triples gave: rows read, those of the base's pairs, and the objects."""

    objects: Objects = field(default_factory=dict)
    rows: int = 0
    matched: int = 0


def mine(
    dataset: Dataset,
    paths: Sequence[Path],
    journal: Journal,
    faults: Faults,
    progress: Progress = lambda count: None,
) -> Mined:
    """The objects that files of triples name for a dataset's pairs; no file is read twice."""
    base, mined = base_of(dataset), Mined()
    for path in paths:
        stat = path.stat()
        key = f"{dataset.fingerprint} {path.resolve()} {stat.st_size} {stat.st_mtime_ns}"
        if (kept := journal.find(key)) is None:
            read = _mine_file(base, path, faults, progress)
            kept = json.dumps([read.rows, read.matched, list(_rows(read.objects))])
            journal.keep(key, kept)
        else:
            progress(stat.st_size)
        rows, matched, found = json.loads(kept)
        mined.rows, mined.matched = mined.rows + rows, mined.matched + matched
        for relation, subject, object, name in found:
            mined.objects.setdefault((relation, subject), {}).setdefault(object, name)
    return mined


def _mine_file(base: Base, path: Path, faults: Faults, progress: Progress) -> Mined:
    mined = Mined()
    for triple in triple_files(path).read(faults, progress):
        mined.rows += 1
        pair = base.pair(triple)
        if pair is not None:
            mined.matched += 1
            found = mined.objects.setdefault(pair, {})
            found.setdefault(base.object(pair[0], triple), triple.object)
    return mined


def _rows(objects: Objects) -> Iterator[tuple[str, str, str, str]]:
    for (relation, subject), found in objects.items():
        for object, name in found.items():
            yield relation, subject, object, name


def stated(statements: Iterable[tuple[Pair, Sequence[str]]], dataset: Dataset) -> Objects:
    """Objects that statements give for a dataset's pairs, by identifiers alone."""
    base, found = base_of(dataset), dict[Pair, dict[str, str]]()
    for (name, subject), objects in statements:
        pair = (base.relations.get(name.casefold(), ""), subject)
        if pair in base.pairs:
            found.setdefault(pair, {}).update(dict.fromkeys(objects, ""))
    return found
