"""Which answers templates favour before they know what is asked. Knows distributions alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from sonde.core.reports import Estimate
from sonde.metrics.grid import Floats, Ints, around, stream
from sonde.stats.resampling import DRAWS


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
