"""Work of `benchmarks.line`, run in this checkout. Prints JSON.

A masked model answers at once, so that everything but the model is measured.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

from benchmarks.common import memory_now, memory_peak

OBJECTS = 10
LARGE = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Seconds of answering and storing, of judging with one estimate, of the report; bytes of
    shards and of memory beyond imports."""

    prompts: int
    asking: float
    judging: float
    reading: float
    stored: int
    peak: int


def child(data: str, pairs: int, watched: int, prompts: int) -> Asked:
    """Ask a model that answers at once, store, and read the report."""
    import sonde
    from sonde.data.catalog import load
    from sonde.evaluation.estimate import estimate
    from sonde.evaluation.metrics import mean
    from sonde.evaluation.tables import collect_results
    from sonde.reports.build import build
    from sonde.reports.further import estimate_with_breakdowns

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
            results = collect_results(probe, dataset, run.answers())
            estimate(results, [mean("correct", "correct")], over=["facts"])
            del results
        judged = time.perf_counter()
        results = collect_results(probe, dataset, run.answers())
        build(results, estimate_with_breakdowns(results))
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
    """BELIEF, with the relation's names as targets, or so many."""
    from sonde.probes.belief import Belief

    class Watching(Belief):
        answerable_only = False  # without targets nothing has a rank

        def prompts(self, data: Any) -> Iterator[Any]:
            for batch in Belief.prompts(self, data):
                request: Any = batch.request
                if count is not None:
                    more = tuple(f"name {i}" for i in range(count))
                    targets = (*request.targets, *more)[:count]
                    request = structs.replace(request, targets=targets)
                yield replace(batch, request=request)

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


print(json.dumps(asdict(child(**json.loads(sys.argv[1])))))
