"""Two million prompts through the whole line: how much memory, and is it as fast at the end?

A dataset of that size is written to disk; another process opens it, asks the scripted model, stores
the answers, reads them back and writes the report, as `sonde run` does. Its peak memory is counted
from where it has opened the dataset and loaded the model. With `--on` workers answer, and it is
their driver's memory that is counted: with `--on local:2 ray:2` those of processes, then of Ray.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import Result, elsewhere, memory_now, memory_peak, parser, tell
from sonde.core.facts import Card, Dataset, Entity, Fact, Relation, Template
from sonde.core.threads import cores
from sonde.data.format import open_dataset, write_dataset

NAME = "flat_memory"
RELATIONS = 20
OBJECTS = 10
KNOWN = 100
EVERY = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What the other process measured; bytes beyond those it held after loading.

    `early` and `late`: held after a tenth of the prompts and after all of them.
    """

    prompts: int
    asking: float
    reading: float
    after_asking: int
    peak: int
    first: float
    last: float
    early: int
    late: int


def main() -> None:
    """Measure, print, and store where asked."""
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--prompts", type=int, default=2_000_000)
    options.add_argument("--answer", choices=["fill", "score"], default="fill")
    options.add_argument("--relations", type=int, default=RELATIONS)
    options.add_argument("--on", nargs="*", default=[])
    options.add_argument("--child", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.child:
        print(json.dumps(asdict(child(Path(given.child), given.answer, "".join(given.on)))))
        return
    load = os.getloadavg()[1]
    found = {
        on: measure(given.prompts, given.answer, given.relations, on) for on in given.on or [""]
    }
    tell(as_result(found, load), write=given.write)


def measure(
    prompts: int, answer: str = "fill", relations: int = RELATIONS, on: str = ""
) -> Measured:
    """Write the dataset, and put it through the line in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        write_dataset(world(prompts, relations), Path(folder) / "data")
        return elsewhere(NAME, Measured, folder, "--answer", answer, "--on", *filter(None, [on]))


def world(prompts: int, relations: int) -> Dataset:
    """A dataset with so many facts, made up as they are read."""
    each = -(-prompts // relations)
    made = tuple(
        Relation(
            id=f"R{i}",
            label=f"relation {i}",
            kind="N-1",
            templates=(Template(id=f"R{i}-1", text=f"[X] belongs to group {i}, [Y].", group=""),),
        )
        for i in range(relations)
    )
    return Dataset(
        card=Card(name="million"),
        relations=made,
        read=lambda id: (fact(id, n) for n in range(each)),
        fingerprint="",
    )


def fact(relation: str, number: int) -> Fact:
    """The fact of that number."""
    answer = (number * 7919) % OBJECTS
    return Fact(
        id=f"{relation}:{number}",
        relation=relation,
        subject=Entity(id=f"s{number}", names=(f"The subject {number}",)),
        objects=(Entity(id=f"{relation}o{answer}", names=(f"object {answer}",)),),
    )


def child(folder: Path, answer: str, on: str) -> Measured:
    """The whole line in this process, as `sonde run` goes through it."""
    import sonde
    from sonde.reports.terminal import show

    dataset = open_dataset(folder / "data")
    model = scripted(dataset)
    if on:  # each worker reads the table for itself
        (folder / "table.json").write_text(json.dumps({"answers": dict(model.answers)}))
        model = f"scripted:{folder / 'table.json'}"
    probe = sonde.probe("lama", answer=answer)
    loaded = memory_now()
    marks: list[tuple[int, float]] = []
    held: list[int] = []
    began = time.perf_counter()
    run = sonde.run(
        probe,
        model,
        dataset,
        folder / "run",
        on=on,
        progress=lambda done, total: _mark(marks, held, int(done), total),
    )
    asked, after_asking = time.perf_counter(), memory_peak()
    if not on:  # reading is the same whoever answered
        report = run.report()
        (folder / "report.html").write_text(report.to_html(), encoding="utf-8")
        show(report, _quiet())
    done = time.perf_counter()
    prompts = marks[-1][0]
    return Measured(
        prompts=prompts,
        asking=asked - began,
        reading=done - asked,
        after_asking=after_asking - loaded,
        peak=memory_peak() - loaded,
        first=rate(marks, 0.0, 0.1),
        last=rate(marks, 0.9, 1.0),
        early=held[0] - loaded,
        late=held[-1] - loaded,
    )


def scripted(dataset: Dataset) -> Any:
    """The scripted model; it knows one fact in a hundred."""
    from sonde.models.scripted import Scripted

    facts = (f for r in dataset.relations for f in dataset.facts(r.id))
    some = (f for i, f in enumerate(facts) if i % KNOWN == 0)
    return Scripted(answers={f.id: f.objects[0].name for f in some})


def rate(marks: list[tuple[int, float]], start: float, stop: float) -> float:
    """Prompts per second between two shares of a run."""
    total = marks[-1][0]
    inside = [m for m in marks if start * total <= m[0] <= stop * total]
    (done_first, first), (done_last, last) = inside[0], inside[-1]
    return (done_last - done_first) / (last - first)


def as_result(found: dict[str, Measured], load: float) -> Result:
    """The table: a column for each place that workers have, or one where there are none.

    `load`: the machine's before anything was measured.
    """
    columns = [_values(each) for each in found.values()]
    rows = tuple((name, *(column[name] for column in columns)) for name in columns[0])
    if "" in found:
        return Result(name=NAME, title="Flat memory", columns=("measured", "value"), rows=rows)
    told = [row for row in rows if "read back" not in row[0] and "whole" not in row[0]]
    return Result(
        name=f"{NAME}_workers",
        title="Flat memory of the driver of workers",
        columns=("measured", *found),
        rows=tuple(told),
        findings=(
            f"The machine's load was {load:.1f} on {cores()} cores before and "
            f"{os.getloadavg()[1]:.1f} after; seconds mean something on a quiet one.",
        ),
    )


def _values(found: Measured) -> dict[str, str]:
    mib = 2**20
    return {
        "prompts": f"{found.prompts:,}",
        "asked, answered and stored, s": f"{found.asking:.0f}",
        "read back and reported, s": f"{found.reading:.0f}",
        "prompts/s, whole line": f"{found.prompts / (found.asking + found.reading):,.0f}",
        "prompts/s, first tenth of the shards": f"{found.first:,.0f}",
        "prompts/s, last tenth of the shards": f"{found.last:,.0f}",
        "held after a tenth of the prompts, MiB beyond the model": f"{found.early / mib:,.0f}",
        "held after all of them, MiB beyond the model": f"{found.late / mib:,.0f}",
        "peak while asking, MiB beyond the model": f"{found.after_asking / mib:,.0f}",
        "peak of the whole line, MiB beyond the model": f"{found.peak / mib:,.0f}",
    }


def _mark(marks: list[tuple[int, float]], held: list[int], done: int, total: float) -> None:
    if (not held and 10 * done >= total) or done == total:
        held.append(memory_now())
    if not marks or done - marks[-1][0] >= EVERY or done == total:
        marks.append((done, time.perf_counter()))


def _quiet() -> Any:
    import io

    from rich.console import Console

    return Console(file=io.StringIO(), width=100)


if __name__ == "__main__":
    main()
