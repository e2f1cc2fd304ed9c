"""Averages over facts and relations, each with n and a 95 % interval."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sonde.core.fingerprints import draw_key
from sonde.core.reports import Estimate
from sonde.stats.intervals import (
    Floats,
    paired_difference,
    percentile_interval,
    resampled_means,
    wilson,
)

Clusters = tuple[str, ...] | NDArray[np.int64]
"""Which facts belong together: equal names, or equal numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One value per fact of a relation; facts of one cluster are not independent of each other.

    With `minus`, the value of a control on the same facts, the sample is of the difference.
    """

    values: Floats
    clusters: Clusters
    minus: Floats | None = None

    def differences(self) -> Floats:
        """What is averaged: the values, less the control's."""
        return self.values if self.minus is None else self.values - self.minus

    def draws(self, seed: int) -> Floats:
        """The mean under resampling of whole clusters."""
        _, index = np.unique(np.asarray(self.clusters), return_inverse=True)
        sums: Floats = np.bincount(index, weights=self.differences()).astype(np.float64)
        sizes: Floats = np.bincount(index).astype(np.float64)
        return resampled_means(sums, sizes, np.random.default_rng(seed))

    def estimate(self, draws: Floats) -> Estimate:
        """The mean: an exact interval for independent outcomes of 0 or 1, else the bootstrap's."""
        if not self._independent_outcomes():
            low, high = percentile_interval(draws)
        elif self.minus is None:
            low, high = wilson(float(self.values.sum()), len(self.values))
        else:
            low, high = paired_difference(self.values, self.minus)
        value = float(self.differences().mean())
        return Estimate(value=value, low=min(low, value), high=max(high, value), n=len(self.values))

    def _independent_outcomes(self) -> bool:
        given = self.values if self.minus is None else np.concatenate([self.values, self.minus])
        alone = len(np.unique(np.asarray(self.clusters))) == len(self.clusters)
        return alone and bool(np.isin(given, (0.0, 1.0)).all())


class Resampled:
    """The samples of some relations, with the bootstrap of every relation's mean.

    Clusters are resampled within their relation; the relations are those asked about and stay.
    Each relation has a random stream of its own, so that no other moves its draws.
    """

    def __init__(self, samples: Mapping[str, Sample], seed: int) -> None:
        self.samples = {name: s for name, s in samples.items() if len(s.values)}
        self.draws = {name: s.draws(draw_key(seed, name)) for name, s in self.samples.items()}

    def relation(self, name: str) -> Estimate:
        """One relation."""
        if name not in self.samples:
            return Estimate.not_measured()
        return self.samples[name].estimate(self.draws[name])

    def mean_over_relations(self, only: Collection[str] | None = None) -> Estimate:
        """Every relation counts the same; n is the number of facts behind it."""
        return self._weighted({n: 1.0 for n in self.samples if only is None or n in only})

    def mean_over_facts(self) -> Estimate:
        """Every fact counts the same."""
        return self._weighted({n: float(len(s.values)) for n, s in self.samples.items()})

    def _weighted(self, weights: Mapping[str, float]) -> Estimate:
        if len(weights) <= 1:
            return self.relation(next(iter(weights), ""))
        total = sum(weights.values())
        draws = sum(self.draws[name] * (weight / total) for name, weight in weights.items())
        means = {name: self.samples[name].differences().mean() for name in weights}
        value = float(sum(means[name] * weight / total for name, weight in weights.items()))
        low, high = percentile_interval(np.asarray(draws))
        n = sum(len(self.samples[name].values) for name in weights)
        return Estimate(value=value, low=min(low, value), high=max(high, value), n=n)
