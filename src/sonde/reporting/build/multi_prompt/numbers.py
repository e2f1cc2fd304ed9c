"""Every number of a multi-prompt probe, over all judged prompts and in each relation.

Knows judged prompts as a grid, nothing of how they were put or answered. What cannot be measured of
a part is missing from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from sonde.core.reports import Estimate
from sonde.metrics.accuracy import Fluctuation, acc_at_1, template_summary
from sonde.metrics.accuracy import fluctuation as fluctuates
from sonde.metrics.calibration import Calibration, calibration
from sonde.metrics.coverage import coverage
from sonde.metrics.estimates import Resampled, samples_of
from sonde.metrics.grid import Bools, Floats, Grid
from sonde.reporting.build.multi_prompt.metrics import (
    ABOVE,
    ACC,
    BEST,
    CONSIST,
    COVERAGE,
    DRAWN,
    ECE,
    MAJORITY,
    MEAN,
    OVERCONF,
    WORST,
    Draw,
    fluctuation,
)

Consist = Callable[[Grid], Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some rows of the grid with the control of their pairs, all counted anew from 0."""

    grid: Grid
    majority: Bools | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The numbers of a part by the ids of their metrics; `sizes`: its pairs, templates, prompts."""

    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    fluctuations: Mapping[Draw, Fluctuation] = field(default_factory=dict)
    calibration: Calibration | None = None
    sizes: tuple[int, int, int] = (0, 0, 0)


def whole(grid: Grid, majority: Bools | None) -> Part:
    """The grid without pairs and templates that no prompt asks about."""
    pairs, pair = np.unique(grid.pair, return_inverse=True)
    templates, template = np.unique(grid.template, return_inverse=True)
    kept = Grid(
        pair=pair.astype(np.int64),
        template=template.astype(np.int64),
        name=grid.name,
        right=grid.right,
        answer=grid.answer,
        confidence=grid.confidence,
        relations=grid.relations[pairs],
        template_relations=grid.template_relations[templates],
    )
    return Part(grid=kept, majority=None if majority is None else majority[pairs])


def by_relation(grid: Grid, majority: Bools | None) -> dict[int, Part]:
    """The rows of each relation that has any."""
    owners = grid.relations[grid.pair]
    return {int(r): whole(grid.rows(owners == r), majority) for r in np.unique(owners)}


def measure(part: Part, *, draws: int, seed: int, consist: Consist) -> Numbers:
    """Every number of a part."""
    grid = part.grid
    if not len(grid):
        return Numbers()
    drawn = {draw: fluctuates(grid, draw, draws, seed) for draw in DRAWN}
    fluctuations = {draw: moved for draw, moved in drawn.items() if moved is not None}
    sure = ~np.isnan(grid.confidence)
    calibrated = calibration(grid.confidence[sure], grid.right[sure], grid.pair[sure], seed=seed)
    worst, best, mean = template_summary(grid, seed)
    covered = coverage(grid, seed)
    estimates = {
        ACC.id: acc_at_1(grid, seed),
        **_control(part, seed),
        WORST.id: worst,
        BEST.id: best,
        MEAN.id: mean,
        **_fluctuation(fluctuations, len(grid.relations)),
        CONSIST.id: consist(grid),
        **({OVERCONF.id: calibrated.overconf, ECE.id: calibrated.ece} if calibrated else {}),
        **{m.id: getattr(covered, m.id.removeprefix("coverage.")) for m in COVERAGE},
    }
    return Numbers(
        estimates=estimates,
        fluctuations=fluctuations,
        calibration=calibrated,
        sizes=(len(grid.relations), len(grid.template_relations), len(grid)),
    )


def _fluctuation(drawn: Mapping[Draw, Fluctuation], pairs: int) -> dict[str, Estimate]:
    estimates: dict[str, Estimate] = {}
    for draw, moved in drawn.items():
        exact = Estimate(value=moved.closed_form, low=None, high=None, n=pairs)
        values = (moved.range, moved.stdev, exact)
        estimates |= {m.id: e for m, e in zip(fluctuation(draw), values, strict=True)}
    return estimates


def _control(part: Part, seed: int) -> dict[str, Estimate]:
    """The accuracy of the commonest object, and how far the model is above it, pair by pair."""
    if part.majority is None:
        return {}
    grid, pairs = part.grid, len(part.grid.relations)
    asked = np.bincount(grid.pair, minlength=pairs)
    shares: Floats = np.bincount(grid.pair, weights=grid.right, minlength=pairs) / asked
    control = part.majority.astype(np.float64)
    owners = np.unique(grid.relations, return_inverse=True)[1]
    return {
        MAJORITY.id: Resampled(samples_of(control, owners), seed).mean_over_facts(),
        ABOVE.id: Resampled(samples_of(shares, owners, control), seed).mean_over_facts(),
    }
