"""What every two runs have in common: how much of what one knows the other knows too, and whether
they find the same relations and the same templates easy.

Each is a number of two runs with what it would be in other draws, so that means over couples have
intervals of their own. Knows aligned runs, nothing of tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, combinations_with_replacement, product

import numpy as np

from sonde.analysis.runs import Aligned
from sonde.core.reports import Estimate
from sonde.metrics.accuracy import template_accuracies
from sonde.metrics.coverage import known
from sonde.metrics.estimates import Lead, lead
from sonde.metrics.grid import Bools, Floats, Ints, around, stream
from sonde.stats.correlation import kendall_tau_b
from sonde.stats.draws import resampled_sums
from sonde.stats.intervals import DRAWS, wilson
from sonde.stats.paired import sign_flip

FEWEST = 3
"""Relations that a correlation needs: through two points there is always a line."""

EQUAL = 1e-12
"""Accuracies whose mean square distance from their mean is below this are all equal."""

Couple = tuple[int, int]
Drawn = tuple[Estimate, Floats]
"""A number of two runs, and the same in every draw; nan where a draw says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Couples:
    """runs[a][b]: a number of two runs. mean: over all couples of different runs, their number
    being n. within, between: the same over runs of one group, of two; groups: for each two groups
    that have a couple."""

    runs: tuple[tuple[Estimate, ...], ...]
    mean: Estimate
    within: Estimate
    between: Estimate
    groups: Mapping[tuple[str, str], Estimate]


def couples(
    drawn: Mapping[Couple, Drawn], groups: Sequence[str], *, symmetric: bool = False
) -> Couples:
    """The numbers of all couples; of a symmetric one those of a ≤ b."""
    runs = range(len(groups))

    def at(a: int, b: int) -> Couple:
        return (b, a) if symmetric and b < a else (a, b)

    def kind(a: int, b: int) -> tuple[str, str]:
        first, second = groups[a], groups[b]
        return (second, first) if symmetric and second < first else (first, second)

    others = [(a, b) for a, b in drawn if a != b]
    kinds = list(dict.fromkeys(kind(a, b) for a, b in others))
    same = [(a, b) for a, b in others if groups[a] == groups[b]]
    return Couples(
        runs=tuple(tuple(drawn[at(a, b)][0] for b in runs) for a in runs),
        mean=_mean([drawn[couple] for couple in others]),
        within=_mean([drawn[couple] for couple in same]),
        between=_mean([drawn[couple] for couple in others if couple not in same]),
        groups={
            each: _mean([drawn[couple] for couple in others if kind(*couple) == each])
            for each in (sorted(kinds) if symmetric else kinds)
        },
    )


def _mean(drawn: Sequence[Drawn]) -> Estimate:
    """The mean of the numbers that were measured.

    A draw in which one of them cannot be told says nothing of their mean.
    """
    measured = [(estimate, draws) for estimate, draws in drawn if estimate.value is not None]
    if len(measured) < 2:
        return replace(measured[0][0], n=1) if measured else Estimate.not_measured()
    value = float(np.mean([estimate.value for estimate, _ in measured]))
    draws = np.mean([draws for _, draws in measured], axis=0)
    return around(value, _told(draws), n=len(measured))


def _told(draws: Floats) -> Floats:
    return draws[~np.isnan(draws)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """What runs share. A pair is known under a template if it is right under some name.

    rates: share of what run a knows that run b knows too; n is what a knows. only[a]: share of what
    a knows that no other run knows. one: share of what any run knows that exactly one does.
    """

    rates: Couples
    only: tuple[Estimate, ...]
    one: Estimate


def sharing(aligned: Aligned, seed: int = 0) -> Sharing:
    """The sharing rates of all runs; intervals are over pairs, resampled within relations."""
    runs = range(len(aligned.runs))
    cells, pair = _known_cells(aligned)
    relations = aligned.first.grid.relations
    both = _known_together(cells, pair, len(relations))
    counts = np.hstack([both, _known_alone(cells, pair, len(relations))])
    draws = np.zeros((DRAWS, counts.shape[1]))
    for relation in np.unique(relations):
        of_relation = counts[relations == relation]
        draws += resampled_sums(of_relation, stream(seed, f"sharing:{relation}"))

    def ratio(part: int, whole: int) -> Drawn:
        return _ratio(counts[:, [part, whole]], draws[:, [part, whole]], itself=part == whole)

    place = {(a, b): a * len(runs) + b for a, b in product(runs, runs)}
    alone = len(place)
    return Sharing(
        rates=couples(
            {(a, b): ratio(i, place[a, a]) for (a, b), i in place.items()},
            [run.group for run in aligned.runs],
        ),
        only=tuple(ratio(alone + a, place[a, a])[0] for a in runs),
        one=ratio(alone + len(runs), alone + len(runs) + 1)[0],
    )


def _ratio(counts: Floats, draws: Floats, *, itself: bool) -> Drawn:
    """The share that a part is of a whole, from both by pair and both by draw; n is the whole."""
    with np.errstate(invalid="ignore"):
        drawn = np.asarray(draws[:, 0] / draws[:, 1])
    part, whole = counts.sum(axis=0).tolist()
    if not whole:
        return Estimate.not_measured(), drawn
    trials = float((counts[:, 1] > 0).sum())
    return _share(part / whole, drawn, n=int(whole), trials=trials, itself=itself), drawn


def _share(value: float, draws: Floats, *, n: int, trials: float, itself: bool) -> Estimate:
    """A share with the middle 95 % of its bootstrap; where no draw differs from another, which
    would be too sure, Wilson's interval of as many independent trials. What a run shares with
    itself is no estimate."""
    kept = _told(draws)
    if itself:
        return Estimate(value=value, low=None, high=None, n=n)
    if len(kept) and np.ptp(kept) > 0:
        return around(value, kept, n)
    low, high = wilson(value * trials, trials)
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=n)


