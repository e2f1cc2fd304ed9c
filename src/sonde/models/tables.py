"""Answer prompts from a table of names and shares, as controls and test doubles do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import nsmallest
from math import exp, log
from random import Random
from typing import Any

import numpy as np

from sonde.core.answers import Filled, Generated, Sampled, Scored, Traced
from sonde.core.columns import FilledColumns
from sonde.core.errors import AbilityError
from sonde.core.prompts import Fill, Generate, Prompt, Prompts, Sample, Score, Trace

UNSEEN = -30.0
UNLIKELY = 1e-300


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


def fill_distinct(
    prompts: Prompts, names: Sequence[str], filled: Callable[[Prompt], Filled]
) -> Iterator[tuple[Any, FilledColumns]]:
    """Fill prompts whose answer depends on some names of theirs alone, once for each of these.

    Yields (positions, answers), block by block.
    """
    import polars

    for block, start in zip(prompts.blocks, prompts.starts, strict=False):
        distinct = block.frame.select(names).unique(maintain_order=True).with_row_index("number")
        index = block.frame.select(names).join(distinct, on=names, maintain_order="left")["number"]
        first = index.to_frame().with_row_index("row").group_by("number").agg(polars.min("row"))
        answers = [filled(block.prompt(row)) for row in first.sort("number")["row"].to_list()]
        positions = np.arange(start, start + len(block))
        yield positions, FilledColumns.gathered(answers).rows(index.to_numpy())


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
    drawn = Counter(Random(key).choices(texts, [*shares, rest or UNLIKELY], k=want.count))
    order = sorted(drawn, key=lambda text: (-drawn[text], text))
    return Sampled(texts=tuple(order), counts=tuple(drawn[text] for text in order))
