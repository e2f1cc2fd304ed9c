"""How much of what one model knows another knows too, relation by relation, then averaged.

Unlike the sharing rate, which pools everything known, every relation counts the same. Knows aligned
runs, nothing of tables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sonde.analysis.comparison.sharing import around_share, known_cells, known_together
from sonde.analysis.runs import Aligned
from sonde.core.reports import Estimate
from sonde.metrics.cells import stream
from sonde.metrics.grid import Floats
from sonde.stats.draws import resampled_sums
from sonde.stats.intervals import DRAWS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subsumption:
    """η(a|b): of what run a knows in a relation, the share that run b knows too.

    rates[a][b]: the mean over the relations in which a knows anything, whose number is n.
    by_relation[relation, a, b]: η of each; nan where a knows nothing.
    """

    rates: tuple[tuple[Estimate, ...], ...]
    by_relation: Floats


def subsumption(aligned: Aligned, seed: int = 0) -> Subsumption:
    """η of all runs; intervals are over pairs, resampled within relations.

    What a run knows are (pair, template) that are right under some name of the subject; with one
    template per relation these are the pairs.
    """
    first, width = aligned.first, len(aligned.runs)
    cells, pair = known_cells(aligned)
    counts = known_together(cells, pair, len(first.pairs))  # [pairs, runs²]
    total, measured = np.zeros((2, DRAWS, width, width))
    found = np.full((len(first.relations), width, width), np.nan)
    spread = np.zeros((width, width))
    for r, relation in enumerate(first.relations):
        own = counts[first.grid.relations == r]
        found[r] = _ratio(own.sum(axis=0)[None], width)[0]
        draws = _ratio(resampled_sums(own, stream(seed, f"subsumption:{relation.id}")), width)
        total += np.nan_to_num(draws)
        measured += ~np.isnan(draws)
        # how many pairs stand behind each rate: those of which a knows something
        pairs = (own.reshape(-1, width, width).diagonal(axis1=1, axis2=2) > 0).sum(axis=0)
        spread += np.where(pairs > 0, 1 / np.maximum(pairs, 1), 0.0)[:, None]
    with np.errstate(invalid="ignore"):
        means = total / measured
    rates = tuple(
        tuple(_rate(found[:, a, b], means[:, a, b], spread[a, b], a == b) for b in range(width))
        for a in range(width)
    )
    return Subsumption(rates=rates, by_relation=found)


def _ratio(sums: Floats, width: int) -> Floats:
    """Known by both over known by the first, [draws, runs²] to [draws, runs, runs]."""
    both = sums.reshape(-1, width, width)
    own = both.diagonal(axis1=1, axis2=2)
    with np.errstate(invalid="ignore"):
        return np.asarray(both / np.where(own > 0, own, np.nan)[:, :, None])


def _rate(found: Floats, draws: Floats, spread: float, itself: bool) -> Estimate:
    kept = found[~np.isnan(found)]
    if not len(kept):
        return Estimate.not_measured()
    value = float(kept.mean())
    if itself:
        return Estimate(value=value, low=None, high=None, n=len(kept))
    trials = len(kept) ** 2 / spread
    return around_share(value, draws[~np.isnan(draws)], n=len(kept), trials=trials)
