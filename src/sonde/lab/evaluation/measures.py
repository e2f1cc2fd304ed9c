"""Every number of one estimator on one model, and its mean over the worlds.

What is averaged is a table: a value of each fact, and which facts count. Over several worlds the
interval comes from how they differ; of a single world it comes from its facts, and is made only
when it is asked for. Knows frames of verdicts beside the truth (`Trial.beside`), no reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import exp, inf, log, sqrt
from typing import NamedTuple

import numpy as np
import polars
from polars import DataFrame, Expr, col

from sonde.core.reports import Better, Estimate, Metric, Unit
from sonde.evaluation.estimate import Metric as Ratio
from sonde.evaluation.estimate import estimate as estimate_ratios
from sonde.evaluation.metrics import ECE
from sonde.evaluation.stats import (
    Bools,
    Floats,
    Ints,
    Z,
    ranks,
    student_half_width,
    wilson_interval,
)
from sonde.evaluation.tables import Results

BASE = "lama"
TRUTHS = ("taught", "stored")
ROUNDING = 1e-12

FOUND, SCORE, COUNTS, CHANCE = (col(name) for name in ("decision", "score", "counts", "chance"))
TAUGHT, STORED, SHOWN, GUESS = (col(name) for name in ("taught", "stored", "shown", "guess"))
EVERY = polars.lit(True)
BESIDE_CHANCE = ~SHOWN & ~TAUGHT & CHANCE.is_not_null()


class Part(NamedTuple):
    """Some of the facts: what they are called, and which they are."""

    words: str
    where: Expr


CAUSES: Mapping[str, Part] = {
    "cue": Part("guessable from the name", SHOWN & ~TAUGHT & (GUESS == "cue")),
    "majority": Part("guessable as the commonest object", SHOWN & ~TAUGHT & (GUESS == "majority")),
    "not_guessable": Part("not guessable", SHOWN & ~TAUGHT & (GUESS == "")),
    "unshown": Part("in relations never shown", ~SHOWN & ~TAUGHT),
}
"""Every untaught fact is of one of these, by what could make an estimator hold it to be known."""

GUESSABLE = CAUSES["cue"].where | CAUSES["majority"].where

SUBSETS: Mapping[str, Part] = {
    "guessable": Part("guessable", ~TAUGHT & (GUESS != "")),
    "not_guessable": Part("not guessable", ~TAUGHT & (GUESS == "")),
    "untaught": Part("all untaught", ~TAUGHT),
    "unshown": Part("never shown", ~SHOWN),
    "taught": Part("taught", TAUGHT),
}
"""The facts on which a method that learns is set against another."""


class Mean(NamedTuple):
    """A mean over facts: a value of each, which of them count, and what is less."""

    value: Expr
    where: Expr = EVERY
    minus: Expr | None = None


MEANS: Mapping[str, Mean] = {
    "recall.taught": Mean(FOUND, TAUGHT),
    "recall.stored": Mean(FOUND, STORED),
    "recall.not_stored": Mean(FOUND, TAUGHT & ~STORED),
    "false.untaught": Mean(FOUND, ~TAUGHT),
    **{f"false.{cause}": Mean(FOUND, part.where) for cause, part in CAUSES.items()},
    "false.guessable": Mean(FOUND, GUESSABLE),
    **{f"false.rate.{truth}": Mean(~col(truth), FOUND) for truth in TRUTHS},
    "unshown.counts": Mean(COUNTS, BESIDE_CHANCE),
    "unshown.chance": Mean(CHANCE, BESIDE_CHANCE),
    "share.estimated": Mean(COUNTS),
    **{f"share.{truth}": Mean(col(truth)) for truth in TRUTHS},
    **{f"share.less_{truth}": Mean(COUNTS, EVERY, col(truth)) for truth in TRUTHS},
    **{f"gap.{truth}": Mean(SCORE, EVERY, col(truth)) for truth in TRUTHS},
    **{f"brier.{truth}": Mean((SCORE - col(truth).cast(float)) ** 2) for truth in TRUTHS},
}


ROWS: tuple[tuple[str, str, Unit, Better, str], ...] = (
    ("auroc.taught", "AUROC taught", "number", "higher", "how often a taught fact scores above an "
     "untaught one: 1 is perfect, 0.5 useless"),
    ("auroc.stored", "AUROC stored", "number", "higher", "the same for facts that the model gives "
     "back in a text it was taught them in"),
    ("share.estimated", "says known", "percent", "", "its estimate of the share known"),
    ("share.taught", "taught", "percent", "", "share of the facts asked that the text states"),
    ("share.stored", "stored", "percent", "", "share of the facts asked that the model gives back"),
    ("share.less_taught", "less taught", "percent", "nearer 0", "its estimate less the share "
     "taught, of the same facts; above 0 it flatters"),
    ("share.less_stored", "less stored", "percent", "nearer 0", "its estimate less the share "
     "stored"),
    ("recall.taught", "taught found", "percent", "higher", "share of taught facts it holds to be "
     "known"),
    ("recall.stored", "stored found", "percent", "higher", "share of stored facts it holds to be "
     "known"),
    ("recall.not_stored", "taught, not stored", "percent", "", "share of taught facts that are not "
     "stored that it holds to be known"),
    ("recall.exposure.{n}", "{n}×", "percent", "", "share of facts that the text states {n} times "
     "that it holds to be known"),
    ("false.untaught", "untaught found", "percent", "lower", "share of untaught facts that it "
     "holds to be known"),
    ("false.cue", "by name", "percent", "lower", "of untaught facts guessable from the name"),
    ("false.majority", "commonest", "percent", "lower", "of untaught facts guessable as the "
     "commonest object"),
    ("false.not_guessable", "not guessable", "percent", "lower", "of untaught facts not guessable"),
    ("false.unshown", "unshown", "percent", "lower", "of untaught facts in relations never shown"),
    ("false.rate.taught", "false of found", "percent", "lower", "share of the facts it holds to be "
     "known that are untaught"),
    ("false.rate.stored", "not stored of found", "percent", "lower", "share of the facts it holds "
     "to be known that are not stored"),
    ("unshown.counts", "counts", "percent", "", "its estimate of the share known, in relations "
     "never shown"),
    ("unshown.chance", "chance", "percent", "", "the same with the objects of other facts"),
    ("unshown.less_chance", "less chance", "percent", "nearer 0", "the difference, paired"),
    ("gap.{truth}", "gap, {truth}", "percent", "nearer 0", "mean score less the share {truth}"),
    ("ece.{truth}", "ECE, {truth}", "percent", "lower", "mean absolute gap over ten bins of equal "
     "size; {truth}"),
    ("brier.{truth}", "Brier, {truth}", "number", "lower", "mean squared distance of the score "
     "from 0 or 1; {truth}"),
    ("gain.{subset}", "gain, {subset}", "percent", "", "of what learns, share found less that of "
     "lama, paired"),
    ("matched.{subset}", "less control, {subset}", "percent", "", "of a control, what its method "
     "finds less what it finds itself, paired"),
    ("cost.seconds", "seconds", "number", "lower", "that it took"),
    ("cost.prompts_per_fact", "prompts a fact", "number", "lower", "that were run for it"),
    ("cost.seconds_per_1000_facts", "seconds a 1,000 facts", "number", "lower", "that it took"),
    ("cost.facts", "facts", "count", "", "that it was asked, a model"),
)  # fmt: skip
METRICS = tuple(
    Metric(id, label, unit, sentence, better=better) for id, label, unit, better, sentence in ROWS
)
"""Numbers of an estimator; their names end with the kind of model, the worlds, the estimator."""

M = {metric.id: metric for metric in METRICS}


def metrics(exposures: Iterable[int]) -> Iterator[Metric]:
    """The metrics of a report, with what stands in for the words in braces."""
    slots: dict[str, Iterable[object]] = {"n": exposures, "truth": TRUTHS, "subset": SUBSETS}
    for metric in METRICS:
        slot = next((slot for slot in slots if f"{{{slot}}}" in metric.id), None)
        yield from [metric.of(**{slot: value}) for value in slots[slot]] if slot else [metric]


def measures(asked: DataFrame) -> Iterator[tuple[str, Measured]]:
    """Every number of one estimator on one model that needs no other estimator.

    `recall.exposure` is by how often the text states a fact, 0 among these, in relations that it
    states facts of; `false.rate` is the share of facts decided to be known that are not.
    """
    for name, wanted in MEANS.items():
        yield name, _mean_of(asked, wanted)
    for exposure in asked.filter(SHOWN)["exposure"].unique().sort():
        at = SHOWN & (col("exposure") == exposure)
        yield f"recall.exposure.{exposure}", _mean_of(asked, Mean(FOUND, at))
    beside = asked.filter(BESIDE_CHANCE)
    yield "unshown.less_chance", mean_less(_numbers(beside, COUNTS), _numbers(beside, CHANCE))
    score = _numbers(asked, SCORE)
    for truth in TRUTHS:
        known = asked[truth].to_numpy()
        yield f"auroc.{truth}", _auroc(score, known)
        yield f"ece.{truth}", _ece(score, known)


def differences(name: str, one: DataFrame, other: DataFrame) -> Iterator[tuple[str, Measured]]:
    """`NAME.SUBSET`: the share found by one less that found by the other, on the facts of both.

    A method less LAMA is its gain. A control of a method that learns is the same on random weights,
    which hold no fact: what it gains was learnt from the facts that it was trained on.
    """
    beside = other.select("fact", other=FOUND)
    both = one.join(beside, on="fact", how="inner", maintain_order="left")
    for subset, part in SUBSETS.items():
        yield f"{name}.{subset}", _mean_of(both, Mean(FOUND, part.where, col("other")))


SHARE, DIFFERENCE, AMOUNT = (0.0, 1.0), (-1.0, 1.0), (0.0, inf)


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A value of one model that lies within `reach`; `estimate` gives it with its interval."""

    value: float | None
    estimate: Callable[[], Estimate]
    reach: tuple[float, float] = SHARE


