"""The shards of a run: cut, answered and kept, and how far a run has come.

How much work prompts are decides how they are cut, and how far a run has come. A model answers one
shard after the other; one that stands for several workers has them answered side by side. What is
kept is the same. Knows nothing of what a probe means.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sonde.core.abilities import (
    Batching,
    KeepsCache,
    Model,
    Prefetches,
    Probe,
    ScoresAndGenerates,
    as_given,
    group_by_ability,
)
from sonde.core.answers import Answer
from sonde.core.columns import FilledColumns
from sonde.core.errors import AbilityError
from sonde.core.facts import Dataset
from sonde.core.progress import heard
from sonde.core.prompts import (
    Block,
    Fill,
    Generate,
    Prompt,
    Prompts,
    Sample,
    Score,
    Trace,
    blocks_of,
    put,
)
from sonde.core.rated import RatedColumns
from sonde.core.threads import Behind
from sonde.runs.batches import Watch
from sonde.store.manifest import versions
from sonde.store.rows import Answering
from sonde.store.runs import encoded

log = logging.getLogger(__name__)

SHARD_WEIGHT = 4096
"""What a shard holds: so many options or texts, or four times as many filled positions."""

OPTION = 4
"""What an option, or a text that is written, weighs when a filled position weighs 1."""

WATCHED = 512
"""Watched names of a filled position that weigh as much as the position itself."""

WEIGHED = 128
"""So many characters of a text that is read through weigh as much as an option."""


def asked(probe: Probe, model: Model, dataset: Dataset) -> Iterator[Block]:
    """What a probe asks, as the model is to be given it."""
    return as_given(model, blocks_of(probe.ask(dataset)))


def shards(asked: Iterable[Block] | Iterable[Prompt], weight: int) -> Iterator[Prompts]:
    """Cut prompts into shards of about equal work; the cut depends on the prompts alone."""
    shard: list[Block] = []
    carried = 0
    for block in blocks_of(asked):
        ends = np.cumsum(weights(block))
        start, before = 0, 0
        while start < len(block):
            # a shard is full with the prompt that brings it to its weight
            stop = int(np.searchsorted(ends, OPTION * weight - carried + before)) + 1
            shard.append(block.part(start, min(stop, len(block))))
            if stop > len(block):
                carried += int(ends[-1]) - before
                break
            yield Prompts(blocks=tuple(shard))
            shard, carried, start, before = [], 0, stop, int(ends[stop - 1])
    if shard:
        yield Prompts(blocks=tuple(shard))


def weights(block: Block) -> NDArray[np.int64]:
    """How much of a shard each prompt takes: by its options, by what is read or watched."""
    want, rows = block.want, len(block)
    if isinstance(want, Score):
        own = block.frame[block.own].list.len().to_numpy() if block.own else len(want.options)
        return np.full(rows, OPTION * np.maximum(own, 1))
    if isinstance(want, Trace):
        read = block.frame["prefix"].str.len_chars().to_numpy().astype(np.int64)
        return OPTION * (1 + read // WEIGHED)
    each = 1 + len(want.watched) // WATCHED if isinstance(want, Fill) else OPTION
    return np.full(rows, each)


def answer(
    model: Model, prompts: Sequence[Prompt]
) -> Iterator[tuple[Any, Answer | FilledColumns | RatedColumns]]:
    """Yield (position, answer), or (positions, columns), each block by the ability it wants."""
    prompts = put(prompts)
    if isinstance(model, KeepsCache):
        model.reset_cache()  # answers are to depend on their own shard alone
    joins = isinstance(model, ScoresAndGenerates)
    for way, numbers in group_by_ability(prompts, joins=joins).items():
        own = Prompts(blocks=tuple(prompts.blocks[n] for n in numbers))
        positions = np.array(prompts.places(numbers))
        method = getattr(model, way, None)
        if method is None:
            raise AbilityError(f"{model.identity.name} cannot {way}")
        for position, result in method(own):
            yield positions[position], result


Progress = Callable[[float, int], None]
"""Called with (prompts done, prompts there are) as a run goes on.

The prompts done are reckoned by their work: one with more options counts for more, and one that is
half way through the model for half.
"""


@dataclass(slots=True, kw_only=True)
class Effort:
    """How far a run has come with its work; `received`: prompts answered in this session.

    Within a shard that is by the prompts that are answered or, ahead of these, by the texts that
    the model says have gone through it. `elsewhere`: the work that others have done of shards that
    they are at, by number.
    """

    prompts: int
    work: int
    told: Progress
    before: int = 0
    received: float = 0.0
    answered: int = 0
    passed: float = 0.0
    shard: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    elsewhere: dict[int, float] = field(default_factory=dict)

    def leave(self, shard: Prompts) -> None:
        """A shard is answered, by whomever."""
        self.before += shard_work(shard)

    def enter(self, shard: Prompts) -> None:
        """A shard is asked next."""
        self.before += int(self.shard.sum())
        self.shard = np.concatenate([weights(block) for block in shard.blocks])
        self.answered, self.passed = 0, 0.0

    def answer(self, positions: Any) -> None:
        """Some of its prompts are answered."""
        self.received += np.size(positions)
        self.answered += int(self.shard[positions].sum())
        self.tell()

    def begin(self, what: str, total: float) -> None:
        """What else begins within a shard is part of it."""

    def advance(self, count: float) -> None:
        """So many options, or texts, have gone through the model."""
        self.passed += OPTION * count
        self.tell()

    def tell(self) -> None:
        """Tell how far the run has come; at its end exactly all of it."""
        here = max(self.answered, min(self.passed, int(self.shard.sum())))
        here += sum(self.elsewhere.values())
        self.told(self.prompts * (self.before + here) / self.work, self.prompts)


def shard_work(shard: Prompts) -> int:
    """How much work a shard is, in the units of `weights`."""
    return sum(int(weights(block).sum()) for block in shard.blocks)


Numbered = tuple[int, Prompts]
"""A shard's number, and what it asks."""

Made = Iterator[tuple[int, Callable[[], memoryview]]]
"""Numbers of shards that are answered, each with what makes the bytes that are kept."""


def amount(block: Block) -> int:
    """How much there is to compute for a block."""
    want = block.want
    tokens = want.most if isinstance(want, Generate | Sample) else 1
    texts = want.count if isinstance(want, Sample) else 1
    return int(weights(block).sum()) * tokens * texts


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
