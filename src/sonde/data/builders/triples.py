"""Streams of triples: rows of JSON lines, T-REx's documents, or the facts of a dataset; and a draw
of bounded size.

A row is `{"head", "relation", "tail", "title", "text"}`, as T-REx was republished; `{"sub_label",
"obj_label", "sub_uri", "obj_uri", "relation"}`, as LAMA's facts are; or `{"sub", "obj"}`, as LAMA's
training facts are, whose relation is the name of the folder they lie in. T-REx itself is files of
documents (`.json`, a list), each with its `triples`; one file at a time is in memory. Rows that are
none of these are passed over, up to a limit, and remembered by file and line. Nothing else is kept
of what was read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from sonde.core.errors import DataError
from sonde.core.facts import APART, Card, Dataset, Entity
from sonde.core.fingerprints import draw_key
from sonde.data.lines import UNSOUND, Row, Tick, raw_lines, row_of

ENDINGS = (".jsonl", ".jsonl.gz")
DOCUMENTS = ".json"
DETAILS = ("title", "text")
SHOWN = 5

FORMS = (("head", "tail"), ("sub_label", "obj_label"), ("sub", "obj"))
"""What the columns of subject and object are called."""

IDENTIFIERS = {"head": ("head_id", "tail_id"), "sub_label": ("sub_uri", "obj_uri")}
"""Columns of identifiers that may stand beside them, by the subject's."""


class _Place(msgspec.Struct, gc=False):
    """A mention of a thing in a document of T-REx; an `uri` ends in the identifier."""

    uri: str | None = None
    surfaceform: str | None = None


class _Stated(msgspec.Struct, gc=False):
    subject: _Place
    predicate: _Place
    object: _Place


class _Document(msgspec.Struct, gc=False):
    """A page, whose subject need not be mentioned: it goes by the title then."""

    docid: str = ""
    title: str = ""
    triples: list[_Stated] = []

    def named(self, place: _Place) -> str:
        """What a thing is called here; empty where nothing says it."""
        return clean(place.surfaceform or (self.title if place.uri == self.docid else ""))


class Triple(NamedTuple):
    """One row: names of subject and object, further columns, and the things where they are known.

    A thing of which a row has nothing but the name has its name for an identifier.
    """

    relation: str
    subject: str
    object: str
    columns: Mapping[str, Any]
    things: tuple[Entity, Entity] | None = None

    @property
    def subject_id(self) -> str:
        """The identifier of the subject."""
        return self.things[0].id if self.things else self.subject

    @property
    def entities(self) -> tuple[Entity, Entity]:
        """Subject and object as things."""
        return self.things or (Entity.named(self.subject), Entity.named(self.object))

    def details(self) -> dict[str, str]:
        """The further columns that are kept."""
        given = self.things and not any(name in self.columns for name, _ in FORMS)
        kept = tuple(self.columns) if given else DETAILS
        texts = {key: self.columns.get(key) for key in kept}
        return {k: v for k, v in texts.items() if isinstance(v, str) and v.strip()}


@dataclass(slots=True, kw_only=True)
class Faults:
    """Rows that were passed over; one more than `limit` is refused."""

    limit: int
    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, fault: DataError) -> None:
        """Remember a fault, or refuse to go on."""
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append(str(fault))
        if self.count > self.limit:
            passed = f" (the fault after {self.limit} that were passed over)" if self.limit else ""
            raise DataError(f"{fault}{passed}; --skip N passes over up to N such rows")


class Source(NamedTuple):
    """Triples that can be read from their beginning as often as is needed; `size` in bytes."""

    name: str
    read: Callable[[Faults, Tick], Iterator[Triple]]
    size: int = 0
    card: Card | None = None


def triple_files(place: Path) -> Source:
    """A file of triples, or all such files in a folder and below it, in order of their paths."""
    paths = triple_paths(place)

    def read(faults: Faults, tick: Tick) -> Iterator[Triple]:
        return (triple for path in paths for triple in _read_file(path, faults, tick))

    return Source(place.name, read, sum(path.stat().st_size for path in paths))


def triple_paths(place: Path) -> list[Path]:
    """The files of triples that a path stands for; at least one."""
    if not place.exists():
        raise DataError(f"{place} does not exist; give a file or folder of triples in JSON lines")
    paths = sorted(place.rglob("*")) if place.is_dir() else [place]
    paths = [path for path in paths if path.is_file() and _holds_triples(path)]
    if not paths:
        raise DataError(
            f"{place} holds no triples; they stand in files that end in .jsonl(.gz), or in .json "
            "as a list of T-REx's documents"
        )
    return paths


def _holds_triples(path: Path) -> bool:
    """Whether a file may: by its name, and one of JSON by being a list."""
    if path.suffix != DOCUMENTS:
        return path.name.endswith(ENDINGS)
    with path.open("rb") as file:
        return file.read(64).lstrip().startswith(b"[")


