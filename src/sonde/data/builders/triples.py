"""Streams of triples: rows of JSON lines, or the facts of a dataset. Keeps nothing of what it read.

A row is `{"head", "relation", "tail", "title", "text"}`, as T-REx was republished, or `{"sub",
"obj"}`, as LAMA's training facts are, whose relation is the name of the folder they lie in. Rows
that are neither are passed over, up to a limit, and remembered by file and line.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

import msgspec

from sonde.core.errors import DataError
from sonde.core.facts import APART, Dataset, Entity
from sonde.data.lines import UNSOUND, Row, row_of

ENDINGS = (".jsonl", ".jsonl.gz")
DETAILS = ("title", "text")
EVERY = 4096
SHOWN = 5

Tick = Callable[[int], None]
"""Called with the bytes read since the last call."""

_decode = msgspec.json.Decoder(dict[str, Any]).decode
_NOTHING: Mapping[str, Any] = {}


class Triple(NamedTuple):
    """One row: names of subject and object, and what else is known of them."""

    relation: str
    subject: str
    object: str
    row: Mapping[str, Any] = _NOTHING
    things: tuple[Entity, Entity] | None = None

    def details(self) -> dict[str, str]:
        """The further columns that are kept."""
        kept = DETAILS if self.things is None else tuple(self.row)
        found = {key: self.row.get(key) for key in kept}
        return {k: v for k, v in found.items() if isinstance(v, str) and v.strip()}


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


class Source(Protocol):
    """Something that can be read from its beginning as often as is needed."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def size(self) -> int:
        """Its bytes, as far as they are known."""

    def read(self, faults: Faults, tick: Tick) -> Iterator[Triple]:
        """Every triple it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TripleFiles:
    """Files of JSON lines, plain or compressed with gzip."""

    name: str
    paths: tuple[Path, ...]
    size: int

    def read(self, faults: Faults, tick: Tick) -> Iterator[Triple]:
        """The rows of all files, in the order of their paths."""
        for path in self.paths:
            yield from _read_file(path, faults, tick)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetTriples:
    """The facts of a dataset, a triple for each correct object."""

    dataset: Dataset
    size: int = 0

    @property
    def name(self) -> str:
        """The dataset's name."""
        return self.dataset.name

    def read(self, faults: Faults, tick: Tick) -> Iterator[Triple]:
        """The triples of all relations and splits, without facts that were collected apart."""
        for relation in self.dataset.relations:
            for fact in self.dataset.facts(relation.id):
                for thing in () if APART in fact.tags else fact.objects:
                    pair = (fact.subject, thing)
                    subject, object = clean(fact.subject.name), clean(thing.name)
                    yield Triple(relation.id, subject, object, fact.details, pair)


def triple_files(place: Path) -> TripleFiles:
    """A file of triples, or all such files in a folder and below it."""
    if not place.exists():
        raise DataError(f"{place} does not exist; give a file or folder of triples in JSON lines")
    if place.is_dir():
        paths = sorted(p for p in place.rglob("*") if p.name.endswith(ENDINGS) and p.is_file())
    else:
        paths = [place] if place.name.endswith(ENDINGS) else []
    if not paths:
        raise DataError(f"{place} holds no triples; they stand in files that end in .jsonl(.gz)")
    size = sum(path.stat().st_size for path in paths)
    return TripleFiles(name=place.name, paths=tuple(paths), size=size)


def clean(name: str) -> str:
    """A name without spare spaces or line breaks, which would pass for separators.

    >>> clean(" New  York\\n")
    'New York'
    """
    return " ".join(name.split())


def _read_file(path: Path, faults: Faults, tick: Tick) -> Iterator[Triple]:
    folder = path.resolve().parent.name
    try:
        for number, raw in enumerate(_lines(path, tick), 1):
            try:
                triple = _quick(raw) or _close(raw, path, number, folder)
            except DataError as fault:
                faults.add(fault)
                continue
            if triple is not None:
                yield triple
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} cannot be unpacked: {error}; is it whole?") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None


def _lines(path: Path, tick: Tick) -> Iterator[bytes]:
    with path.open("rb") as file:
        unpacked: Iterable[bytes] = file
        if path.suffix == ".gz":
            unpacked = gzip.GzipFile(fileobj=file)
        yield from _ticking(unpacked, file, tick)


def _ticking(lines: Iterable[bytes], file: BinaryIO, tick: Tick) -> Iterator[bytes]:
    told = 0
    for number, line in enumerate(lines):
        if number % EVERY == EVERY - 1:
            tick(file.tell() - told)
            told = file.tell()
        yield line
    tick(file.tell() - told)


def _quick(raw: bytes) -> Triple | None:
    """The triple of a sound row in the published form; None where the row needs a closer look."""
    try:
        row = _decode(raw)
        relation, subject, object = (clean(row[key]) for key in ("relation", "head", "tail"))
    except (*UNSOUND, KeyError, AttributeError):
        return None
    return Triple(relation, subject, object, row) if relation and subject and object else None


def _close(raw: bytes, path: Path, number: int, folder: str) -> Triple | None:
    """The triple of any row, None for a blank one; a complaint says what is wrong and where."""
    try:
        line = raw.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{path}, line {number}: not UTF-8 ({error.reason})") from None
    if not line.strip():
        return None
    row = row_of(line, path, number)
    subject, object = _columns(row)
    relation = row.text("relation", folder if subject == "sub" else None)
    names = (clean(row.text(subject)), clean(row.text(object)))
    return Triple(clean(relation), *names, row.values)


def _columns(row: Row) -> tuple[str, str]:
    for subject, object in (("head", "tail"), ("sub", "obj")):
        if subject in row.values or object in row.values:
            return subject, object
    raise row.fault(
        "expected the columns 'head', 'relation' and 'tail' (or 'sub' and 'obj')",
        ", ".join(map(str, row.values)) or None,
    )
