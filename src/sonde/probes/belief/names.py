"""What LAMA would say of the same facts. Knows judged prompts as columns."""

from __future__ import annotations

import numpy as np

from sonde.core.facts import LAMA
from sonde.core.reports import Estimate
from sonde.metrics.estimates import Resampled, Sample
from sonde.metrics.grid import Grid
from sonde.prompting.pairs import World
from sonde.prompting.uhn import stand_in


def single_prompt(name: str, known: World, grid: Grid, seed: int) -> dict[str, Estimate]:
    """The accuracy with LAMA's own template and each subject's usual name, on UHN facts.

    A relation whose first template is another one has none.
    """
    firsts = np.unique(known.template_relations, return_index=True)[1]
    own = [first for first in firsts.tolist() if known.templates[first].origin == LAMA]
    told = [stand_in((names[0] for names in p.objects), p.names[0]) for p in known.pairs]
    unguessable = ~np.array(told, dtype=np.bool_)
    chosen = grid.rows((grid.name == 0) & np.isin(grid.template, own) & unguessable[grid.pair])
    owners = grid.relations[chosen.pair]
    samples = {
        relation.id: Sample(
            values=chosen.right[owners == r].astype(np.float64), clusters=chosen.pair[owners == r]
        )
        for r, relation in enumerate(known.relations)
    }
    made = Resampled(samples, seed)
    by_relation = {f"{name}.relation.{r.id}": made.relation(r.id) for r in known.relations}
    return {name: made.mean_over_facts(), **by_relation}
