"""Fill a run folder: answer every shard that is not there, and keep it. Knows nothing of probes.

A model answers one shard after the other; one that stands for several workers has them answered
side by side. What is kept is the same.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from sonde.core.abilities import Batching, Model, Prefetches
from sonde.core.progress import heard
from sonde.core.prompts import Prompts
from sonde.core.threads import Behind
from sonde.runs.batches import Watch
from sonde.runs.effort import Effort
from sonde.runs.shards import answer
from sonde.store.manifest import versions
from sonde.store.rows import Answering
from sonde.store.runs import encoded

log = logging.getLogger(__name__)

Numbered = tuple[int, Prompts]
"""A shard's number, and what it asks."""

Made = Iterator[tuple[int, Callable[[], memoryview]]]
"""Numbers of shards that are answered, each with what makes the bytes that are kept."""


@runtime_checkable
class AnswersShards(Protocol):
    """A model that stands for workers who answer whole shards side by side."""

    @property
    def count(self) -> int:
        """How many workers there are."""

    def answer_shards(self, shards: Iterator[Numbered], effort: Effort) -> Made:
        """Yield each shard once it is answered, in any order, telling how far all of them are."""


@dataclass(slots=True, kw_only=True)
class Tally:
    """Shards and prompts that a run was found to have, and prompts that this session answered."""

    shards: int = 0
    prompts: int = 0
    computed: int = 0
    asked: dict[int, int] = field(default_factory=dict)


def fill_folder(watch: Watch, behind: Behind, cut: Iterable[Prompts], effort: Effort) -> None:
    """Answer what is missing of a run, and say that the run is whole."""
    writer, model, tally = watch.writer, watch.model, Tally()
    began, clock = time.time(), time.monotonic()
    missing = _missing(watch, cut, effort, tally)
    if isinstance(model, AnswersShards):
        made = model.answer_shards(missing, effort)
    else:
        made = _alone(watch, missing, effort)
    try:
        for number, make in made:
            watch.look()
            # a shard is written while the next one is answered
            behind.do(make, partial(writer.append, number))
            tally.computed += tally.asked.pop(number)
        effort.told(tally.prompts, tally.prompts)
        behind.wait()
        writer.finish(tally.shards, tally.prompts)
    finally:
        if tally.computed:
            writer.log(_session(model, began, time.monotonic() - clock, tally.computed))
    if not tally.computed:
        log.info("%s was complete: the model was not asked anything", writer.folder.path)


def _missing(
    watch: Watch, cut: Iterable[Prompts], effort: Effort, tally: Tally
) -> Iterator[Numbered]:
    """The shards that are not there; those that are count as answered."""
    begun = False
    for number, shard in enumerate(cut):
        held = watch.writer.holds(number, shard)
        if held:
            effort.leave(shard)
        elif not begun:
            begun = True
            effort.tell()
            _say_where(watch.writer.folder.path, tally.prompts, effort.prompts)
        tally.shards, tally.prompts = number + 1, tally.prompts + len(shard)
        if not held:
            watch.enter(shard)
            tally.asked[number] = len(shard)
            yield number, shard


def _say_where(folder: Path, done: int, total: int) -> None:
    """A run that goes on says from where."""
    if done:
        log.info("%s: going on after %d of %d", folder, done, total)


def _alone(watch: Watch, missing: Iterator[Numbered], effort: Effort) -> Made:
    """Shards that one model answers, one after the other."""
    for found, after in pairwise(chain(missing, [None])):
        assert found is not None
        number, shard = found
        effort.enter(shard)
        answers = answer_shard(watch.model, shard, [after[1]] if after else [], effort)
        yield number, partial(encoded, answers, watch.model.identity)


def answer_shard(
    model: Model, shard: Prompts, following: Iterable[Prompts], effort: Effort
) -> Answering:
    """Have a model answer a shard, while it may prepare those that follow."""
    answers = Answering(shard)
    if isinstance(model, Prefetches):
        for prompts in (shard, *following):
            model.prefetch(prompts)
    with heard(effort):
        for position, result in answer(model, shard):
            answers.add(position, result)
            effort.answer(position)
    return answers


def _session(model: Model, began: float, seconds: float, prompts: int) -> dict[str, Any]:
    """What one session computed, on what: a run may go on elsewhere."""
    return {
        "began": round(began, 3),
        "seconds": round(seconds, 3),
        "prompts": prompts,
        "model": dict(model.identity.details),
        "versions": versions(),
        "batches": dict(model.budgets.tokens) if isinstance(model, Batching) else {},
        "workers": model.count if isinstance(model, AnswersShards) else 1,
    }