MISSING = Measured(None, Estimate.not_measured)


def mean(values: Floats, relations: Ints, minus: Floats | None = None) -> Measured:
    """Mean over facts, less that of `minus`; nothing where there are none."""
    if not len(values):
        return MISSING
    value = float((values if minus is None else values - minus).mean())
    reach = SHARE if minus is None else DIFFERENCE
    return Measured(value, lambda: _within(values, minus, relations), reach)


def mean_less(values: Floats, known: Floats) -> Measured:
    """Mean over facts, less that of numbers that are no matter of luck.

    Facts are taken to be independent: Wilson's interval where every value is 0 or 1.
    """
    whole = mean(values, np.zeros(len(values), dtype=np.int64))
    if whole.value is None:
        return MISSING
    less = float(known.mean())

    def estimate() -> Estimate:
        counted = whole.estimate()
        low, high = counted.ends
        value = (counted.value or 0.0) - less
        return Estimate(value=value, low=low - less, high=high - less, n=counted.n)

    return Measured(whole.value - less, estimate, DIFFERENCE)


def over_worlds(worlds: Sequence[Sequence[Measured]]) -> Estimate:
    """The mean over worlds, each with the values of its models; n is the number of worlds.

    Student's interval; where all worlds have the same value, the one that their facts leave. A
    single world keeps the interval and the n of its facts.
    """
    kept = [[m for m in models if m.value is not None] for models in worlds]
    kept = [models for models in kept if models]
    if not kept:
        return Estimate.not_measured()
    if len(kept) == 1:
        return _one_world(kept[0])
    values = [sum(m.value or 0.0 for m in models) / len(models) for models in kept]
    value, low, high = repeats_mean(values)
    if max(values) - min(values) <= ROUNDING:
        low, high = unvaried_mean(value, [_one_world(models).ends for models in kept])
    least, most = kept[0][0].reach
    low, high = min(value, max(low, least)), max(value, min(high, most))
    return Estimate(value=value, low=low, high=high, n=len(kept))


