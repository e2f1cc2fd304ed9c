"""Averages over facts and relations, each with n and a 95 % interval."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from sonde.core.reports import Estimate
from sonde.stats.intervals import (
    Floats,
    paired_difference,
    percentile_interval,
    resampled_means,
    wilson,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampled:
    """One value per fact, grouped by relation, with the bootstrap of every relation's mean.

    Facts are resampled within their relation; the relations are the ones asked about and stay.
    """

    groups: Mapping[str, Floats]
    draws: Floats

    @classmethod
    def of(cls, groups: Mapping[str, Floats], seed: int) -> Resampled:
        """Resample every group that has a value."""
        kept = {name: np.asarray(v, dtype=np.float64) for name, v in groups.items() if len(v)}
        return cls(groups=kept, draws=resampled_means(list(kept.values()), seed) if kept else _NONE)

    def mean_over_relations(self, only: Collection[str] | None = None) -> Estimate:
        """Every relation counts the same; n is the number of facts behind it."""
        chosen = self._chosen(only)
        return self._weighted(chosen, np.full(len(chosen), 1 / max(len(chosen), 1)))

    def mean_over_facts(self, only: Collection[str] | None = None) -> Estimate:
        """Every fact counts the same."""
        chosen = self._chosen(only)
        sizes = np.array([len(group) for group in self._values(chosen)], dtype=np.float64)
        return self._weighted(chosen, sizes / max(sizes.sum(), 1))

    def relation(self, name: str) -> Estimate:
        """One relation; Wilson's interval for outcomes that are 0 or 1."""
        if name not in self.groups:
            return Estimate.not_measured()
        values = self.groups[name]
        index = list(self.groups).index(name)
        if set(np.unique(values)) <= {0.0, 1.0}:
            low, high = wilson(float(values.sum()), len(values))
        else:
            low, high = percentile_interval(self.draws[:, index])
        return Estimate(value=float(values.mean()), low=low, high=high, n=len(values))

    def _chosen(self, only: Collection[str] | None) -> list[int]:
        return [i for i, name in enumerate(self.groups) if only is None or name in only]

    def _values(self, chosen: list[int]) -> list[Floats]:
        values = list(self.groups.values())
        return [values[i] for i in chosen]

    def _weighted(self, chosen: list[int], weights: Floats) -> Estimate:
        if not chosen:
            return Estimate.not_measured()
        values = self._values(chosen)
        means = np.array([group.mean() for group in values])
        low, high = percentile_interval(self.draws[:, chosen] @ weights)
        n = sum(len(group) for group in values)
        return Estimate(value=float(means @ weights), low=low, high=high, n=n)


_NONE = np.zeros((0, 0))


def paired_share_difference(first: Floats, second: Floats) -> Estimate:
    """How far one share lies above another of the same facts, with Newcombe's paired interval."""
    if not len(first):
        return Estimate.not_measured()
    low, high = paired_difference(first, second)
    return Estimate(value=float((first - second).mean()), low=low, high=high, n=len(first))
