"""Cut what a probe asks into shards, and put one to a model. Knows nothing of folders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

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