def _known_cells(aligned: Aligned) -> tuple[Bools, Ints]:
    """Whether each run knows each (template, pair), [runs, cells], and the pair of each cell."""
    of_runs = [known(run.judged.grid) for run in aligned.runs]
    return np.stack([right for _, _, right in of_runs]), of_runs[0][1]


def _known_together(cells: Bools, pair: Ints, pairs: int) -> Floats:
    """How many of a pair's cells are known by a and by b; [pairs, runs²]."""
    # column by column: a table of all cells would be large
    return _by_pair((a & b for a, b in product(cells, cells)), pair, pairs)


def _known_alone(cells: Bools, pair: Ints, pairs: int) -> Floats:
    """How many of a pair's cells only run a knows, one run alone, any; [pairs, runs + 2]."""
    number = cells.sum(axis=0)
    columns = chain((a & (number == 1) for a in cells), (number == 1, number > 0))
    return _by_pair(columns, pair, pairs)


def _by_pair(columns: Iterable[Bools], pair: Ints, pairs: int) -> Floats:
    counted = [np.bincount(pair[column], minlength=pairs) for column in columns]
    return np.column_stack(counted).astype(np.float64)


def subsumption(aligned: Aligned, seed: int = 0) -> Couples:
    """η(a|b): of what run a knows in a relation, the share that run b knows too, averaged over the
    relations in which a knows anything, whose number is n; the sharing rate pools all relations.

    What a run knows are (pair, template) that are right under some name of the subject; with one
    template per relation these are the pairs. Intervals are over pairs, resampled within relations.
    """
    first, width = aligned.first, len(aligned.runs)
    counts = _known_together(*_known_cells(aligned), len(first.pairs))  # [pairs, runs²]
    total, measured = np.zeros((2, DRAWS, width, width))
    rates = np.full((len(first.relations), width, width), np.nan)
    spread = np.zeros((width, width))
    for r, relation in enumerate(first.relations):
        of_relation = counts[first.grid.relations == r]
        rates[r] = _of_the_first(of_relation.sum(axis=0)[None], width)[0]
        rng = stream(seed, f"subsumption:{relation.id}")
        draws = _of_the_first(resampled_sums(of_relation, rng), width)
        total += np.nan_to_num(draws)
        measured += ~np.isnan(draws)
        # how many pairs stand behind each rate: those of which a knows something
        pairs = (of_relation.reshape(-1, width, width).diagonal(axis1=1, axis2=2) > 0).sum(axis=0)
        spread += np.where(pairs > 0, 1 / np.maximum(pairs, 1), 0.0)[:, None]
    with np.errstate(invalid="ignore"):
        means = total / measured

    def rate(a: int, b: int) -> Drawn:
        kept = _told(rates[:, a, b])
        if not len(kept):
            return Estimate.not_measured(), means[:, a, b]
        value, n, trials = float(kept.mean()), len(kept), len(kept) ** 2 / spread[a, b]
        share = _share(value, means[:, a, b], n=n, trials=trials, itself=a == b)
        return share, means[:, a, b]

    every = product(range(width), range(width))
    return couples({couple: rate(*couple) for couple in every}, [r.group for r in aligned.runs])


def _of_the_first(sums: Floats, width: int) -> Floats:
    """Known by both over known by the first, [draws, runs²] to [draws, runs, runs]."""
    both = sums.reshape(-1, width, width)
    first = both.diagonal(axis1=1, axis2=2)
    with np.errstate(invalid="ignore"):
        return np.asarray(both / np.where(first > 0, first, np.nan)[:, :, None])


