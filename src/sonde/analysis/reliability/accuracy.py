"""Whether runs with a lower MONITOR are more accurate, and what MONITOR tells apart where accuracy
does not. Knows numbers of runs, nothing of tables."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sonde.analysis.reliability.outcomes import Common, Measure, ratio, resampled, settled
from sonde.core.reports import Estimate
from sonde.core.words import told_apart
from sonde.metrics.cells import around
from sonde.metrics.grid import Floats
from sonde.stats.correlation import pearson, pearson_by_row, ranks_by_row
from sonde.stats.intervals import DRAWS


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """A correlation over points, and how many there are, too few ones included.

    p is how likely so strong a correlation is where there is none between points.
    """

    r: Estimate
    p: float | None
    points: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Equals:
    """Two runs whose base accuracies are not told apart; the first has the lower MONITOR.

    Differences are the first less the second, on the facts of both. `shared` is that of MONITOR
    from the facts alone whose anchor is valid in both.
    """

    first: int
    second: int
    base: Estimate
    monitor: Estimate
    shared: Estimate


def linked(one: Floats, other: Floats, ranked: bool = False) -> Linked:
    """Pearson's r of two tables [1 + draws, points], of their ranks if `ranked`.

    Points that one of them lacks are left out. The interval is over draws of facts: the points are
    those there are.
    """
    there = ~np.isnan(one[0]) & ~np.isnan(other[0])
    a, b = one[:, there], other[:, there]
    points = a.shape[1]
    if ranked and points:
        a, b = ranks_by_row(a), ranks_by_row(b)
    whole = pearson(a[0], b[0])
    if whole is None:
        return Linked(r=Estimate.not_measured(), p=None, points=points)
    draws = pearson_by_row(a[1:], b[1:])
    known = draws[~np.isnan(draws)]
    value, p = whole
    r = around(value, known if len(known) else np.array([value]), points)
    return Linked(r=r, p=p, points=points)


def over_models(monitor: Measure, accuracy: Measure) -> Linked:
    """MONITOR and mean accuracy, a point for each run."""
    return linked(monitor.means(), accuracy.means())


def by_relation(monitor: Measure, accuracy: Measure) -> list[Linked]:
    """The same within each relation."""
    relations = range(monitor.rows.shape[2])
    return [linked(monitor.rows[:, :, r], accuracy.rows[:, :, r]) for r in relations]


def equals(found: Common, made: dict[str, Measure], seed: int = 0) -> list[Equals]:
    """The pairs of runs that base accuracy does not tell apart, the most different MONITORs first.

    Pairs of which a MONITOR is not measured come last.
    """
    base, monitor = made["prompt_accuracy.base"], made["monitor"]
    pairs = [
        pair
        for pair in combinations(range(len(found.runs)), 2)
        if not told_apart(base.difference(*pair))
    ]
    if not pairs:
        return []
    ordered = [(b, a) if (monitor.difference(a, b).value or 0.0) > 0 else (a, b) for a, b in pairs]
    shared = on_shared_anchors(found, ordered, seed)
    rows = [
        Equals(
            first=a,
            second=b,
            base=base.difference(a, b),
            monitor=monitor.difference(a, b),
            shared=shared.difference(2 * k, 2 * k + 1),
        )
        for k, (a, b) in enumerate(ordered)
    ]
    return sorted(rows, key=lambda row: -abs(row.monitor.value or 0.0))


def on_shared_anchors(found: Common, pairs: list[tuple[int, int]], seed: int) -> Measure:
    """MONITOR of each of two runs from the facts that count in both; runs 2k and 2k + 1 are a pair.

    Where no fact does, it is not measured.
    """
    columns = []
    for pair in pairs:
        both = _both(found, pair)
        for i in pair:
            columns += [found.parts[i].whole * both, found.parts[i].anchors * both]
    shape = (1 + DRAWS, 2 * len(pairs), len(found.relations))
    rows = np.full(shape, np.nan)
    for r, sums in enumerate(resampled(found, np.column_stack(columns), seed)):
        rows[:, :, r] = ratio(sums[:, ::2], sums[:, 1::2])
    relations = range(len(found.relations))
    counts = [[_both(found, pair)[found.owners == r].sum() for r in relations] for pair in pairs]
    n = np.repeat(np.array(counts, dtype=np.int64), 2, axis=0)
    return Measure(rows=settled(rows), n=n, independent=n)


def _both(found: Common, pair: tuple[int, int]) -> Floats:
    """1 for the facts that count in both runs, 0 for others."""
    return found.parts[pair[0]].counted * found.parts[pair[1]].counted