def includes_none(difference: Estimate) -> bool:
    """Whether an interval holds 0, give or take rounding; where there is none, it may."""
    if difference.low is None or difference.high is None:
        return True
    return difference.low - ROUNDING <= 0 <= difference.high + ROUNDING


def _one_world(models: Sequence[Measured]) -> Estimate:
    """Mean over models of the same facts, which do not make an interval narrower."""
    estimates = [m.estimate() for m in models]
    if len(estimates) == 1:
        return estimates[0]
    value = float(np.mean([e.value for e in estimates]))
    if any(e.low is None for e in estimates):
        return Estimate(value=value, low=None, high=None, n=estimates[0].n)
    low, high = np.mean([e.ends for e in estimates], axis=0).tolist()
    return Estimate(value=value, low=low, high=high, n=estimates[0].n)


def _mean_of(asked: DataFrame, wanted: Mean) -> Measured:
    kept = asked.filter(wanted.where)
    minus = None if wanted.minus is None else _numbers(kept, wanted.minus)
    return mean(_numbers(kept, wanted.value), kept["relation"].to_numpy(), minus)


def _numbers(frame: DataFrame, value: Expr) -> Floats:
    return frame.select(value.cast(float)).to_series().to_numpy()


def _engine(metric: Ratio, of: str, relation: Ints | int, **columns: Floats | Bools) -> Estimate:
    """What the engine makes of facts, each its own cluster, resampled within their relations."""
    size = len(next(iter(columns.values())))
    rows = DataFrame(
        {
            "relation": np.broadcast_to(np.asarray(relation), size).astype(str),
            "cluster": np.arange(size),
            **columns,
        }
    )
    lines = estimate_ratios(Results.of(rows), [metric], over=("facts",))
    line = lines.filter(col("of") == of).row(0, named=True)
    return Estimate(value=line["value"], low=line["low"], high=line["high"], n=line["n"])


