"""Further objects from five million triples: rows per second, and is memory flat?

Triples with identifiers, a fifth of them about the pairs of a base of 25,000, are written to disk.
Another process finds the base's objects among them, as `sonde data build myriadlama` does, and
again among a tenth of them. Its peak memory is counted from where everything is imported and the
base is there. Parsing the rows with json alone stands beside as the least that a pass can take.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.common import PART, Result, measure_rows, memory_now, memory_peak

NAME = "build_objects"
PAIRS = 25_000
RELATIONS = 41
OBJECTS = 3
"""That triples name for a pair."""

STRANGERS = 3_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What the other process measured; bytes beyond those it held before it read a row."""

    rows: int
    matched: int
    objects: int
    reading: float
    parsing: float
    peak: int


def main() -> None:
    """Measure, print, and store where asked."""
    measure_rows(NAME, __doc__, lines, child, Measured, as_result)


def lines(rows: int) -> Iterator[str]:
    """Triples: a fifth about pairs of the base, others about other subjects."""
    draw = Random(0)
    for _ in range(rows):
        known = draw.random() < 0.2
        subject = draw.randrange(PAIRS) if known else PAIRS + draw.randrange(STRANGERS)
        object = subject * OBJECTS + draw.randrange(OBJECTS)
        row = {
            "sub_label": f"The subject {subject}",
            "sub_uri": f"Q{subject}",
            "relation": f"P{subject % RELATIONS}",
            "obj_label": f"object {object}",
            "obj_uri": f"Q{10**7 + object}",
        }
        yield json.dumps(row) + "\n"


def child(folder: Path) -> Measured:
    """Find objects in this process, as the command does, then parse the rows with json alone."""
    from sonde.core.facts import Card, Dataset, Entity, Fact, Relation
    from sonde.data.builders.myriadlama.objects import mine
    from sonde.data.builders.triples import Faults
    from sonde.data.builders.work import Journal

    relations = tuple(Relation(id=f"P{n}", label=f"relation {n}") for n in range(RELATIONS))
    facts = {
        relation.id: [
            Fact(
                id=f"{relation.id}:Q{n}",
                relation=relation.id,
                subject=Entity(id=f"Q{n}", names=(f"The subject {n}",)),
                objects=(Entity(id=f"Q{10**7 + n * OBJECTS}", names=("an object",)),),
            )
            for n in range(int(relation.id[1:]), PAIRS, RELATIONS)
        ]
        for relation in relations
    }
    base = Dataset(
        card=Card(name="base"), relations=relations, read=facts.__getitem__, fingerprint="base"
    )
    path, held = folder / "triples.jsonl", base.size
    loaded = memory_now()
    began = time.perf_counter()
    mined = mine(base, [path], Journal(folder / "journal.jsonl"), Faults(limit=0))
    read, peak = time.perf_counter(), memory_peak()
    assert held == PAIRS
    with path.open("rb") as file:
        for line in file:
            json.loads(line)
    return Measured(
        rows=mined.rows,
        matched=mined.matched,
        objects=sum(map(len, mined.objects.values())),
        reading=read - began,
        parsing=time.perf_counter() - read,
        peak=peak - loaded,
    )


def as_result(part: Measured, whole: Measured) -> Result:
    """The table."""
    both = (part, whole)
    rows = (
        ("rows", *(f"{m.rows:,}" for m in both)),
        ("of pairs of the base", *(f"{m.matched:,}" for m in both)),
        ("objects found", *(f"{m.objects:,}" for m in both)),
        ("one pass, s", *(f"{m.reading:.1f}" for m in both)),
        ("rows/s", *(f"{m.rows / m.reading:,.0f}" for m in both)),
        ("rows/s, json alone", *(f"{m.rows / m.parsing:,.0f}" for m in both)),
        ("peak memory, MiB beyond the base", *(f"{m.peak / 2**20:,.0f}" for m in both)),
    )
    grown = whole.peak / part.peak
    return Result(
        name=NAME,
        title="Further objects from triples",
        columns=("measured", "a tenth", "all"),
        rows=rows,
        findings=(f"{PART} times the rows take {grown:.2f} times the memory.",),
    )


if __name__ == "__main__":
    main()
