"""Time a model on a few of a run's own prompts, and say how a run would be shorter.

The first prompts only warm the model up. After them come slices from places spread over the run,
growing until one takes a fair part of the time there is, since larger batches go faster. Knows
prompts and clocks, nothing of models.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sonde.core.abilities import Probe
from sonde.core.facts import Dataset
from sonde.core.prompts import Prompt, blocks_of
from sonde.runs.shards import weights

FIRST = 256
"""Work of the first slice, in tokens (or options, where tokens are not known)."""

MOST = 24
MARGIN = 0.2
STEP = 0.6180339887  # the golden ratio spreads places evenly, however many there come to be


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Prompts to measure with, shard by shard, and the work that each is."""

    shards: tuple[Sequence[Prompt], ...]
    work: tuple[Sequence[int], ...]

    def slice(self, number: int, size: int) -> Sequence[Prompt]:
        """Prompts that follow each other in one shard and are about so much work."""
        place = int((0.5 + number * STEP) % 1 * sum(map(len, self.shards)))
        shard = 0
        while place >= len(self.shards[shard]):
            place -= len(self.shards[shard])
            shard += 1
        work, start, stop = self.work[shard], place, place
        found = 0
        while found < size and stop - start < len(work):
            if stop < len(work):
                found, stop = found + work[stop], stop + 1
            else:
                found, start = found + work[start - 1], start - 1
        return self.shards[shard][start:stop]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One slice: its work, and how long it took."""

    work: int
    seconds: float

    @property
    def pace(self) -> float:
        """Seconds for one unit of work."""
        return self.seconds / self.work


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Seconds for one unit of work, with the range the slices span, and what it cost to know.

    `start`: seconds that come once, before the first answer. `spent`: seconds of the measurement.
    """

    value: float
    low: float
    high: float
    start: float
    slices: int
    spent: float


def measure(
    answer: Callable[[Sequence[Prompt]], object],
    work: Callable[[Sequence[Prompt]], int],
    pool: Pool,
    total: int,
    seconds: float,
) -> Throughput:
    """Put slices of the pool to a model for about so many seconds, or a fifth of `total` work."""
    warm_up = _timed(answer, work, pool.slice(0, FIRST))
    found: list[Measure] = []
    size = FIRST
    while not _enough(found, total, seconds - warm_up.seconds):
        found.append(_timed(answer, work, pool.slice(len(found) + 1, size)))
        if found[-1].seconds < seconds / 10:
            size = max(FIRST, min(2 * size, total // 10))
    return _pace(warm_up, found)


def _enough(found: Sequence[Measure], total: int, seconds: float) -> bool:
    if len(found) < 2:
        return False
    spent, done = sum(m.seconds for m in found), sum(m.work for m in found)
    return spent >= seconds or done >= total / 5 or len(found) >= MOST


def _timed(
    answer: Callable[[Sequence[Prompt]], object],
    work: Callable[[Sequence[Prompt]], int],
    prompts: Sequence[Prompt],
) -> Measure:
    units = max(work(prompts), 1)
    began = time.perf_counter()
    answer(prompts)
    return Measure(work=units, seconds=time.perf_counter() - began)


def _pace(warm_up: Measure, found: Sequence[Measure]) -> Throughput:
    """The pace of the larger slices; the range is never narrower than the margin."""
    largest = max(m.work for m in found)
    fair = [m for m in found if 2 * m.work >= largest]
    value = sum(m.seconds for m in fair) / sum(m.work for m in fair)
    paces = [m.pace for m in fair]
    return Throughput(
        value=value,
        low=min(min(paces), value * (1 - MARGIN)),
        high=max(max(paces), value * (1 + MARGIN)),
        start=max(0.0, warm_up.seconds - value * warm_up.work),
        slices=len(fair),
        spent=warm_up.seconds + sum(m.seconds for m in found),
    )


GOAL = 300.0
"""Seconds that a shorter run may take to be worth naming."""

LIMITS = (100, 50, 20, 10, 5, 2, 1)


def shorter(probe: Probe, dataset: Dataset, seconds: float) -> Iterator[tuple[str, float]]:
    """Flags that would make a run of so many seconds shorter, each with the seconds it would take.

    The limit is the largest that keeps within `GOAL`, or else 1.
    """
    work = total_work(probe, dataset)
    one = total_work(probe, limited(dataset, 1))
    fits = (n for n in LIMITS if n * one < work and n * one * seconds <= GOAL * work)
    limit = next(fits, 1)
    if one < work:
        yield f"--limit {limit}", seconds * total_work(probe, limited(dataset, limit)) / work
    from sonde.probes.vary import with_settings

    if getattr(probe, "template_source", "") == "all":
        manual = total_work(with_settings(probe, template_source="manual"), dataset)
        if manual < work:
            yield "--template-source manual", seconds * manual / work


def limited(dataset: Dataset, limit: int) -> Dataset:
    """The dataset with at most so many facts of each relation."""
    return dataset.select(replace(dataset.selection, limit=limit))


def total_work(probe: Probe, dataset: Dataset) -> int:
    """How much work all that a probe asks is, in the units of `weights`."""
    return sum(int(weights(block).sum()) for block in blocks_of(probe.ask(dataset)))
