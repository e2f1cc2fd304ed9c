"""Which estimator to trust for which question, read off the numbers. Knows no words of reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sonde.core.reports import Estimate
from sonde.lab.judging import Group

ENOUGH = 0.5
"""Of the best recall: an estimator that finds less is no answer to which one errs least."""

USELESS = 0.5
"""The AUROC of a score that tells nothing: one that may have it is right by accident alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The estimator that answers a question best, and those that cannot be told from it.

    ties: the others whose intervals overlap with that of the best.
    """

    question: str
    measure: str
    best: str
    estimate: Estimate
    ties: tuple[str, ...]


def choices(group: Group) -> tuple[Choice, ...]:
    """The questions that a group can answer, each with its choice; controls are none."""
    finding = _finding(group)
    taught, stored = (_telling(group, truth) for truth in ("taught", "stored"))
    asked: tuple[tuple[str, str, Sequence[str], Callable[[Estimate], Estimate]], ...] = (
        ("Was this fact in the text?", "auroc.taught", group.own, _highest),
        ("Can the model give it back?", "auroc.stored", group.own, _highest),
        ("How many facts were in the text?", "share.less_taught", taught, _nearest),
        ("How many can it give back?", "share.less_stored", stored, _nearest),
        ("Which claims fewest not in the text?", "false.untaught", finding, _lowest),
        ("How likely was this fact in the text?", "ece.taught", taught, _lowest),
        ("How likely can the model give it back?", "ece.stored", stored, _lowest),
    )
    made = (_choice(group, *question) for question in asked)
    return tuple(choice for choice in made if choice is not None)


def chosen(group: Group, measure: str) -> Choice | None:
    """The choice by one measure."""
    return next((choice for choice in choices(group) if choice.measure == measure), None)


def _choice(
    group: Group,
    question: str,
    measure: str,
    names: Sequence[str],
    badness: Callable[[Estimate], Estimate],
) -> Choice | None:
    """The estimator of the least badness, and those whose badness may be as little."""
    found = {name: group.of(measure, name) for name in names}
    bad = {name: badness(e) for name, e in found.items() if e.value is not None}
    if not bad:
        return None
    best = min(bad, key=lambda name: bad[name].value or 0.0)
    end = bad[best].high
    ties = [
        name
        for name, e in bad.items()
        if name != best and end is not None and e.low is not None and e.low <= end
    ]
    return Choice(
        question=question, measure=measure, best=best, estimate=found[best], ties=tuple(ties)
    )


def _telling(group: Group, truth: str) -> tuple[str, ...]:
    """The estimators whose scores tell known facts from others at all."""
    lows = {name: group.of(f"auroc.{truth}", name).low for name in group.own}
    return tuple(name for name, low in lows.items() if low is not None and low > USELESS)


def _finding(group: Group) -> tuple[str, ...]:
    recalls = {name: group.of("recall.taught", name).value or 0.0 for name in group.own}
    least = ENOUGH * max(recalls.values(), default=0.0)
    return tuple(name for name in group.own if recalls[name] >= least)


def _lowest(e: Estimate) -> Estimate:
    return e


def _highest(e: Estimate) -> Estimate:
    return _made(e, *(None if x is None else -x for x in (e.value, e.high, e.low)))


def _nearest(e: Estimate) -> Estimate:
    """How far a difference is from 0, whichever way."""
    value = None if e.value is None else abs(e.value)
    if e.low is None or e.high is None:
        return _made(e, value, None, None)
    least = 0.0 if e.low <= 0 <= e.high else min(abs(e.low), abs(e.high))
    return _made(e, value, least, max(abs(e.low), abs(e.high)))


def _made(e: Estimate, value: float | None, low: float | None, high: float | None) -> Estimate:
    return Estimate(value=value, low=low, high=high, n=e.n)
