"""What the first prompt alone does, as LAMA asks. Knows judged prompts as columns."""

from __future__ import annotations

import numpy as np

from sonde.core.reports import Estimate
from sonde.metrics.estimates import Resampled, Sample
from sonde.metrics.grid import Grid
from sonde.probes._belief_tally import World


def single_prompt(name: str, known: World, grid: Grid, seed: int) -> dict[str, Estimate]:
    """The accuracy with each relation's first template and each subject's usual name."""
    firsts = np.unique(known.template_relations, return_index=True)[1]
    chosen = grid.rows((grid.name == 0) & np.isin(grid.template, firsts))
    own = grid.relations[chosen.pair]
    samples = {
        relation.id: Sample(
            values=chosen.right[own == r].astype(np.float64), clusters=chosen.pair[own == r]
        )
        for r, relation in enumerate(known.relations)
    }
    made = Resampled(samples, seed)
    by_relation = {f"{name}.relation.{r.id}": made.relation(r.id) for r in known.relations}
    return {name: made.mean_over_facts(), **by_relation}
