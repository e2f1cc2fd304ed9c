"""Find how far a probe must be cut down where its prompts are too long for a model.

A probe says by `shrinks` which of its settings makes prompts longer. Knows nothing of how tokens
are counted: a model refuses what it cannot take when it is asked what it would cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from heapq import nlargest
from itertools import groupby
from typing import Any, ClassVar, Protocol, cast, runtime_checkable

from sonde.core.abilities import Model, Plans, Probe
from sonde.core.errors import PromptTooLong
from sonde.core.facts import Dataset
from sonde.core.prompts import Prompt, Score, prompts_of
from sonde.core.settings import settings_of
from sonde.runs.shards import asked

LONGEST = 16
"""Prompts of each relation that are tried."""


@runtime_checkable
class HasLengthSetting(Protocol):
    """A probe whose prompts grow with one of its settings, a whole number."""

    shrinks: ClassVar[str]


@contextmanager
def fitting(probe: Probe, model: Model, dataset: Dataset) -> Iterator[None]:
    """Add to a refusal of a prompt that is too long the largest setting with which all fit."""
    try:
        yield
    except PromptTooLong as error:
        told = _advice(probe, model, dataset)
        if told:
            error.args = (f"{error}. {told}",)
        raise


def largest(probe: Probe, model: Plans, dataset: Dataset) -> int | None:
    """The largest value of the setting with which the longest prompts fit; None where none does.

    Only values below the probe's own are tried.
    """
    name = cast(HasLengthSetting, probe).shrinks
    least = next(s.least or 1 for s in settings_of(type(probe)) if s.name == name)
    low, high = least, int(getattr(probe, name)) - 1
    best = None
    while low <= high:
        middle = (low + high + 1) // 2
        if _fits(replace(cast(Any, probe), **{name: middle}), model, dataset):
            best, low = middle, middle + 1
        else:
            high = middle - 1
    return best


def _advice(probe: Probe, model: Model, dataset: Dataset) -> str:
    if not isinstance(probe, HasLengthSetting) or not isinstance(model, Plans):
        return ""
    name, value = probe.shrinks, largest(probe, model, dataset)
    if value is None:
        return f"No value of {name} makes every prompt fit this model"
    return f"The largest {name} that fits all of them is {value}: --{name} {value}"


def _fits(probe: Probe, model: Plans, dataset: Dataset) -> bool:
    try:
        for _ in model.estimate_costs(
            [_longest(prompts_of(asked(probe, cast(Any, model), dataset)))]
        ):
            pass
    except PromptTooLong:
        return False
    return True


def _longest(prompts: Iterator[Prompt]) -> list[Prompt]:
    """Those with the most characters of each relation: to count all tokens would take too long."""
    relations = groupby(prompts, key=lambda prompt: prompt.key.relation)
    return [prompt for _, own in relations for prompt in nlargest(LONGEST, own, key=_length)]


def _length(prompt: Prompt) -> int:
    options = prompt.want.options if isinstance(prompt.want, Score) else ()
    return len(prompt.prefix) + max(map(len, options), default=0) + len(prompt.suffix)
