"""The whole line, from a command to its report, beside the first shape of the program.

Whole commands of both are run in turn, the better of two each: the first shape from a checkout of
its commit; processor seconds stand in brackets. With a masked model that answers at once it is told
what asking and storing take by themselves, and how large the shards are; a million judged prompts
are read, judged and estimated.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import ROOT, Result, checkout, memory_now, memory_peak, parser, tell

FIRST = "5389400"
"""The last commit of the first shape."""

NAMES = 258
OBJECTS = 10
"""Of each relation of an invented world; all of them are watched."""

LARGE = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What asking and storing took, then judging with one estimate, then the whole report; bytes of
    shards, memory beyond imports."""

    prompts: int
    asking: float
    judging: float
    reading: float
    stored: int
    peak: int


def main() -> None:
    """Measure, print, and store where asked."""
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--names", type=int, default=NAMES, help="watched names of a prompt")
    options.add_argument("--pairs", type=int, default=24_643, help="pairs at full size")
    options.add_argument("--skip-large", action="store_true", help="leave 6.5 million prompts out")
    options.add_argument("--child", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.child:
        print(json.dumps(asdict(child(**json.loads(given.child)))))
        return
    shared = Path(os.environ["SONDE_SHARED"]) / "data"
    data = f"lama:{shared / 'lama'}+pararel:{shared / 'pararel'}"
    rows = [*commands(data)]
    for title, watched in (("no watched names", 0), (f"{given.names} watched names", given.names)):
        found = in_a_process(data=data, pairs=0, watched=watched)
        rows.append(as_row(f"answered at once, {title}", found))
    rows.append(as_row("a million prompts in 30,000 pairs", in_a_process("", 30_000, 0, 1_000_000)))
    if not given.skip_large:
        found = in_a_process(data="", pairs=given.pairs, watched=0, prompts=6_500_000)
        rows.append(as_row("MyriadLAMA's size", found))
    tell(
        Result(
            name="line",
            title="The whole line: belief on LAMA × ParaRel, and blocks answered at once",
            columns=("work", "first shape", "now", "ratio"),
            rows=tuple(rows),
        ),
        write=given.write,
    )


def commands(data: str) -> Iterator[tuple[str, ...]]:
    """`sonde run` and `sonde report` of both shapes, in turn."""
    with tempfile.TemporaryDirectory() as folder, checkout(Path(folder) / "first", FIRST) as first:
        run = ["run", "belief", "-m", "control:majority", "-d", data, "-o"]
        times: dict[str, list[tuple[float, float]]] = {}
        for name, root in (("first", first), ("now", ROOT), ("now", ROOT), ("first", first)):
            out = Path(folder) / f"run-{name}"
            shutil.rmtree(out, ignore_errors=True)
            times.setdefault(f"run {name}", []).append(command(root, [*run, str(out)]))
            report = ["report", str(out)]
            times.setdefault(f"report {name}", []).append(command(root, report))
    for verb, told in (("run", "sonde run belief -m control:majority"), ("report", "sonde report")):
        found = (map(min, zip(*times[f"{verb} {name}"], strict=True)) for name in ("first", "now"))
        (old, spent), (new, spent_now) = found
        yield (
            told,
            f"{old:.1f} s ({spent:.1f})",
            f"{new:.1f} s ({spent_now:.1f})",
            f"{old / new:.1f}",
        )


def command(root: Path, words: list[str]) -> tuple[float, float]:
    """How long a whole command takes, and what all its threads together spend.

    Modules stay compiled from one run to the next, as those of an installed program do.
    """
    code = "from sonde.cli.main import entry; entry()"
    paths = {**os.environ, "PYTHONPATH": str(root / "src")}
    paths.pop("PYTHONDONTWRITEBYTECODE", None)
    before, began = spent_by_children(), time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", code, *words], env=paths, check=True, capture_output=True, cwd=root
    )
    return time.perf_counter() - began, spent_by_children() - before


def spent_by_children() -> float:
    """Processor seconds of all commands so far."""
    spent = os.times()
    return spent.children_user + spent.children_system


def as_row(title: str, found: Asked) -> tuple[str, ...]:
    """One measurement without an older one beside it."""
    asked = f"{found.prompts / found.asking:,.0f} prompts/s, {found.stored / found.prompts:.0f} B"
    judged = f"judged and estimated in {found.judging:.1f} s, " if found.prompts < LARGE else ""
    read = f"{judged}whole report {found.reading:.1f} s"
    told = f"{asked}; {read}; {found.peak / 2**20:.0f} MiB"
    return f"{title} ({found.prompts:,})", "", told, ""


