"""How much a model can be brought to tell: by any prompt, by the best one, by further names.

Shares of pairs; intervals are over pairs within their relation.
"""

from __future__ import annotations

import numpy as np

from sonde.core.reports import Estimate
from sonde.metrics.estimates import Resampled, Sample
from sonde.metrics.judged import Bools, Floats, Grid, Ints, Judged


def covered(grid: Grid) -> tuple[Floats, Floats, Floats]:
    """Of each pair: the share of templates that know it, whether the best does, and whether any."""
    each, best, some = np.full((3, len(grid.relations)), np.nan)
    for block in grid.blocks:
        each[block.pairs] = block.known.sum(axis=1) / (block.asked > 0).sum(axis=1)
        best[block.pairs] = block.known[:, block.known.sum(axis=0).argmax()]
        some[block.pairs] = block.known.any(axis=1)
    return each, best, some


def known(grid: Grid) -> tuple[Ints, Ints, Bools]:
    """Template and pair of each cell asked, and whether it is known: right under some name."""
    parts = []
    for block in grid.blocks:
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


def names_help(judged: Judged, seed: int = 0) -> dict[str, Estimate]:
    """Whether added names of subjects and of objects help (table 10), by name.

    Rows are sorted by pair, template and name. Not measured where a probe did not look at names.
    """
    subject, object = {}, {}
    for part in judged.grid.parts():
        own, name = part.grid, str(part.relation)
        if judged.gold is not None:
            subject[name] = _subject_names(own, judged.gold[part.rows])
        if judged.helped is not None and judged.compared is not None:
            object[name] = _object_names(own, judged.helped[part.rows], judged.compared[part.rows])
    return {
        "names_help.subject": Resampled(subject, seed).mean_over_facts(),
        "names_help.object": Resampled(object, seed).mean_over_facts(),
    }


def _subject_names(grid: Grid, gold: Floats) -> Sample:
    """For each (prompt, added subject name), whether the correct answer is likelier than before."""
    same = (np.diff(grid.pair) == 0) & (np.diff(grid.template) == 0)
    starts = np.flatnonzero(np.append(len(grid) > 0, ~same))
    first: Ints = np.repeat(starts, np.diff(np.append(starts, len(grid))))
    added = (grid.name > 0) & (grid.name[first] == 0)
    helped = gold[added] > gold[first][added]
    return Sample(values=helped.astype(np.float64), clusters=grid.pair[added])


def _object_names(grid: Grid, helped: Ints, compared: Ints) -> Sample:
    """For each (prompt, added object name), whether the name is likelier than the usual one."""
    rows = np.repeat(np.arange(len(grid)), compared)
    before = np.cumsum(compared) - compared
    turn = np.arange(len(rows)) - before[rows]
    return Sample(values=(turn < helped[rows]).astype(np.float64), clusters=grid.pair[rows])
