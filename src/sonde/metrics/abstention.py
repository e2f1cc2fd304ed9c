"""How often written answers say that the model does not know, and how often the others are right.

Knows judged prompts, nothing of phrases. Each fact counts once, by the mean over its prompts.
"""

from __future__ import annotations

import numpy as np

from sonde.core.reports import Estimate, Metric
from sonde.metrics.estimates import FACTS, ByFact
from sonde.metrics.judged import Bools, Floats, Judged

ABSTAINED = Metric(
    "abstained",
    "abstained",
    "percent",
    "share of written answers that say the model does not know",
    better="",
)
RIGHT_WHEN_ANSWERED = Metric(
    "right_when_answered",
    "right when answered",
    "percent",
    "share of right answers among those that do not abstain",
)
ABSTENTION = (ABSTAINED, RIGHT_WHEN_ANSWERED)


def abstention(
    judged: Judged, seed: int, over: str, written: Bools | None = None
) -> dict[str, Estimate]:
    """Both numbers, `over` facts or relations and in each relation; of all rows, or some.

    Facts about subjects of one name in a relation are resampled together.
    """
    assert judged.abstained is not None, "nothing was written"
    grid, silent = judged.grid, judged.abstained
    among = np.ones(len(grid), dtype=np.bool_) if written is None else written
    subjects: dict[tuple[int, str], int] = {}
    keys = zip(grid.relations.tolist(), (names[0] for names in judged.names), strict=True)
    by_fact = ByFact.of(
        judged.relations,
        grid.relations.astype(np.int64),
        np.array([subjects.setdefault(key, len(subjects)) for key in keys], dtype=np.int64),
        seed,
    )
    shares = (_shares(judged, silent, among), _shares(judged, grid.right, among & ~silent))
    estimates: dict[str, Estimate] = {}
    for metric, values in zip(ABSTENTION, shares, strict=True):
        drawn = by_fact.resampled(values)
        mean = drawn.mean_over_facts() if over == FACTS else drawn.mean_over_relations()
        estimates |= {metric.at(over): mean}
        estimates |= {metric.at(f"relation.{id}"): drawn.relation(id) for id in by_fact.ids}
    return estimates


def _shares(judged: Judged, holds: Bools, among: Bools) -> Floats:
    """In what share of its rows something holds, for each pair; nan where it has none."""
    pair, size = judged.grid.pair[among], len(judged.grid.relations)
    counts = np.bincount(pair, minlength=size)
    sums = np.bincount(pair, weights=holds[among], minlength=size)
    return np.asarray(np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0))