def in_a_process(data: str, pairs: int, watched: int, prompts: int = 0) -> Asked:
    """Measure in a process of its own, so that memory is counted from its imports."""
    given = json.dumps({"data": data, "pairs": pairs, "watched": watched, "prompts": prompts})
    words = [sys.executable, "-m", "benchmarks.line", "--child", given]
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
    return Asked(**json.loads(done.stdout.splitlines()[-1]))


def child(data: str, pairs: int, watched: int, prompts: int) -> Asked:
    """Ask a model that answers at once, store, and read the report."""
    import sonde
    from sonde.data.catalog import load

    sonde.dataset("atlas", limit=1)  # what is imported late is imported now
    before = memory_now()
    dataset = load(data) if data else world(pairs, -(-prompts // pairs))
    probe: Any = watching(watched if data else None)
    assert dataset.size  # facts are read: what follows is asking
    with tempfile.TemporaryDirectory() as folder:
        out, model = Path(folder) / "run", AtOnce(watched if data else OBJECTS)
        began = time.perf_counter()
        run = sonde.run(probe, model, dataset, out)
        asked = time.perf_counter()
        prompts = run.provenance()["run"]["prompts"]
        if prompts < LARGE:  # a frame with the names of everything is no way to keep millions
            frame = sonde.judge(dataset, run.answers())
            right = sonde.Metric("right", "right", "percent", "share of right prompts")
            sonde.mean(right, frame, "right", cluster="subject")
            del frame
        judged = time.perf_counter()
        probe.read(dataset, run.answers())
        done = time.perf_counter()
        stored = sum(f.stat().st_size for f in (Path(folder) / "run/shards").glob("*.parquet"))
    return Asked(
        prompts=prompts,
        asking=asked - began,
        judging=judged - asked,
        reading=done - judged,
        stored=stored,
        peak=memory_peak() - before,
    )


def watching(count: int | None) -> Any:
    """BELIEF, watching the relation's own names, or so many."""
    from sonde.core.prompts import Fill
    from sonde.probes.belief.probe import Belief

    class Watching(Belief):
        def _want(self, dataset: Any, relation: Any) -> Any:
            own = Belief._want(self, dataset, relation)
            more = tuple(f"name {i}" for i in range(count or 0))
            assert isinstance(own, Fill)
            return own if count is None else replace(own, watched=(*own.watched, *more)[:count])

    return Watching(answer="fill")


class AtOnce:
    """A masked model that has its answers ready: random, so that nothing is packed together."""

    def __init__(self, watched: int) -> None:
        from sonde.core.abilities import Identity

        self.identity = Identity(name="at-once", architecture="none")
        rng = np.random.default_rng(0)
        self.names = [f"word{i}" for i in range(30_000)]
        self.top = rng.zipf(1.3, (2**16, 5)).clip(0, 29_999).astype(np.int32)
        self.logps = -np.sort(rng.exponential(2, (2**16, 5)).astype(np.float32))
        self.watched = -rng.exponential(8, (2**16, watched)).astype(np.float32)
        self.ranks = rng.zipf(1.3, (2**16, watched)).clip(1, 30_000).astype(np.int32)

    def fill(self, prompts: Any) -> Iterator[tuple[Any, Any]]:
        """Yield (positions, answers), a block at a time."""
        from sonde.core.columns import FilledColumns

        for block, start in zip(prompts.blocks, prompts.starts, strict=False):
            count, names = len(block), block.want.watched
            yield (
                np.arange(start, start + count),
                FilledColumns(
                    names=self.names,
                    top=self.top[:count],
                    top_logps=self.logps[:count],
                    mass=np.zeros(count, dtype=np.float32),
                    watched=names,
                    watched_logps=self.watched[:count, : len(names)],
                    watched_ranks=self.ranks[:count, : len(names)],
                ),
            )


def world(pairs: int, prompts: int) -> Any:
    """So many pairs, each with so many prompts, in relations of about 600."""
    from sonde.core.facts import Card, Dataset, Entity, Fact, Relation, Template

    count = -(-pairs // 600)
    made = tuple(
        Relation(
            id=f"R{r}",
            label=f"relation {r}",
            kind="N-1",
            templates=tuple(
                Template(id=f"R{r}-{t}", text=f"In wording {t}, [X] belongs to [Y].", group="")
                for t in range(min(prompts, 100))
            ),
        )
        for r in range(count)
    )
    names = -(-prompts // 100)

    def facts(relation: str) -> Iterator[Fact]:
        for n in range(-(-pairs // count)):
            own = tuple(f"The subject {n} of {relation}, name {i}" for i in range(names))
            yield Fact(
                id=f"{relation}:{n}",
                relation=relation,
                subject=Entity(id=f"s{n}", names=own),
                objects=(Entity(id=f"o{n % OBJECTS}", names=(f"object{n % OBJECTS}",)),),
            )

    return Dataset(card=Card(name="large"), relations=made, read=facts, fingerprint="large")


if __name__ == "__main__":
    main()
