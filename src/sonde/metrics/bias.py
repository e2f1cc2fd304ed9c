"""Which answers templates favour before they know what is asked. Knows distributions alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sonde.core.reports import Estimate
from sonde.metrics.grid import Floats, Ints, around, stream
from sonde.stats.intervals import DRAWS


def bias_level(shares: Floats) -> float:
    """1 − H/H_max of a distribution over candidates: 0 favours none, 1 tells one only.

    Shares are renormalised; nan with fewer than two candidates, where no answer can be favoured.

    >>> bias_level(np.array([0.5, 0.5])), bias_level(np.array([1.0, 0.0]))
    (0.0, 1.0)
    """
    return float(_levels(shares[None])[0])


def bias(shares: Floats) -> tuple[float, float, Ints]:
    """Single-prompt and multi-prompt bias of a relation, and what each template inflates most.

    shares [templates, candidates], each row a template's distribution with content-free subjects.
    single: mean bias level of the templates. multi: bias level of their averaged distribution,
    never above single. Last: the candidate that gains most against the average; [templates].
    """
    even = _normalised(shares)
    average = even.mean(axis=0)
    single, multi = float(_levels(even).mean()), bias_level(average)
    return single, multi, (even - average).argmax(axis=1).astype(np.int64)


def bias_over_relations(shares: Sequence[Floats], seed: int = 0) -> tuple[Estimate, Estimate]:
    """Single- and multi-prompt bias of several relations; [templates, candidates] of each.

    single averages over the templates of all relations together; multi, which is one number per
    relation, over relations. n counts templates. The interval is over templates within their
    relation: how the numbers would move with other wordings. That of multi, which resampling can
    only raise, is moved so that its mean is the value. Where every relation has one template there
    is nothing to tell it from, and no interval. Relations with fewer than two candidates are left
    out.
    """
    kept = [_normalised(s) for s in shares if s.shape[0] and s.shape[1] > 1]
    if not kept:
        return Estimate.not_measured(), Estimate.not_measured()
    n = sum(len(given) for given in kept)
    # the first row of each is all templates as they are, the others are the draws
    single, multi = np.zeros(DRAWS + 1), np.zeros(DRAWS + 1)
    for i, given in enumerate(kept):
        times = _times(len(given), stream(seed, f"bias:{i}"))
        single += times @ _levels(given) * len(given) / n
        multi += _levels(times @ given) / len(kept)
    if n == len(kept):
        alone = (Estimate(value=float(of[0]), low=None, high=None, n=n) for of in (single, multi))
        return next(alone), next(alone)
    moved = np.clip(multi[1:] - multi[1:].mean() + multi[0], 0.0, 1.0)
    return around(float(single[0]), single[1:], n=n), around(float(multi[0]), moved, n=n)


def _times(n: int, rng: np.random.Generator) -> Floats:
    """Shares of n templates: each once, then as n are drawn with replacement; [1 + draws, n]."""
    drawn = rng.multinomial(n, np.full(n, 1 / n), size=DRAWS)
    return np.vstack([np.ones(n), drawn]) / n


def _normalised(shares: Floats) -> Floats:
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _levels(shares: Floats) -> Floats:
    """Bias level of each row."""
    if shares.shape[1] < 2:
        return np.full(len(shares), np.nan)
    even = _normalised(shares)
    entropy = -(even * np.log(np.where(even > 0, even, 1.0))).sum(axis=1)
    return np.asarray(np.clip(1 - entropy / np.log(shares.shape[1]), 0.0, 1.0))
