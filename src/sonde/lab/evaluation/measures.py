"""Every number of one estimator on one model, and its mean over the worlds.

Over several worlds the interval comes from how they differ; of a single world it comes from its
facts, and is made only when it is asked for. Knows facts and verdicts, nothing of reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import get_args

import numpy as np

from sonde.core.reports import Estimate
from sonde.lab.evaluation.verdicts import Asked, Ints
from sonde.lab.worlds.truth import Bools, Floats, Truth, Verdicts
from sonde.metrics.calibration import calibration, expected_calibration_error
from sonde.metrics.estimates import Resampled, samples_of
from sonde.stats.intervals import Z
from sonde.stats.ranking import auroc, auroc_interval
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
    made = Resampled(samples_of(own, groups, other), seed=0).mean_over_facts()
    return replace(made, value=float(differences.mean()))  # summed by relation, 1 can come out less


def _many(values: Floats, groups: Ints) -> Estimate:
    _, index = np.unique(groups, return_inverse=True)
    sizes = np.bincount(index)
    off = values - (np.bincount(index, values) / sizes)[index]
    share = sizes / np.maximum(sizes - 1, 1)
    value = float(values.mean())
    reach = Z * sqrt(float((np.bincount(index, off**2) * share).sum())) / len(values)
    return Estimate(value=value, low=value - reach, high=value + reach, n=len(values))


CAUSES: Mapping[str, str] = {
    "cue": "guessable from the name",
    "majority": "guessable as the commonest object",
    "not_guessable": "not guessable",
    "unshown": "in relations never shown",
}
"""Every untaught fact is of one of these."""

SUBSETS: Mapping[str, str] = {
    "guessable": "guessable",
    "not_guessable": "not guessable",
    "untaught": "all untaught",
    "unshown": "never shown",
    "taught": "taught",
}
"""The facts on which a method that learns is set against another."""

BASE = "lama"
TRUTHS = get_args(Truth)


def causes(asked: Asked) -> dict[str, Bools]:
    """The untaught facts, parted by what could make an estimator hold them to be known."""
    shown = asked.shown & ~asked.taught
    return {
        "cue": shown & (asked.guess == "cue"),
        "majority": shown & (asked.guess == "majority"),
        "not_guessable": shown & (asked.guess == ""),
        "unshown": ~asked.shown & ~asked.taught,
    }


def measures(asked: Asked) -> Iterator[tuple[str, Measured]]:
    """Every number of one estimator on one model that needs no other estimator."""
    for name, values, where, minus in _means(asked):
        yield name, mean(values, asked.relation, where, minus)
    counts, chance = asked.verdicts.counts, asked.verdicts.chance
    yield "unshown.less_chance", mean_less(counts, _beside_chance(asked), chance)
    for truth in TRUTHS:
        yield f"auroc.{truth}", _auroc(asked.verdicts.score, asked.true(truth))
        yield f"ece.{truth}", _ece(asked.verdicts.score, asked.true(truth))
    yield from _cost(asked.verdicts)


Mean = tuple[str, Floats, Bools, Floats | None]
"""A mean over facts: its name, a value of each fact, which of them count, and what is less."""


def _means(asked: Asked) -> Iterator[Mean]:
    yield from _recall(asked)
    yield from _false_discoveries(asked)
    counts, score, beside = asked.verdicts.counts, asked.verdicts.score, _beside_chance(asked)
    yield "unshown.counts", counts, beside, None
    yield "unshown.chance", asked.verdicts.chance, beside, None
    every = np.ones(len(counts), dtype=np.bool_)
    yield "share.estimated", counts, every, None
    for truth in TRUTHS:
        known = asked.true(truth).astype(np.float64)
        yield f"share.{truth}", known, every, None
        yield f"share.less_{truth}", counts, every, known
        yield f"gap.{truth}", score, every, known
        yield f"brier.{truth}", (score - known) ** 2, every, None


def _recall(asked: Asked) -> Iterator[Mean]:
    """Shares of known facts that are decided to be known, and by how often the text states them, 0
    among these, in relations that it states facts of."""
    found, taught, stored = asked.decided, asked.taught, asked.stored
    yield "recall.taught", found, taught, None
    yield "recall.stored", found, stored, None
    yield "recall.not_stored", found, taught & ~stored, None
    for exposure in np.unique(asked.exposure[asked.shown]).tolist():
        where = asked.shown & (asked.exposure == exposure)
        yield f"recall.exposure.{exposure}", found, where, None


def _false_discoveries(asked: Asked) -> Iterator[Mean]:
    """Shares of untaught facts that are decided to be known, in all and by cause; `false.rate` is
    the share of facts decided to be known that are not, by each truth."""
    found, parts = asked.decided, causes(asked)
    yield "false.untaught", found, ~asked.taught, None
    for cause, where in parts.items():
        yield f"false.{cause}", found, where, None
    yield "false.guessable", found, parts["cue"] | parts["majority"], None
    for truth in TRUTHS:
        wrong = (~asked.true(truth)).astype(np.float64)
        yield f"false.rate.{truth}", wrong, asked.verdicts.decision, None


def _beside_chance(asked: Asked) -> Bools:
    """The facts of relations never shown whose chance is known."""
    return ~asked.shown & ~asked.taught & ~np.isnan(asked.verdicts.chance)


def _auroc(score: Floats, known: Bools) -> Measured:
    """Whether scores set known facts above the others."""
    value = auroc(score, known)
    if value is None:
        return MISSING

    def estimate() -> Estimate:
        low, high = auroc_interval(score, known)
        return Estimate(value=value, low=low, high=high, n=len(score))

    return Measured(value=value, estimate=estimate)


def _ece(score: Floats, known: Bools) -> Measured:
    """How far scores are from probabilities that a fact is known, over ten bins."""
    if not len(score):
        return MISSING
    value = expected_calibration_error(score, known)

    def estimate() -> Estimate:
        if len(score) > MANY:
            reach = Z * _spread(score, known)
            return Estimate(
                value=value, low=max(value - reach, 0.0), high=value + reach, n=len(score)
            )
        found = calibration(score, known, np.arange(len(score)))
        return Estimate.not_measured() if found is None else found.ece

    return Measured(value=value, estimate=estimate)


def _spread(score: Floats, known: Bools) -> float:
    """Standard error of the error over ten bins, whose gaps keep their signs; for many facts."""
    gaps = (score - known)[np.argsort(score, kind="stable")]
    squares = sum(part.var() * len(part) for part in np.array_split(gaps, 10))
    return float(np.sqrt(squares)) / len(gaps)


def _cost(verdicts: Verdicts) -> Iterator[tuple[str, Measured]]:
    """Prompts and seconds, in all and for each thousand facts."""
    n, prompts, seconds = len(verdicts.facts), verdicts.prompts, verdicts.seconds
    yield "cost.prompts", bare(float(prompts), n)
    yield "cost.seconds", bare(seconds, n)
    yield "cost.facts", bare(float(n), n)
    yield "cost.prompts_per_fact", bare(prompts / n if n else None, n)
    yield "cost.seconds_per_1000_facts", bare(1000 * seconds / n if n else None, n)


def differences(
    name: str, one: Asked | None, other: Asked | None
) -> Iterator[tuple[str, Measured]]:
    """`NAME.SUBSET`: the share found by one less that found by the other, on the facts of both.

    A method less LAMA is its gain. A control of a method that learns is the same on random weights,
    which hold no fact: what it gains was learnt from the facts that it was trained on.
    """
    for subset in SUBSETS:
        yield f"{name}.{subset}", _difference(one, other, subset)


def _difference(one: Asked | None, other: Asked | None, subset: str) -> Measured:
    if one is None or other is None:
        return MISSING
    facts = [fact for fact in one.verdicts.facts if fact in other.rows]
    if not facts:
        return MISSING
    at = np.array([one.rows[fact] for fact in facts], dtype=np.int64)
    where = _subset(one, subset)[at]
    return mean(one.found(facts), one.relation[at], where, minus=other.found(facts))


def _subset(asked: Asked, subset: str) -> Bools:
    guessable: Bools = np.asarray(asked.guess != "", dtype=np.bool_)
    parts: dict[str, Bools] = {
        "guessable": ~asked.taught & guessable,
        "not_guessable": ~asked.taught & ~guessable,
        "untaught": ~asked.taught,
        "unshown": ~asked.shown,
        "taught": asked.taught,
    }
    return parts[subset]