def dataset_triples(dataset: Dataset) -> Source:
    """The facts of a dataset, a triple for each correct object, those collected apart left out."""

    def read(faults: Faults, tick: Tick) -> Iterator[Triple]:
        for relation in dataset.relations:
            for fact in dataset.facts(relation.id):
                for thing in () if APART in fact.tags else fact.objects:
                    names = clean(fact.subject.name), clean(thing.name)
                    yield Triple(relation.id, *names, fact.details, (fact.subject, thing))

    return Source(dataset.name, read, card=dataset.card)


def clean(name: str) -> str:
    """A name without spare spaces or line breaks, which would pass for separators.

    >>> clean(" New  York\\n")
    'New York'
    """
    return " ".join(name.split())


def _read_file(path: Path, faults: Faults, tick: Tick) -> Iterator[Triple]:
    if path.suffix == DOCUMENTS:
        yield from _read_documents(path, faults, tick)
        return
    folder = path.resolve().parent.name
    for where, raw in raw_lines(path, tick=tick):
        if not raw.strip():
            continue
        try:
            triple = _triple(row_of(raw, where), folder)
        except DataError as fault:
            faults.add(fault)
        else:
            yield triple


def _read_documents(path: Path, faults: Faults, tick: Tick) -> Iterator[Triple]:
    """The triples of a file of T-REx, whole in memory; those without names are passed over."""
    try:
        data = path.read_bytes()
        documents = msgspec.json.decode(data, type=list[_Document])
    except UNSOUND as error:
        faults.add(DataError(f"{path}: no list of T-REx's documents with triples ({error})"))
        return
    for document in documents:
        for stated in document.triples:
            relation = _ending(stated.predicate.uri)
            subject, object = document.named(stated.subject), document.named(stated.object)
            if relation and subject and object:
                ids = _ending(stated.subject.uri), _ending(stated.object.uri)
                things = _thing(ids[0], subject), _thing(ids[1], object)
                yield Triple(relation, subject, object, {}, things)
    tick(len(data))


def _ending(uri: str | None) -> str:
    """The identifier that an address ends in; empty where it is that of a number or a date."""
    return "" if uri is None or "^^" in uri else uri.rpartition("/")[2]


def _thing(id: str, name: str) -> Entity:
    return Entity(id=id or name, names=(name,))


def _triple(row: Row, folder: str) -> Triple:
    for subject, object in FORMS:
        if subject in row.values or object in row.values:
            relation = row.text("relation", folder if subject == "sub" else None)
            names = clean(row.text(subject)), clean(row.text(object))
            return Triple(clean(relation), *names, row.values, _identified(row, subject, names))
    raise row.fault(
        "expected the columns 'head', 'relation' and 'tail' (or 'sub' and 'obj')",
        ", ".join(map(str, row.values)) or None,
    )


def _identified(row: Row, subject: str, names: tuple[str, str]) -> tuple[Entity, Entity] | None:
    """Subject and object with the identifiers that stand beside their names, if there are any."""
    columns = IDENTIFIERS.get(subject, ())
    if not any(row.values.get(column) for column in columns):
        return None
    ids = (row.text(column, "") if row.values.get(column) else "" for column in columns)
    subject_thing, object_thing = map(_thing, ids, names)
    return subject_thing, object_thing


class Smallest:
    """The `size` names with the smallest draws among all that were offered.

    `ids` has the identifiers that came with each; there are `more` where a name was turned away.
    """

    __slots__ = ("_heap", "_prefix", "_seed", "_size", "ids", "more")

    def __init__(self, size: int, seed: int, prefix: str) -> None:
        self._size, self._seed, self._prefix = size, seed, prefix
        self._heap: list[tuple[int, str]] = []
        self.ids: dict[str, frozenset[str]] = {}
        self.more = False

    def offer(self, name: str, id: str = "") -> None:
        """Take a name in where its draw is small enough; all identifiers of one that stays stay."""
        if name not in self.ids:
            entry = (-draw_key(self._seed, self._prefix + name), name)  # a heap gives its smallest
            if len(self._heap) < self._size:
                heappush(self._heap, entry)
            else:
                self.more = True
                _, dropped = heappushpop(self._heap, entry)
                if dropped == name:
                    return
                del self.ids[dropped]
            self.ids[name] = frozenset()
        if id and id not in self.ids[name]:
            self.ids[name] |= {id}

    def ordered(self) -> list[str]:
        """The names, the smallest draw first."""
        return [name for _, name in sorted(self._heap, reverse=True)]

    def __len__(self) -> int:
        return len(self.ids)

    def __str__(self) -> str:
        return f"{len(self):,}{'+' if self.more else ''}"
