"""A number of one model, and its mean over the worlds. Knows facts by their relation alone.

Over several worlds the interval comes from how they differ; of a single world it comes from its
facts, and is made only when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from sonde.core.reports import Estimate
from sonde.lab.evaluation.asked import Ints
from sonde.lab.worlds.truth import Bools, Floats
from sonde.metrics.estimates import Resampled, Sample
from sonde.stats.intervals import Z
from sonde.stats.repeats import repeats_mean, unvaried_mean, vary

SHARE = (0.0, 1.0)
DIFFERENCE = (-1.0, 1.0)
AMOUNT = (0.0, float("inf"))
MANY, KINDS = 500, 64
"""With more facts, of more different values, an interval comes from their spread: a bootstrap would
give the same and take minutes."""
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """A value of one model that lies within `reach`; `estimate` gives it with its interval."""

    value: float | None
    estimate: Callable[[], Estimate]
    reach: tuple[float, float] = SHARE


MISSING = Measured(value=None, estimate=Estimate.not_measured)


def bare(value: float | None, n: int) -> Measured:
    """A value that has no interval within one model, such as the seconds that something took."""
    return Measured(
        value=value,
        estimate=lambda: Estimate(value=value, low=None, high=None, n=n),
        reach=AMOUNT,
    )


def mean(values: Floats, relations: Ints, where: Bools, minus: Floats | None = None) -> Measured:
    """Mean over some of the facts, less that of `minus`; nothing where there are none."""
    if not where.any():
        return MISSING
    own, groups = values[where].astype(np.float64), relations[where]
    other = None if minus is None else minus[where].astype(np.float64)
    differences = own if other is None else own - other
    return Measured(
        value=float(differences.mean()),
        estimate=lambda: _within(own, other, groups),
        reach=SHARE if other is None else DIFFERENCE,
    )


def mean_less(values: Floats, where: Bools, known: Floats) -> Measured:
    """Mean over some of the facts, less that of numbers that are no matter of luck.

    Facts are taken to be independent: Wilson's interval where every value is 0 or 1.
    """
    if not where.any():
        return MISSING
    together = np.zeros(int(where.sum()), dtype=np.int64)
    less, own = float(known[where].mean()), values[where].astype(np.float64)

    def estimate() -> Estimate:
        made = _within(own, None, together)
        low, high = made.ends
        return Estimate(
            value=(made.value or 0.0) - less, low=low - less, high=high - less, n=made.n
        )

    return Measured(value=float(own.mean()) - less, estimate=estimate, reach=DIFFERENCE)


def over_worlds(worlds: Sequence[Sequence[Measured]]) -> Estimate:
    """The mean over worlds, each with the values of its models; n is the number of worlds.

    Student's interval; where all worlds have the same value, the one that their facts leave. A
    single world keeps the interval and the n of its facts.
    """
    kept = [[m for m in own if m.value is not None] for own in worlds]
    kept = [own for own in kept if own]
    if not kept:
        return Estimate.not_measured()
    if len(kept) == 1:
        return _one_world(kept[0])
    values = [sum(m.value or 0.0 for m in own) / len(own) for own in kept]
    value, low, high = repeats_mean(values)
    if not vary(values):
        ends = [_one_world(own).ends for own in kept]
        low, high = unvaried_mean(value, ends)
    least, most = kept[0][0].reach
    return Estimate(
        value=value,
        low=min(value, max(low, least)),
        high=max(value, min(high, most)),
        n=len(kept),
    )


def includes(estimate: Estimate, value: float = 0.0) -> bool:
    """Whether an interval holds a value, give or take rounding; where there is none, it may."""
    if estimate.low is None or estimate.high is None:
        return True
    return estimate.low - ROUNDING <= value <= estimate.high + ROUNDING


def _one_world(models: Sequence[Measured]) -> Estimate:
    """Mean over models of the same facts, which do not make an interval narrower."""
    made = [m.estimate() for m in models]
    if len(made) == 1:
        return made[0]
    value = float(np.mean([e.value for e in made]))
    ends = [e.ends for e in made]
    low, high = (float(np.mean([pair[side] for pair in ends])) for side in (0, 1))
    known = all(e.low is not None for e in made)
    return Estimate(
        value=value, low=low if known else None, high=high if known else None, n=made[0].n
    )


def _within(own: Floats, other: Floats | None, groups: Ints) -> Estimate:
    """The mean with the interval of a bootstrap of the facts within their relations."""
    differences = own if other is None else own - other
    if len(own) > MANY and len(np.unique(differences)) > KINDS:
        return _many(differences, groups)
    samples = {}
    for group in np.unique(groups):
        at = np.flatnonzero(groups == group)
        minus = None if other is None else other[at]
        samples[str(group)] = Sample(values=own[at], clusters=np.arange(len(at)), minus=minus)
    made = Resampled(samples, seed=0).mean_over_facts()
    return replace(made, value=float(differences.mean()))  # summed by relation, 1 can come out less


def _many(values: Floats, groups: Ints) -> Estimate:
    _, index = np.unique(groups, return_inverse=True)
    sizes = np.bincount(index)
    off = values - (np.bincount(index, values) / sizes)[index]
    share = sizes / np.maximum(sizes - 1, 1)
    value = float(values.mean())
    reach = Z * sqrt(float((np.bincount(index, off**2) * share).sum())) / len(values)
    return Estimate(value=value, low=value - reach, high=value + reach, n=len(values))
