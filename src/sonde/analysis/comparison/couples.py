"""What every two runs have in common: how much of what one knows the other knows too, and whether
they find the same relations and the same templates easy.

Each is a number of two runs with what it would be in other draws, so that means over couples have
intervals of their own. Estimates are named `NUMBER.runs.ROW.in.COLUMN`, or `and` where they are
symmetric, `NUMBER.mean` and so on. Knows aligned runs, nothing of tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations, combinations_with_replacement, permutations, product
from typing import Literal, NamedTuple

import numpy as np

from sonde.analysis.runs import Aligned, drawn_sums
from sonde.core.reports import Estimate
from sonde.metrics.accuracy import known, template_accuracies
from sonde.metrics.estimates import Lead, lead
from sonde.metrics.judged import Floats, Ints, around, by_subject, stream
from sonde.stats.correlation import kendall_tau_b, ranks_by_row
from sonde.stats.intervals import DRAWS, resampled_sums, wilson
from sonde.stats.paired import sign_flip

FEWEST = 3
"""Relations that a correlation needs: through two points there is always a line."""

EQUAL = 1e-12
"""Accuracies whose mean square distance from their mean is below this are all equal."""

Word = Literal["in", "and"]
Couple = tuple[int, int]
Drawn = tuple[Estimate, Floats]
"""A number of two runs, and the same in every draw; nan where a draw says nothing."""

Named = Iterator[tuple[str, Estimate]]


def couples(name: str, word: Word, drawn: Mapping[Couple, Drawn], runs: Mapping[str, str]) -> Named:
    """The numbers of all couples by name, of a symmetric one those of a ≤ b; `runs`: the group of
    each run.

    Means are over all couples of different runs, their number being n: all, those within groups,
    those between groups, those of each two groups that have a couple.
    """
    names, kinds = list(runs), couples_by_group(list(runs.values()), word)
    for a, b in product(range(len(names)), repeat=2):
        couple = (b, a) if word == "and" and b < a else (a, b)
        yield f"{name}.runs.{names[a]}.{word}.{names[b]}", drawn[couple][0]

    def mean(members: Iterable[Couple]) -> Estimate:
        return _mean([drawn[couple] for couple in members])

    yield f"{name}.mean", mean(couple for couple in drawn if couple[0] != couple[1])
    for part, same in (("within", True), ("between", False)):
        parts = [members for (one, other), members in kinds.items() if (one == other) is same]
        yield f"{name}.{part}", mean(chain(*parts))
    for kind, members in kinds.items():
        yield f"{name}.groups.{f'.{word}.'.join(kind)}", mean(members)


def couples_by_group(groups: Sequence[str], word: Word) -> dict[tuple[str, str], list[Couple]]:
    """The couples of different runs by their two groups, those in either order together for a
    symmetric number."""
    kinds: dict[tuple[str, str], list[Couple]] = {}
    for a, b in permutations(range(len(groups)), 2):
        if word == "in":
            kinds.setdefault((groups[a], groups[b]), []).append((a, b))
        elif a < b:
            first, second = sorted((groups[a], groups[b]))
            kinds.setdefault((first, second), []).append((a, b))
    return kinds if word == "in" else dict(sorted(kinds.items()))


def _mean(drawn: Sequence[Drawn]) -> Estimate:
    """The mean of the numbers that were measured.

    A draw in which one of them cannot be told says nothing of their mean.
    """
    measured = [(estimate, draws) for estimate, draws in drawn if estimate.value is not None]
    if len(measured) < 2:
        return replace(measured[0][0], n=1) if measured else Estimate.not_measured()
    value = float(np.mean([estimate.value for estimate, _ in measured]))
    draws = np.mean([draws for _, draws in measured], axis=0)
    return around(value, _numbers(draws), n=len(measured))


def _around(rows: Floats, n: int) -> Drawn:
    """The first of the rows with the middle 95 % of the others; not measured where it is nan."""
    value, draws = float(rows[0]), rows[1:]
    if np.isnan(value):
        return Estimate.not_measured(), draws
    return around(value, _numbers(draws), n=n), draws


def _numbers(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def groups_of(aligned: Aligned) -> dict[str, str]:
    """The group of each run."""
    return {run.name: run.group for run in aligned.runs}


def sharing(aligned: Aligned, seed: int = 0) -> Named:
    """What runs share. A run knows a pair under a template if it is right under some name.

    sharing: the share of what run a knows that run b knows too; n is what a knows. subsumption,
    η(a|b): the same in each relation, averaged over the relations in which a knows anything, whose
    number is n. known_alone: of what a run knows, what no other knows; known_in_one_run: of what
    any run knows, what exactly one does. Intervals are over subjects, resampled within relations.
    """
    by, width = aligned.by_pair(seed), len(aligned.runs)
    relations, counts = by.relation, _known_by_pair(aligned)
    pooled = np.zeros((1 + DRAWS, counts.shape[1]))
    total, measured = np.zeros((2, 1 + DRAWS, width, width))
    streams = [f"sharing:{r}" for r in range(len(aligned.first.relations))]
    for sums in drawn_sums(counts, relations, streams, seed, by.subject):
        pooled += sums
        of_relation = _of_the_first(sums, width)
        total += np.nan_to_num(of_relation)
        measured += ~np.isnan(of_relation)
    owners = relations[np.unique(by.subject, return_index=True)[1]]
    known_of = by_subject(counts, by.subject) > 0
    subjects = np.stack([known_of[owners == r].sum(axis=0) for r in range(len(streams))])
    # a mean over relations of so many subjects each says as much as so many subjects together
    spread = _ratio(np.ones(subjects.shape), subjects, missing=0.0).sum(axis=0)
    rates, means = _of_the_first(pooled, width), _ratio(total, measured)

    def share(rows: Floats, whole: int, itself: bool = False) -> Drawn:
        n, trials = int(pooled[0, whole]), int(subjects[:, whole].sum())
        return _share(rows, n, trials, itself)

    shared, eta = {}, {}
    for a, b in product(range(width), repeat=2):
        whole, n = a * (width + 1), int(measured[0, a, b])
        shared[a, b] = share(rates[:, a, b], whole, a == b)
        eta[a, b] = _share(means[:, a, b], n, n**2 / spread[whole] if n else 0.0, a == b)
    yield from couples("sharing", "in", shared, groups_of(aligned))
    yield from couples("subsumption", "in", eta, groups_of(aligned))
    for a, name in enumerate(aligned.names):
        alone, whole = width**2 + a, a * (width + 1)
        yield f"known_alone.run.{name}", share(_ratio(pooled[:, alone], pooled[:, whole]), whole)[0]
    yield "known_in_one_run", share(_ratio(pooled[:, -2], pooled[:, -1]), -1)[0]


def _known_by_pair(aligned: Aligned) -> Floats:
    """Under how many templates a pair is known by run a and by run b, by run a alone, by one run
    alone, by any; [pairs, runs² + runs + 2]."""
    of_runs = [known(grid) for grid in aligned.grids()]
    cells, pair = [right for _, _, right in of_runs], of_runs[0][1]
    number = np.sum(cells, axis=0)
    # column by column: a table of all templates of all pairs would be large
    columns = chain(
        (a & b for a, b in product(cells, cells)),
        (a & (number == 1) for a in cells),
        (number == 1, number > 0),
    )
    counted = [np.bincount(pair[column], minlength=len(aligned.first.pairs)) for column in columns]
    return np.column_stack(counted).astype(np.float64)


def _of_the_first(sums: Floats, width: int) -> Floats:
    """Known by both over known by the first, [draws, runs² and more] to [draws, runs, runs]."""
    both = sums[:, : width**2].reshape(-1, width, width)
    return _ratio(both, both.diagonal(axis1=1, axis2=2)[:, :, None])


def _ratio(part: Floats, whole: Floats | Ints, missing: float = np.nan) -> Floats:
    part, whole = np.broadcast_arrays(part, whole)
    return np.asarray(np.divide(part, whole, out=np.full(part.shape, missing), where=whole > 0))


def _share(rows: Floats, n: int, trials: float, itself: bool) -> Drawn:
    """A share, the first of the rows, with the middle 95 % of its bootstrap, the others; where no
    draw differs from another, which would be too sure, Wilson's interval of as many independent
    trials. What a run shares with itself is no estimate."""
    value, draws = float(rows[0]), rows[1:]
    kept = _numbers(draws)
    if not n:
        return Estimate.not_measured(), draws
    if itself:
        return Estimate(value=value, low=None, high=None, n=n), draws
    if len(kept) and np.ptp(kept) > 0:
        return around(value, kept, n), draws
    low, high = wilson(value * trials, trials)
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=n), draws


def correlation(accuracies: Floats, groups: Mapping[str, str], seed: int = 0) -> Named:
    """Pearson's correlation of every two runs' accuracies [runs, relations]; n counts relations.

    Not measured for fewer than three relations, and where a run is equally good at all of them. The
    intervals are over relations, resampled for all runs together.
    """
    runs, relations = accuracies.shape
    centred = accuracies - accuracies.mean(axis=1, keepdims=True)
    every = list(combinations_with_replacement(range(runs), 2))
    columns = np.column_stack([*centred, *(centred[a] * centred[b] for a, b in every)])
    drawn = resampled_sums(columns, stream(seed, "correlation")) / relations
    rows = _pearson(np.vstack([columns.mean(axis=0), drawn]), every, runs)
    if relations < FEWEST:
        rows[0] = np.nan
    numbers = {couple: _around(rows[:, k], relations) for k, couple in enumerate(every)}
    yield from couples("correlation", "and", numbers, groups)


def _pearson(means: Floats, every: Sequence[Couple], runs: int) -> Floats:
    """Correlations from the means of values and of products; [draws, couples]."""
    squares = [runs + every.index((a, a)) for a in range(runs)]
    variance = means[:, squares] - means[:, :runs] ** 2
    variance = np.where(variance < EQUAL, np.nan, variance)
    first, second = np.array(every).T
    covariance = means[:, runs:] - means[:, first] * means[:, second]
    return np.clip(covariance / np.sqrt(variance[:, first] * variance[:, second]), -1.0, 1.0)


class Ranked(NamedTuple):
    """A template with its rank by accuracy in its relation, 1 is best, in each run; `of` so many
    templates."""

    template: int
    of: int
    ranks: Floats


class TemplateOrder:
    """How well each run does in each template of a relation, and whether runs agree on it.

    A relation with one template, or whose templates are all equal in a run, has no order to compare
    and is left out.
    """

    def __init__(self, aligned: Aligned) -> None:
        self.runs = groups_of(aligned)
        grids = aligned.grids()
        self.accuracies = np.stack([template_accuracies(grid) for grid in grids])
        owners = grids[0].template_relations
        self.relations = [np.flatnonzero(owners == r) for r in np.unique(owners)]
        self.taus = {
            (a, b): np.array([self._tau(a, b, templates) for templates in self.relations])
            for a, b in combinations_with_replacement(range(len(self.runs)), 2)
        }

    def _tau(self, a: int, b: int, templates: Ints) -> float:
        tau = kendall_tau_b(self.accuracies[a][templates], self.accuracies[b][templates])
        return float("nan") if tau is None else tau

    def agreement(self, seed: int = 0) -> Named:
        """Mean over relations of Kendall's τ-b between two runs' template accuracies; n counts
        those in which both tell templates apart. Intervals are over relations."""
        numbers = {}
        for couple, of_relations in self.taus.items():
            kept = _numbers(of_relations)
            rows = np.array([np.nan])
            if len(kept):
                draws = resampled_sums(kept[:, None], stream(seed, "ranks"))[:, 0] / len(kept)
                rows = np.append(kept.mean(), draws)
            numbers[couple] = _around(rows, len(kept))
        yield from couples("rank_agreement", "and", numbers, self.runs)

    def least(self, seed: int = 0) -> Lead | None:
        """The two runs that agree least, and those that are not distinguishable from them: tested
        by the relations in which all four runs tell templates apart."""
        measured = {
            " and ".join(names): self.taus[couple]
            for couple, names in zip(
                combinations(range(len(self.runs)), 2), combinations(self.runs, 2), strict=True
            )
            if not np.isnan(self.taus[couple]).all()
        }

        def test(one: str, other: str) -> float:
            apart = measured[one] - measured[other]
            return sign_flip(_numbers(apart), stream(seed, f"ranks:{one}:{other}"))

        means = {name: float(np.nanmean(of_relations)) for name, of_relations in measured.items()}
        return lead(means, test, lowest=True)

    def ranked(self) -> list[Ranked]:
        """All templates, those whose ranks lie furthest apart first."""
        templates = [
            Ranked(template, len(own), ranks)
            for own in self.relations
            for template, ranks in zip(
                own.tolist(), ranks_by_row(-self.accuracies[:, own]).T, strict=True
            )
        ]
        return sorted(templates, key=lambda row: (-np.ptp(row.ranks), row.template))