def correlation(accuracies: Floats, groups: Sequence[str], seed: int = 0) -> Couples:
    """Pearson's correlation of every two runs' accuracies [runs, relations]; n counts relations.

    Not measured for fewer than three relations, and where a run is equally good at all of them. The
    intervals are over relations, resampled for all runs together.
    """
    runs, relations = accuracies.shape
    centred = accuracies - accuracies.mean(axis=1, keepdims=True)
    every = list(combinations_with_replacement(range(runs), 2))
    columns = np.column_stack([*centred, *(centred[a] * centred[b] for a, b in every)])
    drawn = resampled_sums(columns, stream(seed, "correlation")) / relations
    values = _pearson(columns.mean(axis=0)[None], every, runs)[0]
    draws = _pearson(drawn, every, runs)
    if relations < FEWEST:
        values = np.full(len(every), np.nan)

    def one(value: float, of_couple: Floats) -> Drawn:
        if np.isnan(value):
            return Estimate.not_measured(), of_couple
        return around(float(value), _told(of_couple), n=relations), of_couple

    numbers = (one(value, of_couple) for value, of_couple in zip(values, draws.T, strict=True))
    return couples(dict(zip(every, numbers, strict=True)), groups, symmetric=True)


def _pearson(means: Floats, every: Sequence[Couple], runs: int) -> Floats:
    """Correlations from the means of values and of products; [draws, couples]."""
    squares = [runs + every.index((a, a)) for a in range(runs)]
    variance = means[:, squares] - means[:, :runs] ** 2
    variance = np.where(variance < EQUAL, np.nan, variance)
    first, second = np.array(every).T
    covariance = means[:, runs:] - means[:, first] * means[:, second]
    return np.clip(covariance / np.sqrt(variance[:, first] * variance[:, second]), -1.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranked:
    """A template with its rank by accuracy in its relation, 1 is best, in each run."""

    template: int
    of: int
    ranks: Floats

    @property
    def spread(self) -> float:
        """How far its ranks lie apart."""
        return float(np.ptp(self.ranks))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Agreement:
    """tau: mean over relations of Kendall's τ-b between two runs' template accuracies; n counts
    those in which both tell templates apart. least: the two runs that agree least, and those that
    are not told from them. templates: the ranks of all, the most different first."""

    tau: Couples
    least: Lead | None
    templates: tuple[Ranked, ...]


def rank_agreement(aligned: Aligned, seed: int = 0) -> Agreement:
    """How far the runs agree on templates; intervals are over relations.

    A relation with one template, or whose templates are all equal in a run, has no order to compare
    and is left out.
    """
    accuracies = np.stack([template_accuracies(run.judged.grid) for run in aligned.runs])
    owners = aligned.first.grid.template_relations
    relations = [np.flatnonzero(owners == r) for r in np.unique(owners)]
    taus = {
        (a, b): np.array([_tau(accuracies[a][own], accuracies[b][own]) for own in relations])
        for a, b in combinations_with_replacement(range(len(accuracies)), 2)
    }

    def drawn(of_relations: Floats) -> Drawn:
        kept = _told(of_relations)
        if not len(kept):
            return Estimate.not_measured(), kept
        draws = resampled_sums(kept[:, None], stream(seed, "ranks"))[:, 0] / len(kept)
        return around(float(kept.mean()), draws, n=len(kept)), draws

    groups = [run.group for run in aligned.runs]
    numbers = {couple: drawn(of_relations) for couple, of_relations in taus.items()}
    return Agreement(
        tau=couples(numbers, groups, symmetric=True),
        least=_least(aligned.names, taus, seed),
        templates=_ranked(accuracies, relations),
    )


def ranks(accuracies: Floats) -> Floats:
    """The rank of each, 1 is best; equal ones share the mean of their ranks.

    >>> ranks(np.array([0.2, 0.9, 0.2])).tolist()
    [2.5, 1.0, 2.5]
    """
    better = (accuracies[None, :] > accuracies[:, None]).sum(axis=1)
    equal = (accuracies[None, :] == accuracies[:, None]).sum(axis=1)
    return np.asarray(1 + better + (equal - 1) / 2, dtype=np.float64)


def _tau(a: Floats, b: Floats) -> float:
    tau = kendall_tau_b(a, b)
    return float("nan") if tau is None else tau


def _least(names: Sequence[str], taus: Mapping[Couple, Floats], seed: int) -> Lead | None:
    """Tested by the relations in which all four runs tell templates apart."""
    measured = {
        f"{names[a]} and {names[b]}": taus[a, b]
        for a, b in combinations(range(len(names)), 2)
        if not np.isnan(taus[a, b]).all()
    }

    def test(one: str, other: str) -> float:
        apart = measured[one] - measured[other]
        return sign_flip(_told(apart), stream(seed, f"ranks:{one}:{other}"))

    means = {name: float(np.nanmean(of_relations)) for name, of_relations in measured.items()}
    return lead(means, test, lowest=True)


def _ranked(accuracies: Floats, relations: Sequence[Ints]) -> tuple[Ranked, ...]:
    templates = []
    for own in relations:
        of_runs = np.stack([ranks(row[own]) for row in accuracies])
        templates += [
            Ranked(template=int(t), of=len(own), ranks=of_runs[:, i]) for i, t in enumerate(own)
        ]
    return tuple(sorted(templates, key=lambda ranked: (-ranked.spread, ranked.template)))
