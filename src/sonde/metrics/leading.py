"""Which of several does best, and whether that could be chance.

Knows values and paired samples, nothing of what they are of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sonde.core.fingerprints import draw_key
from sonde.core.words import LEVEL
from sonde.metrics.estimates import Sample
from sonde.stats.intervals import Floats
from sonde.stats.paired import holm, mcnemar, sign_flip

Over = Literal["relations", "facts"]
Test = Callable[[str, str], float]
"""The p of the difference between two, by their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """The one of several with the best value, and the others that are not told from it."""

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
    found = [1.0 if values[name] == values[best] else test(best, name) for name in others]
    tied = (name for name, p in zip(others, holm(found), strict=True) if p >= LEVEL)
    return Lead(best=best, value=values[best], tied=tuple(tied))


def p_value(samples: Mapping[str, Sample], seed: int, name: str, over: Over = "relations") -> float:
    """Of the mean difference of samples with a control, by relation, over these or over facts.

    McNemar's exact test where it is what is asked: one relation, outcomes of 0 or 1, facts of
    different subjects. Else signs are flipped, of all facts of a subject together, by a stream of
    that name.
    """
    kept = [sample for sample in samples.values() if len(sample.values)]
    if len(kept) == 1 and kept[0].minus is not None and kept[0].independent_outcomes():
        return mcnemar(kept[0].values, kept[0].minus)
    if not kept:
        return 1.0
    sums = np.concatenate([_cluster_sums(sample, over) for sample in kept])
    return sign_flip(sums, np.random.default_rng(draw_key(seed, f"p:{name}")))


def _cluster_sums(sample: Sample, over: Over) -> Floats:
    """What each subject adds to the mean difference, up to a factor that all relations share."""
    _, index = np.unique(np.asarray(sample.clusters), return_inverse=True)
    facts = len(sample.values) if over == "relations" else 1
    return np.asarray(np.bincount(index, sample.differences()) / facts)
