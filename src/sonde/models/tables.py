"""Answer prompts from a table of names and shares, as controls and test doubles do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import exp, log
from random import Random

from sonde.core.answers import Filled, Generated, Sampled, Scored, Traced
from sonde.core.errors import AbilityError
from sonde.core.prompts import Fill, Generate, Prompt, Sample, Score, Trace

UNSEEN = -30.0
UNLIKELY = 1e-300


def score_from(prompt: Prompt, logps: Mapping[str, float]) -> Scored:
    """One log-probability per option, a very small one for what the table does not hold."""
    if not isinstance(prompt.want, Score):
        raise AbilityError("score() takes prompts that want options scored")
    options = prompt.want.options
    return Scored(options=options, logps=tuple((logps.get(o, UNSEEN),) for o in options))


def fill_from(prompt: Prompt, logps: Mapping[str, float]) -> Filled:
    """The table's likeliest allowed names; watched ones that it does not hold come after them."""
    want = prompt.want
    if not isinstance(want, Fill):
        raise AbilityError("fill() takes prompts that want a hole filled")
    allowed = None if want.vocabulary is None else frozenset(want.vocabulary)
    names = (name for name in (*logps, *want.watched) if allowed is None or name in allowed)
    table = {name: logps.get(name, UNSEEN) for name in names}
    order = sorted(table, key=lambda name: (-table[name], name))
    values = sorted(table.values(), reverse=True)
    at_least = {value: i + 1 for i, value in enumerate(values)}
    return Filled(
        top=tuple(order[: want.top]),
        top_logps=tuple(table[name] for name in order[: want.top]),
        watched=want.watched,
        watched_logps=tuple(table.get(name) for name in want.watched),
        watched_ranks=tuple(
            at_least[table[name]] if name in table else None for name in want.watched
        ),
        mass=log(sum(exp(value) for value in values)) if values else 0.0,
    )


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
