"""Averages over facts and relations, each with n and a 95 % interval."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sonde.core.facts import Relation
from sonde.core.fingerprints import draw_key
from sonde.core.reports import FLAT, Estimate
from sonde.core.threads import side_by_side
from sonde.core.words import LEVEL, by_test
from sonde.stats import paired
from sonde.stats.intervals import (
    DRAWS,
    Floats,
    deviation,
    paired_difference,
    percentile_interval,
    resampled_means,
    unvaried_difference,
    widening,
    wilson,
)

Over = Literal["relations", "facts"]

RELATIONS, FACTS = "mean_over_relations", "mean_over_facts"
"""What the names of means end with."""

FEW = 500
"""With more clusters than this the interval of a difference and a test of it say the same."""

Clusters = tuple[str, ...] | NDArray[np.int64]
"""Which facts belong together: equal names, or equal numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One value per fact of a relation; facts of one cluster are not independent of each other.

    Without clusters each fact is one by itself. With `minus`, the value of a control on the same
    facts, the sample is of the difference.
    """

    values: Floats
    clusters: Clusters | None = None
    minus: Floats | None = None

    def differences(self) -> Floats:
        """What is averaged: the values, less the control's."""
        return self.values if self.minus is None else self.values - self.minus

    def draws(self, seed: int) -> Floats:
        """The mean under resampling of whole clusters."""
        return draws_of([self], seed)[0]

    def estimate(self, draws: Floats) -> Estimate:
        """The mean: an exact interval for independent outcomes of 0 or 1, else the bootstrap's."""
        if not self.independent_outcomes():
            low, high = interval(draws, [self], [1.0])
        elif self.minus is None:
            low, high = wilson(float(self.values.sum()), len(self.values))
        else:
            low, high = paired_difference(self.values, self.minus)
        value = float(self.differences().mean())
        return Estimate(value=value, low=min(low, value), high=max(high, value), n=len(self.values))

    def independent(self) -> int:
        """How many clusters there are: so many values do not depend on each other."""
        if self.clusters is None:
            return len(self.values)
        return len(np.unique(np.asarray(self.clusters)))

    def independent_outcomes(self) -> bool:
        """Whether every value is 0 or 1, the control's too, and no two are of one cluster."""
        given = self.values if self.minus is None else np.concatenate([self.values, self.minus])
        alone = self.independent() == len(self.values)
        return alone and bool(((given == 0.0) | (given == 1.0)).all())

    def cluster_numbers(self) -> NDArray[np.int64]:
        """The cluster of each value, counted from 0."""
        if self.clusters is None:
            return np.arange(len(self.values))
        return np.unique(np.asarray(self.clusters), return_inverse=True)[1]


def draws_of(samples: Sequence[Sample], seed: int, *, once: bool = False) -> list[Floats]:
    """The means of samples of the same clusters, resampled alike; `once`: nothing else is so."""
    index = samples[0].cluster_numbers()
    sums = [np.bincount(index, weights=sample.differences()) for sample in samples]
    sizes: Floats = np.bincount(index).astype(np.float64)
    drawn = resampled_means(np.column_stack(sums), sizes, np.random.default_rng(seed), once=once)
    return list(drawn.T)


def samples_of(
    values: Floats,
    owners: NDArray[np.int64],
    minus: Floats | None = None,
    *,
    clusters: NDArray[np.int64] | None = None,
    ids: Sequence[str] | None = None,
) -> dict[str, Sample]:
    """Facts by their relation, `owners` being its number; it is called so, or as `ids` say.

    Without clusters no fact depends on another.
    """
    samples = {}
    for number in np.unique(owners).tolist():
        at = np.flatnonzero(owners == number)
        samples[str(number) if ids is None else ids[number]] = Sample(
            values=values[at],
            clusters=None if clusters is None else clusters[at],
            minus=None if minus is None else minus[at],
        )
    return samples


def interval(
    draws: Floats, samples: Sequence[Sample], weights: Sequence[float]
) -> tuple[float, float]:
    """The middle 95 % of the draws of a weighted mean, whose weights add up to 1.

    Where nothing varies in the samples (all wrong, or all right) the draws have no width, which
    would be too sure: other facts may differ. Of shares the interval is then that of as many
    independent trials as the weights leave; of other values there is none.
    """
    low, high = percentile_interval(draws)
    if high - low > FLAT or not _shares(samples):
        return low, high
    trials = 1 / sum(w * w / s.independent() for s, w in zip(samples, weights, strict=True))
    mean = _mean([s.differences() for s in samples], weights)
    if samples[0].minus is not None:
        return unvaried_difference(mean, trials)
    return wilson(mean * trials, trials)


def spread_of(values: Sequence[float]) -> Estimate:
    """The standard deviation of some numbers; not measured of fewer than two."""
    if len(values) < 2:
        return Estimate.not_measured()
    # equal numbers may differ in their last digit
    value, low, high = deviation([round(value, 12) for value in values])
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=len(values))


def _mean(columns: Sequence[Floats], weights: Sequence[float]) -> float:
    return float(sum(w * c.mean() for c, w in zip(columns, weights, strict=True)))


