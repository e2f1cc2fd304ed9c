"""Every number of a multi-prompt probe, over all judged prompts and in each relation.

Knows judged prompts as a grid, nothing of how they were put or answered. Pairs are resampled within
their relation, the same draws for every number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from sonde.core.facts import Template
from sonde.core.reports import Estimate
from sonde.core.threads import side_by_side
from sonde.metrics.accuracy import (
    Fluctuation,
    manual_rank,
    manual_rank_by_chance,
    relation_spread,
    right_shares,
    worst_best_mean,
)
from sonde.metrics.accuracy import fluctuation as fluctuates
from sonde.metrics.calibration import Bin, calibration
from sonde.metrics.consistency import (
    Agreeing,
    agreement,
    names_only,
    paraphrase_groups,
    templates_only,
    within_groups,
)
from sonde.metrics.coverage import covered
from sonde.metrics.estimates import Sample, resampled_together, samples_of
from sonde.metrics.judged import Block, Bools, Floats, Grid
from sonde.reporting.build.multi_prompt.metrics import (
    ABOVE,
    ACC,
    BEST,
    CHANCE_RANK,
    CONSIST,
    COVERAGE,
    DRAWN,
    DRIVER,
    ECE,
    INNER_CONSIST,
    INTER_CONSIST,
    MAJORITY,
    MANUAL_RANK,
    MEAN,
    OVERCONF,
    WORST,
    Draw,
    fluctuation,
)

Consist = Callable[[Grid], Estimate]
Named = dict[str, Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The numbers by the ids of their metrics: of everything, and of each relation that was asked.

    `sizes` of a relation: its pairs, templates and prompts.
    """

    overall: Named
    relations: Mapping[int, Named]
    fluctuations: Mapping[Draw, Fluctuation]
    bins: Sequence[Bin]
    sizes: Mapping[int, tuple[int, int, int]]


def measure(
    grid: Grid,
    majority: Bools | None,
    *,
    draws: int,
    seed: int,
    consist: Consist | None,
    further: Mapping[str, Floats],
) -> Numbers:
    """Every number of a grid; `consist` instead of the agreement of equal answers.

    `further` numbers by their ids: a value for each pair, nan where it has none.
    """
    made = grid.blocks
    columns = {**dict(_columns(grid)), **further}
    overall, relations = _means(grid, made, columns, majority, seed)
    fluctuations: dict[Draw, Fluctuation] = {}
    for draw in DRAWN:
        spreads = side_by_side(partial(relation_spread, draw=draw, seed=seed), made)
        for block, spread in zip(made, spreads, strict=True):
            relations[block.relation] |= _fluctuation(fluctuates([spread], draw, draws, seed), draw)
        if moved := fluctuates(spreads, draw, draws, seed):
            overall |= _fluctuation(moved, draw)
            fluctuations[draw] = moved
    bins = _calibrate(grid, overall, seed)
    rows = {part.relation: part.rows for part in grid.parts() if part.relation in relations}
    side_by_side(lambda id: _calibrate(grid.rows(rows[id]), relations[id], seed), rows)
    if consist is not None:
        overall[CONSIST.id] = consist(grid)
        for id, own in rows.items():
            relations[id][CONSIST.id] = consist(grid.rows(own))
    return Numbers(
        overall=overall,
        relations=relations,
        fluctuations=fluctuations,
        bins=bins,
        sizes={b.relation: (*b.asked.shape, int(b.asked.sum())) for b in made},
    )


def _means(
    grid: Grid,
    made: Sequence[Block],
    columns: Mapping[str, Floats],
    majority: Bools | None,
    seed: int,
) -> tuple[Named, dict[int, Named]]:
    """What is a mean over pairs, of all and of each relation."""
    samples = {id: _samples(grid, values) for id, values in columns.items()}
    if majority is not None:
        control = np.where(np.isnan(columns[ACC.id]), np.nan, majority)
        samples[MAJORITY.id] = _samples(grid, control)
        samples[ABOVE.id] = _samples(grid, columns[ACC.id], control)
    resampled = resampled_together(samples, seed)
    overall = {id: of.mean_over_facts() for id, of in resampled.items()}
    weights = {str(block.relation): float(len(block.templates)) for block in made}
    overall[MEAN.id] = resampled[MEAN.id].weighted_mean(weights)
    relations = {
        block.relation: {id: of.relation(str(block.relation)) for id, of in resampled.items()}
        for block in made
    }
    return overall, relations


def _columns(grid: Grid) -> Iterator[tuple[str, Floats]]:
    """Numbers that have a value for each pair; nan where it has none."""
    shares = right_shares(grid)
    templates = zip((WORST, BEST, MEAN), worst_best_mean(grid), strict=True)
    reached = zip(COVERAGE, (shares, *covered(grid)), strict=True)
    for metric, values in ((ACC, shares), *templates, (CONSIST, agreement(grid)), *reached):
        yield metric.id, values


def _samples(grid: Grid, values: Floats, minus: Floats | None = None) -> dict[str, Sample]:
    kept = ~np.isnan(values)
    control = None if minus is None else minus[kept]
    return samples_of(values[kept], grid.relations[kept], control)


def _fluctuation(moved: Fluctuation | None, draw: Draw) -> Named:
    if moved is None:
        return {}
    exact = Estimate(value=moved.closed_form, low=None, high=None, n=moved.range.n)
    values = (moved.range, moved.stdev, exact)
    return {m.id: e for m, e in zip(fluctuation(draw), values, strict=True)}


def _calibrate(grid: Grid, named: Named, seed: int) -> Sequence[Bin]:
    """Add the calibration to some numbers; gives its bins."""
    found = calibration(grid.confidence, grid.right, grid.pair, 10, seed, grid.relations)
    if found is None:
        return ()
    named |= {OVERCONF.id: found.overconf, ECE.id: found.ece}
    return found.bins


def moved(
    grid: Grid, templates: Sequence[Template], agreeing: Agreeing | None = None
) -> dict[str, Floats]:
    """What each pair adds to the agreement of answers inside and across paraphrase groups, and to
    agreement, worst and best case where only names or only templates differ."""
    groups = paraphrase_groups(templates, grid.template_relations)
    inner, inter = within_groups(grid, groups, agreeing)
    only = {
        "names_only": names_only(grid, agreeing),
        "templates_only": templates_only(grid, agreeing),
    }
    return {INNER_CONSIST.id: inner, INTER_CONSIST.id: inter} | {
        metric.of(only=what, what="").id: column
        for what, columns in only.items()
        for metric, column in zip(DRIVER, columns, strict=True)
    }


def manual_ranks(grid: Grid, templates: Sequence[Template], seed: int) -> Named:
    """How hand-written templates rank by accuracy, and how they would by chance."""
    manual = np.array([template.source == "manual" for template in templates], dtype=np.bool_)
    return {
        MANUAL_RANK.id: manual_rank(grid, manual, seed),
        CHANCE_RANK.id: manual_rank_by_chance(grid, manual),
    }
