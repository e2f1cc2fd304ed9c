"""How much a model can be brought to tell: by any prompt, by the best one, by each on average.

Shares of pairs; intervals are over pairs within their relation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sonde.core.reports import Estimate
from sonde.metrics.accuracy import acc_at_1
from sonde.metrics.cells import blocks, mean_over_pairs
from sonde.metrics.grid import Bools, Grid, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Four answers to "how many pairs does it know?", each as large as the one before.

    average: Acc@1. average_best_name: mean over templates of the share of pairs right under some
    name. maximum: right under some name of the relation's best template; its interval is that of
    the templates found. oracle: some prompt of the pair is right.
    """

    average: Estimate
    average_best_name: Estimate
    maximum: Estimate
    oracle: Estimate


def coverage(grid: Grid, seed: int = 0) -> Coverage:
    """The shares of pairs known. Under a template it was not asked with, a pair is not known."""
    found = {name: np.full(len(grid.relations), np.nan) for name in ("each", "best", "any")}
    for block in blocks(grid):
        best = int(block.known.sum(axis=0).argmax())
        asked = (block.asked > 0).sum(axis=1)
        found["each"][block.pairs] = block.known.sum(axis=1) / asked
        found["best"][block.pairs] = block.known[:, best]
        found["any"][block.pairs] = block.known.any(axis=1)
    each, best_template, oracle = (
        mean_over_pairs(values, grid.relations, seed) for values in found.values()
    )
    return Coverage(
        average=acc_at_1(grid, seed),
        average_best_name=each,
        maximum=best_template,
        oracle=oracle,
    )


def known(grid: Grid) -> tuple[Ints, Ints, Bools]:
    """Template and pair of each cell asked, and whether it is known: right under some name."""
    parts = []
    for block in blocks(grid):
        pair, template = np.nonzero(block.asked)
        parts.append((block.templates[template], block.pairs[pair], block.known[pair, template]))
    if not parts:
        return np.array([], np.int64), np.array([], np.int64), np.array([], np.bool_)
    templates, pairs, right = (np.concatenate(column) for column in zip(*parts, strict=True))
    return templates, pairs, right


def sharing(a: Bools, b: Bools) -> float | None:
    """Share of what run a knows that run b knows too; None where a knows nothing.

    One entry per (template, pair) that both runs were asked, as `known` tells them, in one order.
    Not symmetric: a is the denominator.

    >>> sharing(np.array([True, True, False]), np.array([True, False, True]))
    0.5
    """
    return float((a & b).sum() / a.sum()) if a.any() else None
