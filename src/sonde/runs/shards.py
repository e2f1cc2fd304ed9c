"""Cut what a probe asks into shards, put one to a model, and say how far a run has come.

How much work prompts are decides both. Knows no folders and no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sonde.core.abilities import (
    KeepsCache,
    Model,
    Probe,
    ScoresAndGenerates,
    as_given,
    group_by_ability,
)
from sonde.core.answers import Answer
from sonde.core.columns import FilledColumns
from sonde.core.errors import AbilityError
from sonde.core.facts import Dataset
from sonde.core.prompts import Block, Fill, Prompt, Prompts, Score, Trace, blocks_of, put
from sonde.core.rated import RatedColumns

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
    """How far a run has come with its work.

    Within a shard that is by the prompts that are answered or, ahead of these, by the texts that
    the model says have gone through it. `elsewhere`: the work that others have done of shards that
    they are at, by number.
    """

    prompts: int
    work: int
    told: Progress
    before: int = 0
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
    if getattr(probe, "templates", None) == "all":
        manual = total_work(replace(cast(Any, probe), templates="manual"), dataset)
        if manual < work:
            yield "--templates manual", seconds * manual / work


def limited(dataset: Dataset, limit: int) -> Dataset:
    """The dataset with at most so many facts of each relation."""
    return dataset.select(replace(dataset.selection, limit=limit))


def total_work(probe: Probe, dataset: Dataset) -> int:
    """How much work all that a probe asks is, in the units of `weights`."""
    return sum(int(weights(block).sum()) for block in blocks_of(probe.ask(dataset)))
