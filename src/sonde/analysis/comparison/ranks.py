"""Whether runs find the same templates good. Knows aligned runs, nothing of tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sonde.analysis.runs import Aligned
from sonde.core.fingerprints import draw_key
from sonde.core.reports import Estimate
from sonde.metrics.accuracy import template_accuracies
from sonde.metrics.cells import around, stream
from sonde.metrics.grid import Floats
from sonde.metrics.leading import Lead, lead
from sonde.stats.correlation import kendall_tau_b
from sonde.stats.draws import resampled_sums
from sonde.stats.paired import sign_flip


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
    """tau[a][b]: mean over relations of Kendall's τ-b between two runs' template accuracies.

    n counts the relations in which both runs tell templates apart. mean: over all pairs of
    different runs, their number being n. least: the two runs that agree least, and those that are
    not told from them. templates: the ranks of all, the most different first.
    """

    tau: tuple[tuple[Estimate, ...], ...]
    mean: Estimate
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
    runs = range(len(accuracies))
    taus = np.array(
        [[[_tau(accuracies[a][own], accuracies[b][own]) for own in relations] for b in runs]
         for a in runs]
    )  # fmt: skip
    draws = {(a, b): _draws(taus[a, b], seed) for a in runs for b in runs}
    return Agreement(
        tau=tuple(tuple(_estimate(taus[a, b], draws[a, b]) for b in runs) for a in runs),
        mean=_mean([(taus[a, b], draws[a, b]) for a in runs for b in runs if a < b]),
        least=_least([run.name for run in aligned.runs], taus, seed),
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
    found = kendall_tau_b(a, b)
    return float("nan") if found is None else found


def _draws(taus: Floats, seed: int) -> Floats:
    """The mean over relations when these are resampled; [draws]."""
    kept = taus[~np.isnan(taus)]
    if not len(kept):
        return kept
    return resampled_sums(kept[:, None], stream(seed, "ranks"))[:, 0] / len(kept)


def _estimate(taus: Floats, draws: Floats) -> Estimate:
    kept = taus[~np.isnan(taus)]
    return around(float(kept.mean()), draws, n=len(kept)) if len(kept) else Estimate.not_measured()


def _mean(pairs: Sequence[tuple[Floats, Floats]]) -> Estimate:
    there = [(float(np.nanmean(taus)), draws) for taus, draws in pairs if len(draws)]
    if not there:
        return Estimate.not_measured()
    value = float(np.mean([value for value, _ in there]))
    return around(value, np.mean([draws for _, draws in there], axis=0), n=len(there))


def _least(names: Sequence[str], taus: Floats, seed: int) -> Lead | None:
    """Tested by the relations in which all four runs tell templates apart."""
    found = {
        f"{names[a]} and {names[b]}": taus[a, b]
        for a, b in combinations(range(len(names)), 2)
        if not np.isnan(taus[a, b]).all()
    }

    def test(one: str, other: str) -> float:
        apart = found[one] - found[other]
        rng = np.random.default_rng(draw_key(seed, f"ranks:{one}:{other}"))
        return sign_flip(apart[~np.isnan(apart)], rng)

    return lead({name: float(np.nanmean(own)) for name, own in found.items()}, test, lowest=True)


def _ranked(accuracies: Floats, relations: Sequence[np.ndarray]) -> tuple[Ranked, ...]:
    made = []
    for own in relations:
        of_runs = np.stack([ranks(row[own]) for row in accuracies])
        made += [
            Ranked(template=int(t), of=len(own), ranks=of_runs[:, i]) for i, t in enumerate(own)
        ]
    return tuple(sorted(made, key=lambda ranked: (-ranked.spread, ranked.template)))
