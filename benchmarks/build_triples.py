"""Five million triples into multiple-choice facts: rows per second, and is memory flat?

Triples of many relations, most of them too small or with too few objects, are written to disk.
Another process builds a dataset from them, as `sonde data build trex-mc` does, and again from a
tenth of them. Its peak memory is counted from where everything is imported. Parsing the rows with
json alone, once, stands beside as the least that a pass can take.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.common import PART, Result, measure_rows, memory_now, memory_peak

NAME = "build_triples"
LARGE = 50
LOPSIDED = 150
SMALL = 400
MANY = 20_000
FEW = 40
TEXT = "A sentence that stands for the abstract from which the triple was taken. " * 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What the other process measured; bytes beyond those it held after importing."""

    rows: int
    relations: int
    left_out: int
    facts: int
    reading: float
    writing: float
    parsing: float
    peak: int


def main() -> None:
    """Measure, print, and store where asked."""
    measure_rows(NAME, __doc__, lines, child, Measured, as_result)


def lines(rows: int) -> Iterator[str]:
    """Triples: half of relations that qualify, most others with few objects, some very small."""
    draw = Random(0)
    for number in range(rows):
        share = draw.random()
        if share < 0.5:
            relation, objects = f"large {draw.randrange(LARGE)}", MANY
        elif share < 0.998:
            relation, objects = f"few objects {draw.randrange(LOPSIDED)}", FEW
        else:
            relation, objects = f"small {draw.randrange(SMALL)}", MANY
        row = {
            "head": f"The subject {draw.randrange(rows)}",
            "relation": relation,
            "tail": f"object {draw.randrange(objects)} of {relation}",
            "title": f"Page {number}",
            "text": TEXT,
        }
        yield json.dumps(row) + "\n"


def child(folder: Path) -> Measured:
    """Build in this process, as the command does, then parse the rows with json alone."""
    from sonde.data.builders import write_whole
    from sonde.data.builders.trex_mc import Recipe, build
    from sonde.data.builders.triples import triple_files

    path = folder / "triples.jsonl"
    loaded = memory_now()
    began = time.perf_counter()
    built = build([triple_files(path)], Recipe())
    read = time.perf_counter()
    write_whole(built.dataset, folder / "made")
    written, peak = time.perf_counter(), memory_peak()
    with path.open("rb") as file:
        for line in file:
            json.loads(line)
    return Measured(
        rows=built.rows,
        relations=len(built.kept),
        left_out=len(built.failed),
        facts=sum(tally.train + tally.test for tally in built.kept),
        reading=read - began,
        writing=written - read,
        parsing=time.perf_counter() - written,
        peak=peak - loaded,
    )


def as_result(part: Measured, whole: Measured) -> Result:
    """The table."""
    rows = (
        ("rows", *(f"{m.rows:,}" for m in (part, whole))),
        ("relations kept / left out", *(f"{m.relations} / {m.left_out}" for m in (part, whole))),
        ("facts written", *(f"{m.facts:,}" for m in (part, whole))),
        ("both passes and all draws, s", *(f"{m.reading:.1f}" for m in (part, whole))),
        ("writing, s", *(f"{m.writing:.1f}" for m in (part, whole))),
        ("rows/s, all included", *(f"{_rate(m):,.0f}" for m in (part, whole))),
        ("rows/s, json alone, one pass", *(f"{m.rows / m.parsing:,.0f}" for m in (part, whole))),
        ("peak memory, MiB beyond imports", *(f"{m.peak / 2**20:,.0f}" for m in (part, whole))),
    )
    grown = whole.peak / part.peak
    return Result(
        name=NAME,
        title="Building from triples",
        columns=("measured", "a tenth", "all"),
        rows=rows,
        findings=(f"{PART} times the rows take {grown:.2f} times the memory.",),
    )


def _rate(measured: Measured) -> float:
    return measured.rows / (measured.reading + measured.writing)


if __name__ == "__main__":
    main()
