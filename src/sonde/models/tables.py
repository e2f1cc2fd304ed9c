"""Answer prompts from a table of names and shares, as controls and test doubles do."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log

from sonde.core.answers import Filled, Scored
from sonde.core.errors import AbilityError
from sonde.core.prompts import Fill, Prompt, Score

UNSEEN = -30.0


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