def _shares(samples: Sequence[Sample]) -> bool:
    """Whether all values lie between 0 and 1, as those of shares do."""
    columns = [c for s in samples for c in (s.values, s.minus) if c is not None]
    return all(c.min() >= 0 and c.max() <= 1 for c in columns)


def p_value(
    samples: Mapping[str, Sample],
    seed: int,
    name: str,
    over: Over = "relations",
    draws: int = paired.DRAWS,
) -> float:
    """Of the mean difference of samples with a control, over relations or over facts.

    McNemar's exact test where it is what is asked: one relation, outcomes of 0 or 1, facts of
    different subjects. Else signs are flipped, of all facts of a subject together, by a stream of
    that name.
    """
    kept = [sample for sample in samples.values() if len(sample.values)]
    sizes = [len(sample.values) if over == "facts" else 1 for sample in kept]
    return _p(kept, sizes, f"p:{name}", seed, draws) if kept else 1.0


def hold_together(differences: Sequence[Estimate]) -> list[Estimate]:
    """Differences of which several are looked at: their intervals are widened so that all of them
    hold together (Bonferroni), their p values corrected for how many there are (Holm).

    The interval of a difference agrees with its corrected test. A difference without a test counts
    as one that is significant.
    """
    measured = [d for d in differences if d.low is not None]
    wide, corrected = widening(len(measured)), iter(paired.holm([d.p or 0.0 for d in measured]))
    return [d if d.low is None else _widened(d, wide, next(corrected)) for d in differences]


def _widened(difference: Estimate, times: float, p: float) -> Estimate:
    """The ends so many times as far from the value, within -1 and 1."""
    value, (low, high) = difference.value or 0.0, difference.ends
    low, high = value - (value - low) * times, value + (high - value) * times
    widened = replace(difference, low=max(low, -1.0), high=min(high, 1.0))
    return widened if difference.p is None else by_test(widened, p)


def _p(
    samples: Sequence[Sample],
    weights: Sequence[float],
    name: str,
    seed: int,
    draws: int = paired.DRAWS,
) -> float:
    """The p of a weighted mean difference."""
    first = samples[0]
    if len(samples) == 1 and first.minus is not None and first.independent_outcomes():
        return paired.mcnemar(first.values, first.minus)
    sums = [_cluster_sums(sample) * weight for sample, weight in zip(samples, weights, strict=True)]
    return paired.sign_flip(
        np.concatenate(sums), np.random.default_rng(draw_key(seed, name)), draws
    )


def _cluster_sums(sample: Sample) -> Floats:
    """What each cluster adds to the mean difference."""
    sums = np.bincount(sample.cluster_numbers(), sample.differences())
    return np.asarray(sums / len(sample.values))


class Resampled:
    """The samples of some relations, with the bootstrap of every relation's mean.

    Clusters are resampled within their relation; the relations are those asked about and stay.
    Each relation has a random stream of its own, so that no other moves its draws.
    """

    def __init__(self, samples: Mapping[str, Sample], seed: int) -> None:
        self.seed = seed
        self.samples = {name: s for name, s in samples.items() if len(s.values)}
        self._drawn: dict[str, Floats] = {}

    def draws(self, name: str) -> Floats:
        """A relation's mean, drawn anew many times."""
        if name not in self._drawn:
            self._drawn[name] = self.samples[name].draws(draw_key(self.seed, name))
        return self._drawn[name]

    def relation(self, name: str) -> Estimate:
        """One relation."""
        if name not in self.samples:
            return Estimate.not_measured()
        made = self.samples[name].estimate(self.draws(name))
        return by_test(made, self._tested([name], [1.0]))

    def mean_over_relations(self, only: Collection[str] | None = None) -> Estimate:
        """Every relation counts the same; n is the number of facts behind it."""
        return self.weighted_mean({n: 1.0 for n in self.samples if only is None or n in only})

    def mean_over_facts(self) -> Estimate:
        """Every fact counts the same."""
        return self.weighted_mean({n: float(len(s.values)) for n, s in self.samples.items()})

    def weighted_mean(self, weights: Mapping[str, float]) -> Estimate:
        """Relations count by weights of their own; n is the number of facts behind it."""
        if len(weights) <= 1:
            return self.relation(next(iter(weights), ""))
        total = sum(weights.values())
        shares = [weight / total for weight in weights.values()]
        samples = [self.samples[name] for name in weights]
        draws = self._drawn_mean(weights, shares)
        means = [sample.differences().mean() for sample in samples]
        value = float(sum(mean * share for mean, share in zip(means, shares, strict=True)))
        low, high = interval(draws, samples, shares)
        n = sum(len(sample.values) for sample in samples)
        p = self._tested(list(weights), shares)
        return by_test(Estimate(value=value, low=min(low, value), high=max(high, value), n=n), p)

    def means(self, name: str, relations: Iterable[str]) -> dict[str, Estimate]:
        """The means over relations and over facts and of each relation, by the name of a metric."""
        return {
            f"{name}.{RELATIONS}": self.mean_over_relations(),
            f"{name}.{FACTS}": self.mean_over_facts(),
            **{f"{name}.relation.{id}": self.relation(id) for id in relations},
        }

    def draws_over_facts(self) -> Floats:
        """The mean over facts, drawn anew many times."""
        sizes = [len(sample.values) for sample in self.samples.values()]
        return self._drawn_mean(self.samples, [size / sum(sizes) for size in sizes])

    def _drawn_mean(self, names: Iterable[str], shares: Iterable[float]) -> Floats:
        every = list(names)
        side_by_side(self.draws, [name for name in every if name not in self._drawn])
        drawn = (self.draws(name) * share for name, share in zip(every, shares, strict=True))
        return np.asarray(sum(drawn))

    def _tested(self, names: Sequence[str], shares: Sequence[float]) -> float | None:
        """The p of a difference on few facts; of many the interval is enough."""
        samples = [self.samples[name] for name in names]
        few = sum(sample.independent() for sample in samples) <= FEW
        if not few or samples[0].minus is None:
            return None
        return _p(samples, shares, f"p:{','.join(names)}", self.seed, draws=DRAWS)


