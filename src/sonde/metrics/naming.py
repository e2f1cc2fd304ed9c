"""Whether added names help: those of subjects, and those of objects (table 10).

Knows judged prompts as columns, sorted by pair, template and name.
"""

from __future__ import annotations

import numpy as np

from sonde.core.reports import Estimate
from sonde.metrics.estimates import Resampled, Sample
from sonde.metrics.grid import Floats, Grid, Ints
from sonde.metrics.judged import Judged


def names_help(judged: Judged, seed: int = 0) -> dict[str, Estimate]:
    """Both numbers by name; not measured where a probe did not look at added names."""
    subject = object = Estimate.not_measured()
    if judged.gold is not None:
        subject = _subject_names(judged.grid, judged.gold, seed)
    if judged.helped is not None and judged.compared is not None:
        object = _object_names(judged.grid, judged.helped, judged.compared, seed)
    return {"names_help.subject": subject, "names_help.object": object}


def _subject_names(grid: Grid, gold: Floats, seed: int) -> Estimate:
    """Share of (prompt, added subject name) where the correct answer is likelier than before."""
    if not len(grid):
        return Estimate.not_measured()
    same = (np.diff(grid.pair) == 0) & (np.diff(grid.template) == 0)
    starts = np.flatnonzero(np.append(True, ~same))
    first: Ints = np.repeat(starts, np.diff(np.append(starts, len(grid))))
    added = (grid.name > 0) & (grid.name[first] == 0)
    helped = gold[added] > gold[first][added]
    return _share(helped.astype(np.float64), grid, np.flatnonzero(added), seed)


def _object_names(grid: Grid, helped: Ints, compared: Ints, seed: int) -> Estimate:
    """Share of (prompt, added object name) where the name is likelier than the usual one."""
    rows = np.repeat(np.arange(len(grid)), compared)
    before = np.cumsum(compared) - compared
    turn = np.arange(len(rows)) - before[rows]
    return _share((turn < helped[rows]).astype(np.float64), grid, rows, seed)


def _share(values: Floats, grid: Grid, rows: Ints, seed: int) -> Estimate:
    """The mean of some comparisons, each about the pair of a row of the grid."""
    pairs = grid.pair[rows]
    owners = grid.relations[pairs]
    samples = {
        str(r): Sample(values=values[owners == r], clusters=pairs[owners == r])
        for r in np.unique(owners)
    }
    return Resampled(samples, seed).mean_over_facts()
