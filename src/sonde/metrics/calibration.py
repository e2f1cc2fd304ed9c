"""How far a model's confidence is from its accuracy, and which answers templates favour before they
know what is asked. Knows numbers alone, no prompts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sonde.core.reports import Estimate
from sonde.core.threads import side_by_side
from sonde.metrics.estimates import spread_of
from sonde.metrics.judged import Bools, Floats, Grid, Ints, around, resampled_in, stream
from sonde.stats.intervals import DRAWS, clustered_means, resampled_sums


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Prompts of like confidence: from low to high, their mean confidence and their accuracy."""

    low: float
    high: float
    confidence: float
    accuracy: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """overconf: mean confidence less accuracy, signed. ece: the mean absolute gap over the bins."""

    overconf: Estimate
    ece: Estimate
    bins: tuple[Bin, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cut:
    """Prompts in bins, with the sum of each bin's gaps.

    columns [pairs, bins + 1]: what each pair adds to these sums, and how many prompts it has.
    """

    bins: tuple[Bin, ...]
    gaps: Floats
    prompts: int
    columns: Floats

    @property
    def asked(self) -> Ints:
        """The pairs that have a prompt."""
        return np.flatnonzero(self.columns[:, -1])

    def calibration(self, drawn: Floats) -> Calibration:
        """How far confidence is from accuracy; `drawn`: sums of the columns, [draws, bins + 1]."""
        gaps, prompts, n = drawn[:, :-1], drawn[:, -1], self.prompts
        ece = float(np.abs(self.gaps).sum()) / n
        draws = np.abs(gaps).sum(axis=1) / prompts
        return Calibration(
            overconf=around(float(self.gaps.sum()) / n, gaps.sum(axis=1) / prompts, n=n),
            ece=around(ece, np.clip(draws - draws.mean() + ece, 0.0, 1.0), n=n),
            bins=self.bins,
        )


class Strata(NamedTuple):
    """The relation and the subject of each pair, by number, and the ids of the relations, which
    name their random streams. Pairs are alone without subjects."""

    relations: Ints
    subjects: Ints | None
    ids: Sequence[str]


def calibration(
    confidence: Floats,
    right: Bools,
    pair: Ints,
    bins: int = 10,
    seed: int = 0,
    strata: Strata | None = None,
) -> Calibration | None:
    """Compare confidence with accuracy over bins of equal size; None where nothing was measured.

    One entry per prompt; nan confidence is left out. Prompts are sorted by confidence and cut into
    `bins` whose sizes differ by at most one. Among equal confidences each prompt counts with their
    common accuracy, so that the order of the prompts cannot matter. Weighted by size, the gaps add
    up to mean confidence − accuracy.

    Intervals are over pairs, all prompts of a pair together; with `strata` over subjects within
    relations. The bins stay as they were cut, and the interval of `ece`, which resampling can only
    raise, is moved so that its mean is the value.
    """
    of = cut(confidence, right, pair, bins)
    return None if of is None else of.calibration(_resampled_gaps(of, strata, seed))


def cut(confidence: Floats, right: Bools, pair: Ints, bins: int = 10) -> Cut | None:
    """What `calibration` resamples."""
    count = len(confidence) - int(np.isnan(confidence).sum())
    if not count:
        return None
    order = np.argsort(confidence, kind="stable")[:count]  # nan is last
    given, judged, of_pair = confidence[order], right[order], pair[order]
    del order
    sizes = [len(part) for part in np.array_split(given, min(bins, count))]
    parts = [slice(end - size, end) for size, end in zip(sizes, np.cumsum(sizes), strict=True)]
    evened = _evened(given, judged)
    made = tuple(_bin(given[part], evened[part]) for part in parts)
    gaps = np.array([(given[part] - evened[part]).sum() for part in parts])
    del evened
    # as judged, not evened: what is shared among pairs would not vary between them
    sums = [np.bincount(of_pair[p], given[p] - judged[p], int(pair.max()) + 1) for p in parts]
    columns = np.column_stack([*sums, np.bincount(of_pair, minlength=len(sums[0]))])
    return Cut(bins=made, gaps=gaps, prompts=count, columns=columns)


def expected_calibration_error(confidence: Floats, right: Bools, bins: int = 10) -> float:
    """The mean absolute gap over bins of equal size, as `calibration` has it; nothing is nan.

    >>> expected_calibration_error(np.array([0.2, 0.2]), np.array([False, True]), bins=1)
    0.3
    """
    order = np.argsort(confidence, kind="stable")
    given = confidence[order]
    gaps = given - _evened(given, right[order])
    parts = np.array_split(gaps, min(bins, len(gaps)))
    return float(sum(abs(part.sum()) for part in parts)) / len(gaps)


def overconf_by(
    groups: Ints, confidence: Floats, right: Bools, clusters: Ints, floor: int = 1
) -> list[tuple[int, Estimate, int]]:
    """Mean confidence − accuracy of each group of prompts: a template, a number of tokens.

    Gives the group, the estimate and the number of prompts, in order of the groups; those with
    fewer than `floor` prompts are left out, and so is nan confidence. There may be thousands of
    groups, so the interval is Student's with the spread between clusters (pairs, or subjects), not
    a bootstrap; of a single cluster it is all of -1..1.
    """
    kept = ~np.isnan(confidence)
    gap = (confidence - right)[kept]
    found = zip(*clustered_means(gap, clusters[kept], groups[kept]), strict=True)
    return [
        (int(number), _within(float(mean), float(reach), int(n)), int(n))
        for number, mean, reach, n in found
        if n >= floor
    ]


def overconf_by_each(grid: Grid, sure: Floats, floor: int = 1) -> list[tuple[int, Estimate, int]]:
    """The same of each template; `sure` is the confidence of each row of the grid."""
    found = [
        (int(part.templates[template]), estimate, n)
        for part in grid.parts()
        for template, estimate, n in overconf_by(
            part.grid.template, sure[part.rows], part.grid.right, part.grid.clusters, floor
        )
    ]
    return sorted(found, key=lambda row: row[0])


def overconf_by_template(grid: Grid, sure: Floats, floor: int, seed: int) -> dict[str, Estimate]:
    """Overconf over the templates that have at least `floor` answers with a confidence.

    `sure`: the confidence of each row of the grid. n is the number of these templates; that of max
    and min is their number of answers. The interval of the mean is over templates, that of stdev
    takes theirs for draws from one normal distribution.
    """
    rows = [estimate for _, estimate, _ in overconf_by_each(grid, sure, floor)]
    values = np.array([e.value for e in rows], dtype=np.float64)
    missing = Estimate.not_measured()
    found = {
        "mean": missing,
        "stdev": spread_of(values.tolist()),
        "max": max(rows, key=lambda e: e.value or 0.0, default=missing),
        "min": min(rows, key=lambda e: e.value or 0.0, default=missing),
    }
    if rows:
        sums = resampled_sums(values[:, None], stream(seed, "by template"))
        found["mean"] = around(float(values.mean()), sums[:, 0] / len(rows), n=len(rows))
    return {f"overconf_by_template.{name}": estimate for name, estimate in found.items()}


def _evened(confidence: Floats, right: Bools) -> Floats:
    """Each prompt's accuracy, shared among those of equal confidence; both sorted by confidence."""
    first = np.concatenate([[0], np.flatnonzero(confidence[1:] != confidence[:-1]) + 1])
    sizes = np.diff(first, append=len(confidence))
    return np.repeat(np.add.reduceat(right, first, dtype=np.int64) / sizes, sizes)


def in_size(drawn: Floats, prompts: float) -> Floats:
    """Drawn sums of a relation's columns, of which the last counts prompts, scaled to its number of
    prompts: relations are strata, and keep their sizes."""
    return np.asarray(drawn * (prompts / drawn[:, -1:]))


def _resampled_gaps(of: Cut, strata: Strata | None, seed: int) -> Floats:
    """Sums of the columns when pairs that were asked are resampled; [draws, bins + 1]."""
    asked = of.asked
    if strata is None:
        return resampled_sums(of.columns[asked], stream(seed, "calibration"))
    owners = strata.relations[asked]

    def draw(relation: int) -> Floats:
        own = asked[owners == relation]
        subjects = None if strata.subjects is None else [strata.subjects[own]]
        (drawn,) = resampled_in(strata.ids[relation], [of.columns[own]], seed, subjects)
        return in_size(drawn, of.columns[own, -1].sum())

    return np.asarray(np.sum(side_by_side(draw, np.unique(owners).tolist()), axis=0))


def _bin(confidence: Floats, judged: Floats) -> Bin:
    return Bin(
        low=float(confidence[0]),
        high=float(confidence[-1]),
        confidence=float(confidence.mean()),
        accuracy=float(judged.mean()),
        n=len(confidence),
    )


def _within(value: float, reach: float, n: int) -> Estimate:
    return Estimate(value=value, low=max(value - reach, -1.0), high=min(value + reach, 1.0), n=n)


def bias_level(shares: Floats) -> float:
    """1 − H/H_max of a distribution over candidates: 0 favours none, 1 tells one only.

    Shares are renormalised; nan with fewer than two candidates, where no answer can be favoured.

    >>> bias_level(np.array([0.5, 0.5])), bias_level(np.array([1.0, 0.0]))
    (0.0, 1.0)
    """
    return float(_levels(_normalised(shares[None]))[0])


def most_inflated(shares: Floats) -> Ints:
    """The candidate that gains most under each template, against the average; [templates].

    shares [templates, candidates], each row a template's distribution with content-free subjects.
    """
    even = _normalised(shares)
    return np.asarray((even - even.mean(axis=0)).argmax(axis=1), dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawnBias:
    """What one relation adds: its number of templates, the sum of their bias levels, and the bias
    level of their average; [1 + draws] each, the first of all templates as they are."""

    templates: int
    single: Floats
    multi: Floats


def drawn_bias(shares: Floats, name: str, seed: int) -> DrawnBias | None:
    """The bias of a relation under resampling of its templates; None without two candidates."""
    if not shares.shape[0] or shares.shape[1] < 2:
        return None
    even, n = _normalised(shares), len(shares)
    times = _times(n, stream(seed, name))
    return DrawnBias(templates=n, single=times @ _levels(even) * n, multi=_levels(times @ even))


def bias_of(relations: Iterable[DrawnBias | None]) -> tuple[Estimate, Estimate]:
    """Single- and multi-prompt bias over some relations.

    single averages over the templates of all relations together; multi, which is one number per
    relation, over relations. n counts templates. The interval is over templates within their
    relation: how the numbers would move with other wordings. That of multi, which resampling can
    only raise, is moved so that its mean is the value. Where every relation has one template there
    is nothing to tell it from, and no interval. Relations with fewer than two candidates (None) are
    left out.
    """
    kept = [relation for relation in relations if relation is not None]
    if not kept:
        return Estimate.not_measured(), Estimate.not_measured()
    n = sum(relation.templates for relation in kept)
    single: Floats = np.sum([relation.single for relation in kept], axis=0) / n
    multi: Floats = np.mean([relation.multi for relation in kept], axis=0)
    moved = np.clip(multi[1:] - multi[1:].mean() + multi[0], 0.0, 1.0)
    both = around(float(single[0]), single[1:], n=n), around(float(multi[0]), moved, n=n)
    if n == len(kept):
        return replace(both[0], low=None, high=None), replace(both[1], low=None, high=None)
    return both


def _times(n: int, rng: np.random.Generator) -> Floats:
    """Shares of n templates: each once, then as n are drawn with replacement; [1 + draws, n]."""
    drawn = rng.multinomial(n, np.full(n, 1 / n), size=DRAWS)
    return np.vstack([np.ones(n), drawn]) / n


def _normalised(shares: Floats) -> Floats:
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _levels(even: Floats) -> Floats:
    """Bias level of each row, which adds up to 1."""
    if even.shape[1] < 2:
        return np.full(len(even), np.nan)
    logs = np.log(even, out=np.zeros_like(even), where=even > 0)
    entropy = -np.einsum("ij,ij->i", even, logs)
    return np.asarray(np.clip(1 - entropy / np.log(even.shape[1]), 0.0, 1.0))
