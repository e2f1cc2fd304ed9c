"""How much of what one run knows another knows too. Knows aligned runs, nothing of tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain, product

import numpy as np

from sonde.analysis.runs import Aligned
from sonde.core.reports import Estimate
from sonde.metrics.cells import around, stream
from sonde.metrics.coverage import known
from sonde.metrics.grid import Bools, Floats, Ints
from sonde.stats.draws import resampled_sums
from sonde.stats.intervals import DRAWS, wilson


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """What runs share. A pair is known under a template if it is right under some name.

    rates[a][b]: share of what run a knows that run b knows too; n is what a knows. mean: over all
    runs a and b that differ. within, between: the same over runs of one group, of two; n counts
    the rates. groups: the mean for each (group of a, group of b) with two runs. only[a]: share of
    what a knows that no other run knows. one: share of what any run knows that exactly one does.
    """

    rates: tuple[tuple[Estimate, ...], ...]
    mean: Estimate
    within: Estimate
    between: Estimate
    groups: Mapping[tuple[str, str], Estimate]
    only: tuple[Estimate, ...]
    one: Estimate


def sharing(aligned: Aligned, seed: int = 0) -> Sharing:
    """The sharing rates of all runs; intervals are over pairs, resampled within relations."""
    runs = range(len(aligned.runs))
    cells, pair = known_cells(aligned)
    relations = aligned.first.grid.relations
    pairs = len(relations)
    by_pair = [known_together(cells, pair, pairs), _alone(cells, pair, pairs)]
    counts = _Counts(np.hstack(by_pair), relations, seed)
    width = len(runs)
    places = {(a, b): a * width + b for a, b in product(runs, runs)}
    rates = {key: counts.ratio(place, places[key[0], key[0]]) for key, place in places.items()}
    groups = [run.group for run in aligned.runs]
    others = [(a, b) for a, b in places if a != b]
    same = [(a, b) for a, b in others if groups[a] == groups[b]]
    kinds = list(dict.fromkeys((groups[a], groups[b]) for a, b in others))
    first = width * width
    return Sharing(
        rates=tuple(tuple(rates[a, b].estimate for b in runs) for a in runs),
        mean=_mean([rates[key] for key in others]),
        within=_mean([rates[key] for key in same]),
        between=_mean([rates[key] for key in others if key not in same]),
        groups={
            kind: _mean([rates[a, b] for a, b in others if (groups[a], groups[b]) == kind])
            for kind in kinds
        },
        only=tuple(counts.ratio(first + a, places[a, a]).estimate for a in runs),
        one=counts.ratio(first + width, first + width + 1).estimate,
    )


def known_cells(aligned: Aligned) -> tuple[Bools, Ints]:
    """Whether each run knows each (template, pair), [runs, cells], and the pair of each cell."""
    found = [known(run.judged.grid) for run in aligned.runs]
    return np.stack([right for _, _, right in found]), found[0][1]


def known_together(cells: Bools, pair: Ints, pairs: int) -> Floats:
    """How many of a pair's cells are known by a and by b; [pairs, runs²]."""
    # column by column: a table of all cells would be large
    return _by_pair((a & b for a, b in product(cells, cells)), pair, pairs)


def around_share(value: float, draws: Floats, n: int, trials: float) -> Estimate:
    """A share with the middle 95 % of its bootstrap; where no draw differs from another, which
    would be too sure, Wilson's interval of as many independent trials."""
    if len(draws) and np.ptp(draws) > 0:
        return around(value, draws, n)
    low, high = wilson(value * trials, trials)
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=n)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rate:
    """A share, and what it would be with other pairs; nan where there was nothing to share."""

    estimate: Estimate
    draws: Floats


class _Counts:
    """Sums of counts over all pairs, as they are and when pairs are resampled."""

    def __init__(self, by_pair: Floats, relations: Ints, seed: int) -> None:
        self._by_pair = by_pair
        self._draws = np.zeros((DRAWS, by_pair.shape[1]))
        for relation in np.unique(relations):
            own = by_pair[relations == relation]
            self._draws += resampled_sums(own, stream(seed, f"sharing:{relation}"))

    def ratio(self, part: int, whole: int) -> _Rate:
        counts = self._by_pair[:, whole]
        total = float(counts.sum())
        with np.errstate(invalid="ignore"):
            draws = np.asarray(self._draws[:, part] / self._draws[:, whole])
        if not total:
            return _Rate(estimate=Estimate.not_measured(), draws=draws)
        value = float(self._by_pair[:, part].sum()) / total
        kept = draws[~np.isnan(draws)]
        if part == whole:
            return _Rate(estimate=around(value, kept, n=int(total)), draws=draws)
        trials = float((counts > 0).sum())
        estimate = around_share(value, kept, n=int(total), trials=trials)
        return _Rate(estimate=estimate, draws=draws)


def _alone(cells: Bools, pair: Ints, pairs: int) -> Floats:
    """How many of a pair's cells only run a knows, one run alone, any; [pairs, runs + 2]."""
    number = cells.sum(axis=0)
    columns = chain((a & (number == 1) for a in cells), (number == 1, number > 0))
    return _by_pair(columns, pair, pairs)


def _by_pair(columns: Iterable[Bools], pair: Ints, pairs: int) -> Floats:
    counted = [np.bincount(pair[column], minlength=pairs) for column in columns]
    return np.column_stack(counted).astype(np.float64)


def _mean(rates: list[_Rate]) -> Estimate:
    """The mean of the rates that were measured."""
    there = [rate for rate in rates if rate.estimate.value is not None]
    if not there:
        return Estimate.not_measured()
    if len(there) == 1:
        return replace(there[0].estimate, n=1)
    value = float(np.mean([rate.estimate.value for rate in there]))
    draws = np.mean([rate.draws for rate in there], axis=0)
    return around(value, draws[~np.isnan(draws)], n=len(there))
