"""How much an estimator says is known, beside how much is; and what it takes to say so."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sonde.lab.evaluation.asked import Asked
from sonde.lab.evaluation.measured import Measured, bare, mean


def shares(asked: Asked) -> Iterator[tuple[str, Measured]]:
    """`share.estimated` and both true shares of the same facts, and the differences to them."""
    counts, relation = asked.verdicts.counts, asked.relation
    every = np.ones(len(counts), dtype=np.bool_)
    yield "share.estimated", mean(counts, relation, every)
    for truth, known in (("taught", asked.taught), ("stored", asked.stored)):
        yield f"share.{truth}", mean(known.astype(np.float64), relation, every)
        yield (
            f"share.less_{truth}",
            mean(counts, relation, every, minus=known.astype(np.float64)),
        )


def cost(asked: Asked) -> Iterator[tuple[str, Measured]]:
    """Prompts and seconds, in all and for each thousand facts."""
    verdicts, n = asked.verdicts, len(asked.verdicts.facts)
    yield "cost.prompts", bare(float(verdicts.prompts), n)
    yield "cost.seconds", bare(verdicts.seconds, n)
    yield "cost.facts", bare(float(n), n)
    yield "cost.prompts_per_fact", bare(verdicts.prompts / n if n else None, n)
    yield "cost.seconds_per_1000_facts", bare(1000 * verdicts.seconds / n if n else None, n)
