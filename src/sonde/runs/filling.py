"""Fill a run folder: answer every shard that is not there, and keep it. Knows nothing of probes.

A model answers one shard after the other; one that stands for several workers has them answered
side by side. What is kept is the same. How much goes through the model at once is settled before
the first shard and kept in the manifest, beside what decides the answers: a measurement may come
out otherwise another time, and shards must not.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from sonde.core.abilities import WANTED, Batching, Model, Prefetches
from sonde.core.costs import Batches
from sonde.core.progress import heard
from sonde.core.prompts import Block, Generate, Prompts, Sample
from sonde.core.threads import Behind
from sonde.runs.shards import Effort, answer, weights
from sonde.store.manifest import versions
from sonde.store.rows import Answering
from sonde.store.runs import Writer, encoded

log = logging.getLogger(__name__)

Numbered = tuple[int, Prompts]
"""A shard's number, and what it asks."""

Made = Iterator[tuple[int, Callable[[], memoryview]]]
"""Numbers of shards that are answered, each with what makes the bytes that are kept."""

LARGE = 2**22
"""Work, as shards are weighed, from which a second of measuring pays; of texts, times tokens."""


def amount(block: Block) -> int:
    """How much there is to compute for a block."""
    want = block.want
    tokens = want.most if isinstance(want, Generate | Sample) else 1
    texts = want.count if isinstance(want, Sample) else 1
    return int(weights(block).sum()) * tokens * texts


def settle(model: Model, found: Batches, *, begun: bool, work: int) -> Batches:
    """What goes through the model at once in a run.

    `found`: what the manifest says, which holds if it says anything. `begun`: whether there are
    shards; a version that kept nothing in the manifest has made them as it always did. A number
    that the user gave wins, and is the run's own while there are none; another kind of device has
    its own, but shards stay as large as they are.
    """
    if not isinstance(model, Batching):
        return found
    budgets = model.budgets
    if found.tokens and (begun or not budgets.given):
        batches = found
    elif begun:
        batches = Batches(tokens=dict(budgets.former), device=budgets.device)
    else:
        batches = budgets.choose(measure=work >= LARGE)
    if not budgets.given:
        elsewhere = batches.tokens and batches.device != budgets.device
        budgets.fix(budgets.choose(measure=False).tokens if elsewhere else batches.now)
    return batches


@dataclass(slots=True, kw_only=True)
class Watch:
    """Keeps an eye on the budgets of a model while a run is made."""

    writer: Writer
    model: Model
    batches: Batches
    before: dict[str, int] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)

    def enter(self, shard: Prompts) -> None:
        """Note with how much a session begins, and say where that is not what the run began with.

        Of each kind of work that the session's shards ask for, once.
        """
        if not isinstance(self.model, Batching):
            return
        self.before = self.before or dict(self.model.budgets.tokens)
        begun = self.batches.now
        for kind in {WANTED[type(block.want)]: None for block in shard.blocks}:
            count, here = begun.get(kind), self.before.get(kind)
            if kind not in self.asked and count and here and count != here:
                log.warning(
                    "%s was begun with %s tokens at once to %s; from here on it is %s, and the "
                    "last digits of answers may differ",
                    self.writer.folder.path,
                    f"{count:,}",
                    kind,
                    f"{here:,}",
                )
            self.asked.add(kind)

    def look(self) -> None:
        """Say what memory that ran out has left, and keep it before the next shard is written."""
        if not isinstance(self.model, Batching):
            return
        now = dict(self.model.budgets.tokens)
        less = {kind: count for kind, count in now.items() if count < self.before[kind]}
        for kind, count in less.items():
            log.warning(
                "memory ran out: to %s, %s tokens go through the model at once from here on "
                "(before: %s)",
                kind,
                f"{count:,}",
                f"{self.before[kind]:,}",
            )
        if less:
            self.batches = replace(self.batches, halved={**self.batches.halved, **less})
            self.writer.fix(self.batches)
        self.before = now


@runtime_checkable
class AnswersShards(Protocol):
    """A model that stands for workers who answer whole shards side by side."""

    @property
    def count(self) -> int:
        """How many workers there are."""

    def answer_shards(self, shards: Iterator[Numbered], effort: Effort) -> Made:
        """Yield each shard once it is answered, in any order, telling how far all of them are."""

    def close(self) -> None:
        """End the workers."""


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