def resampled_together(
    numbers: Mapping[str, Mapping[str, Sample]], seed: int
) -> dict[str, Resampled]:
    """Several numbers, each with its samples by relation: as `Resampled` one by one, but quicker.

    Samples of one relation that have the same clusters are drawn at once.
    """
    made = {id: Resampled(samples, seed) for id, samples in numbers.items()}
    alike: dict[tuple[str, bytes], list[Resampled]] = {}
    for number in made.values():
        for name, sample in number.samples.items():
            alike.setdefault((name, sample.cluster_numbers().tobytes()), []).append(number)

    def draw(of: tuple[tuple[str, bytes], list[Resampled]]) -> None:
        (name, _), members = of
        samples = [number.samples[name] for number in members]
        drawn = draws_of(samples, draw_key(seed, name), once=len(members) == 1)
        for number, draws in zip(members, drawn, strict=True):
            number._drawn[name] = draws

    side_by_side(draw, alike.items())
    return made


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ByFact:
    """Facts as columns, for numbers that have one value a fact.

    `relation` of each is its place in `ids`; facts of one `subject` belong together.
    """

    ids: tuple[str, ...]
    relation: NDArray[np.int64]
    subject: NDArray[np.int64]
    seed: int

    @classmethod
    def of(
        cls,
        relations: Iterable[Relation],
        owners: NDArray[np.int64],
        subjects: NDArray[np.int64],
        seed: int,
    ) -> ByFact:
        """Facts of some relations; `owners`: the place of each one's relation among them."""
        return cls(ids=tuple(r.id for r in relations), relation=owners, subject=subjects, seed=seed)

    def resampled(self, values: Floats, minus: Floats | None = None) -> Resampled:
        """One value a fact, less `minus`; what is nan in either is left out."""
        return Resampled(self._samples(values, minus), self.seed)

    def together(self, numbers: Mapping[str, tuple[Floats, Floats | None]]) -> dict[str, Resampled]:
        """Several numbers by their ids, each as `resampled` takes it."""
        samples = {id: self._samples(*columns) for id, columns in numbers.items()}
        return resampled_together(samples, self.seed)

    def _samples(self, values: Floats, minus: Floats | None) -> dict[str, Sample]:
        there = ~np.isnan(values if minus is None else values + minus)
        less = None if minus is None else minus[there]
        subjects, owners = self.subject[there], self.relation[there]
        return samples_of(values[there], owners, less, clusters=subjects, ids=self.ids)

    def estimates(
        self, name: str, values: Floats, minus: Floats | None = None
    ) -> dict[str, Estimate]:
        """The mean over relations and of each relation, by name."""
        return self.named(name, self.resampled(values, minus))

    def named(self, name: str, resampled: Resampled) -> dict[str, Estimate]:
        """The same of what was resampled."""
        return {
            f"{name}.{RELATIONS}": resampled.mean_over_relations(),
            **{f"{name}.relation.{id}": resampled.relation(id) for id in self.ids},
        }


Test = Callable[[str, str], float]
"""The p of the difference between two, by their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """The one of several with the best value, and others that are not distinguishable from it."""

    best: str
    value: float
    tied: tuple[str, ...]


def lead(values: Mapping[str, float], test: Test, *, lowest: bool = False) -> Lead | None:
    """Who has the highest value, or the lowest; None where there is nobody to lead.

    Each of the others is tested against it; the p values are corrected for how many these are
    (Holm), since with many to choose from one is first by chance.
    """
    if len(values) < 2:
        return None
    best = (min if lowest else max)(values, key=lambda name: values[name])
    others = [name for name in values if name != best]
    ps = [1.0 if values[name] == values[best] else test(best, name) for name in others]
    tied = (name for name, p in zip(others, paired.holm(ps), strict=True) if p >= LEVEL)
    return Lead(best=best, value=values[best], tied=tuple(tied))
