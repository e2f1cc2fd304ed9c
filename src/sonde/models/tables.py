"""Answer prompts from tables of names and their log-probabilities: controls and test doubles."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from heapq import nsmallest
from math import exp, log
from random import Random
from typing import Any, ClassVar

import numpy as np

from sonde.core.abilities import Named
from sonde.core.answers import Filled, Generated, Sampled, Scored, Traced
from sonde.core.columns import FilledColumns
from sonde.core.errors import AbilityError
from sonde.core.prompts import Block, Fill, Generate, Prompt, Sample, Score, Trace, put
from sonde.core.rated import RatedColumns

UNSEEN = -30.0
UNLIKELY = 1e-300

Table = Mapping[str, float]


class TableModel(Named, ABC):
    """A model without weights: it looks up what it answers.

    `KEYS`: the columns of a prompt on which its tables depend. Prompts that are equal there and
    want the same are answered once.
    """

    __slots__ = ()
    KEYS: ClassVar[tuple[str, ...]]

    @abstractmethod
    def tables(self, prompt: Prompt) -> tuple[Sequence[Table], float]:
        """A table for each fact that a prompt asks about, or one for all; and what others have."""

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[Any, RatedColumns]]:
        """Yield (positions, a log-probability for each option)."""
        for positions, answers, index in self._looked_up(prompts, score_from):
            yield positions, RatedColumns.gathered(answers).rows(index)

    def fill(self, prompts: Sequence[Prompt]) -> Iterator[tuple[Any, FilledColumns]]:
        """Yield (positions, the likeliest names and the watched ones)."""
        for positions, answers, index in self._looked_up(prompts, fill_from):
            yield positions, FilledColumns.gathered(answers).rows(index)

    def trace(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Traced]]:
        """Yield (position, a log-probability for each span)."""
        for i, prompt in enumerate(prompts):
            yield i, trace_from(prompt, *self.tables(prompt))

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Generated]]:
        """Yield (position, the likeliest name)."""
        for i, prompt in enumerate(prompts):
            yield i, generate_from(prompt, self.tables(prompt)[0][0])

    def sample(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Sampled]]:
        """Yield (position, names drawn)."""
        for i, prompt in enumerate(prompts):
            yield i, sample_from(prompt, self.tables(prompt)[0][0])

    def _looked_up(
        self, prompts: Sequence[Prompt], look_up: Callable[[Prompt, Table, float], Any]
    ) -> Iterator[tuple[Any, list[Any], Any]]:
        """For each block the positions, distinct answers, and which of these each prompt has."""
        prompts = put(prompts)
        for block, start in zip(prompts.blocks, prompts.starts, strict=False):
            distinct, index = first_rows(block, self.KEYS)
            asked = ((prompt, *self.tables(prompt)) for prompt in distinct.prompts())
            answers = [look_up(prompt, tables[0], other) for prompt, tables, other in asked]
            yield np.arange(start, start + len(block)), answers, index


def first_rows(block: Block, names: Sequence[str]) -> tuple[Block, Any]:
    """The first row with each combination of some names, and which of these every row is like."""
    if block.own:
        return block, np.arange(len(block))
    first = block.frame.unique(names, keep="first", maintain_order=True)
    if first.height == 1:
        return replace(block, frame=first), np.zeros(len(block), dtype=np.int64)
    numbered = first.select(names).with_row_index("number")
    every = block.frame.select(names).join(numbered, on=names, maintain_order="left")
    return replace(block, frame=first), every["number"].to_numpy()


def score_from(prompt: Prompt, logps: Mapping[str, float], other: float = UNSEEN) -> Scored:
    """One log-probability per option, `other` for what the table does not hold."""
    if not isinstance(prompt.want, Score):
        raise AbilityError("score() takes prompts that want options scored")
    options = prompt.want.options
    return Scored(options=options, logps=tuple((logps.get(o, other),) for o in options))


def fill_from(prompt: Prompt, logps: Mapping[str, float], other: float = UNSEEN) -> Filled:
    """The table's likeliest allowed names; watched ones that it does not hold have `other`."""
    want = prompt.want
    if not isinstance(want, Fill):
        raise AbilityError("fill() takes prompts that want a masked position filled")
    table = {name: logps.get(name, other) for name in (*logps, *want.watched)}
    if want.vocabulary is not None:
        allowed = _members(_Same(want.vocabulary))
        table = {name: logp for name, logp in table.items() if name in allowed}
    return _filled(want, table)


def _filled(want: Fill, table: Mapping[str, float]) -> Filled:
    top = nsmallest(want.top, table, key=lambda name: (-table[name], name))
    values = sorted(table.values(), reverse=True)
    at_least = {value: i + 1 for i, value in enumerate(values)}
    watched = tuple(map(table.get, want.watched))
    return Filled(
        top=tuple(top),
        top_logps=tuple(table[name] for name in top),
        watched=want.watched,
        watched_logps=watched,
        watched_ranks=tuple(None if logp is None else at_least[logp] for logp in watched),
        mass=values[0] + log(sum(exp(v - values[0]) for v in values)) if values else 0.0,
    )


class _Same:
    """A vocabulary told by which object it is: to compare thousands of words takes too long."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words

    def __hash__(self) -> int:
        return id(self.words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.words is self.words


@lru_cache(maxsize=4)
def _members(vocabulary: _Same) -> frozenset[str]:
    return frozenset(vocabulary.words)


def generate_from(prompt: Prompt, logps: Mapping[str, float]) -> Generated:
    """The table's likeliest name, written as one token; nothing where the table is empty."""
    if not isinstance(prompt.want, Generate):
        raise AbilityError("generate() takes prompts that want a text written")
    best = min(logps, key=lambda name: (-logps[name], name), default=None)
    return (
        Generated(text="", logps=())
        if best is None
        else Generated(text=f" {best}", logps=(logps[best],))
    )


def trace_from(
    prompt: Prompt, tables: Sequence[Mapping[str, float]], other: float = UNSEEN
) -> Traced:
    """One log-probability per span, from its own table or from one for all; `other` if not there.

    There is a table for every span, or the first is for all.
    """
    want = prompt.want
    if not isinstance(want, Trace):
        raise AbilityError("trace() takes prompts that want parts of a text read")
    chosen = tables if len(tables) == len(want.spans) else [tables[0]] * len(want.spans)
    names = [prompt.prefix[start:stop].strip() for start, stop in want.spans]
    found = [table.get(name, other) for table, name in zip(chosen, names, strict=True)]
    return Traced(logps=tuple((logp,) for logp in found))


def sample_from(prompt: Prompt, logps: Mapping[str, float]) -> Sampled:
    """Names drawn as often as the table says, those it does not cover as an empty text."""
    want = prompt.want
    if not isinstance(want, Sample):
        raise AbilityError("sample() takes prompts that want texts drawn")
    names = sorted(logps)
    shares = [exp(logps[name]) for name in names]
    rest = max(0.0, 1.0 - sum(shares))
    key = f"{want.seed}:{prompt.key.fact}:{prompt.key.template}:{prompt.prefix}"
    texts = [*(f" {name}" for name in names), ""]
    drawn = Random(key).choices(texts, [*shares, rest or UNLIKELY], k=want.count)
    return Sampled.pooled((text, "", 1) for text in drawn)