VALUE = Ratio("value", num=col("value").mean())
LESS = replace(VALUE, baseline=col("minus").mean())


def _within(values: Floats, minus: Floats | None, relations: Ints) -> Estimate:
    """The mean, or the paired difference, with its interval."""
    if minus is None:
        return _engine(VALUE, "value", relations, value=values)
    return _engine(LESS, "difference", relations, value=values, minus=minus)


def auroc(score: Floats, positive: Bools) -> tuple[float, float, float] | None:
    """Area under the ROC curve with its 95% interval (DeLong's, on the logit); a tie is half.

    None where there are only positives or only negatives.

    >>> auroc(np.array([0.1, 0.4, 0.4, 0.9]), np.array([False, False, True, True]))[0]
    0.875
    """
    n, m = int(positive.sum()), int((~positive).sum())
    if not n or not m:
        return None
    together = ranks(score)
    above = (together[positive] - ranks(score[positive])) / m
    below = (together[~positive] - ranks(score[~positive])) / n
    value = float(above.mean())
    variance = sum(float(x.var(ddof=1)) / len(x) for x in (above, below) if len(x) > 1)
    if not variance or not 0 < value < 1:
        # nothing varies: the interval of as many trials as the rarer kind has members
        return value, *wilson_interval(value * min(n, m), min(n, m))
    center, reach = log(value / (1 - value)), Z * sqrt(variance) / (value * (1 - value))
    low, high = (1 / (1 + exp(min(-x, 700.0))) for x in (center - reach, center + reach))
    return value, low, high


def _auroc(score: Floats, known: Bools) -> Measured:
    """Whether known facts score above the others."""
    area = auroc(score, known)
    if area is None:
        return MISSING
    value, low, high = area
    return Measured(value, lambda: Estimate(value=value, low=low, high=high, n=len(score)))


def _ece(score: Floats, known: Bools) -> Measured:
    """How far scores are from probabilities that a fact is known, over ten bins."""
    if not len(score):
        return MISSING

    # scores that are equal share their accuracy, so their order cannot matter
    _, index = np.unique(score, return_inverse=True)
    accuracy = np.bincount(index, weights=known) / np.bincount(index)
    gaps = np.sort(score) - np.repeat(accuracy, np.bincount(index))
    value = sum(abs(part.sum()) for part in np.array_split(gaps, 10)) / len(score)
    interval = partial(_engine, ECE, "value", 0, confidence=score, correct=known)
    return Measured(float(value), interval)


def repeats_mean(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean of at least two repeats, such as worlds, with Student's interval.

    >>> tuple(round(x, 3) for x in repeats_mean([0.4, 0.5, 0.6]))
    (0.5, 0.252, 0.748)
    """
    mean, count = float(np.mean(values)), len(values)
    reach = float(student_half_width(count - 1)) * float(np.std(values, ddof=1)) / sqrt(count)
    return mean, mean - reach, mean + reach


def unvaried_mean(value: float, ends: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Interval of the mean of repeats that are all equal, from the interval of each.

    Equal repeats have no spread of their own, which would be overconfident about others. Their
    intervals are combined as those of independent measurements: distances to the ends by squares.

    >>> tuple(round(x, 3) for x in unvaried_mean(0.0, [(0.0, 0.1)] * 4))
    (0.0, 0.05)
    """
    down, up = (sqrt(sum((value - pair[side]) ** 2 for pair in ends)) for side in (0, 1))
    return value - down / len(ends), value + up / len(ends)
