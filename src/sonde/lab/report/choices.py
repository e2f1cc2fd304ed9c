"""Which estimator to trust for which question, read off the numbers. Knows no words of reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import neg

import numpy as np

from sonde.core.reports import Estimate
from sonde.lab.evaluation.judging import Group
from sonde.lab.evaluation.measures import includes_none
from sonde.metrics.estimates import lead
from sonde.stats.paired import student

ENOUGH = 0.5
"""Of the best recall: an estimator that finds less is no answer to which one errs least."""

USELESS = 0.5
"""The AUROC of a score that tells nothing: one that may have it is right by accident alone."""

Badness = Callable[[float], float]
"""How bad an answer to a question a number is: falling or rising on either side of 0."""

highest: Badness = neg
lowest: Badness = float
nearest: Badness = abs


def farthest(value: float) -> float:
    """The farther from 0 the better."""
    return -abs(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The estimator that answers a question best, of how many, and those not told from it."""

    question: str
    measure: str
    best: str
    estimate: Estimate
    ties: tuple[str, ...]
    of: int


def choices(group: Group) -> tuple[Choice, ...]:
    """The questions that a group can answer, each with its choice; controls are none."""
    finding, every = _finding(group), group.estimators
    taught, stored = (_telling(group, truth) for truth in ("taught", "stored"))
    asked: tuple[tuple[str, str, Sequence[str], Badness], ...] = (
        ("Was this fact in the text?", "auroc.taught", every, highest),
        ("Can the model give it back?", "auroc.stored", every, highest),
        ("How many facts were in the text?", "share.less_taught", taught, nearest),
        ("How many can it give back?", "share.less_stored", stored, nearest),
        ("Which claims fewest not in the text?", "false.untaught", finding, lowest),
        ("How likely was this fact in the text?", "ece.taught", taught, lowest),
        ("How likely can the model give it back?", "ece.stored", stored, lowest),
    )
    made = (best_of(group, measure, names, badness, q) for q, measure, names, badness in asked)
    return tuple(choice for choice in made if choice is not None)


def chosen(group: Group, measure: str) -> Choice | None:
    """The choice by one measure."""
    return next((choice for choice in choices(group) if choice.measure == measure), None)


def best_of(
    group: Group, measure: str, names: Sequence[str], badness: Badness, question: str = ""
) -> Choice | None:
    """The estimator of the least badness, and those that are not told from it.

    Two are told apart by a paired test over the worlds, corrected for how many there are to choose
    from; in a single world by intervals that do not overlap.
    """
    values = {name: group.of(measure, name).value for name in names}
    bad = {name: badness(value) for name, value in values.items() if value is not None}
    if not bad:
        return None
    first = lead(bad, lambda a, b: _p(group, measure, badness, a, b), lowest=True)
    best = next(iter(bad)) if first is None else first.best
    return Choice(
        question=question,
        measure=measure,
        best=best,
        estimate=group.of(measure, best),
        ties=() if first is None else first.tied,
        of=len(bad),
    )


def _p(group: Group, measure: str, badness: Badness, *names: str) -> float:
    one, other = (_by_world(group, measure, name, badness) for name in names)
    shared = [world for world in one if world in other]
    if len(shared) > 1:
        return student(np.array([one[world] - other[world] for world in shared]))
    (low, high), (least, most) = (_ends(group.of(measure, name), badness) for name in names)
    return 0.0 if high < least or most < low else 1.0


def _by_world(group: Group, measure: str, name: str, badness: Badness) -> dict[str, float]:
    """How bad an estimator is in each world, its models taken together."""
    values: dict[str, list[float]] = {}
    for (world, _), value in group.each.get((measure, name), {}).items():
        values.setdefault(world, []).append(value)
    return {world: badness(sum(models) / len(models)) for world, models in values.items()}


def _ends(estimate: Estimate, badness: Badness) -> tuple[float, float]:
    """The least and the most badness within an interval."""
    low, high = estimate.ends
    bad = [badness(x) for x in (low, high, *([0.0] if low <= 0 <= high else []))]
    return min(bad), max(bad)


def _telling(group: Group, truth: str) -> tuple[str, ...]:
    """The estimators whose scores tell known facts from others at all."""
    lows = {name: group.of(f"auroc.{truth}", name).low for name in group.estimators}
    return tuple(name for name, low in lows.items() if low is not None and low > USELESS)


def _finding(group: Group) -> tuple[str, ...]:
    recalls = {name: group.of("recall.taught", name).value or 0.0 for name in group.estimators}
    least = ENOUGH * max(recalls.values(), default=0.0)
    return tuple(name for name, recall in recalls.items() if recall >= least)


def at_chance(group: Group, name: str) -> str:
    """Whether an estimator stands at chance in relations never shown."""
    return _beside(group.of("unshown.less_chance", name), "at chance", "chance")


def verdict(group: Group, control: str, subset: str) -> str:
    """Whether a control finds as much as its method."""
    if not control:
        return "no control"
    return _beside(group.of(f"matched.{subset}", control), "matched", "control")


def _beside(difference: Estimate, neither: str, what: str) -> str:
    if difference.value is None or difference.low is None:
        return "not measured"
    if includes_none(difference):
        return neither
    return f"{'above' if difference.value > 0 else 'below'} {what}"
