"""How many known facts an estimator finds: by truth, and by how often the text states them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sonde.lab.evaluation.asked import Asked
from sonde.lab.evaluation.measured import Measured, mean


def recall(asked: Asked) -> Iterator[tuple[str, Measured]]:
    """Shares of facts that are decided to be known.

    `recall.taught` and `recall.stored`; `recall.not_stored` of those taught that are not stored;
    `recall.exposure.N` of those that the text states N times, 0 among them, in relations that it
    states facts of.
    """
    found, taught, stored = asked.verdicts.decision, asked.taught, asked.stored
    of = found.astype(np.float64)
    yield "recall.taught", mean(of, asked.relation, taught)
    yield "recall.stored", mean(of, asked.relation, stored)
    yield "recall.not_stored", mean(of, asked.relation, taught & ~stored)
    for exposure in np.unique(asked.exposure[asked.shown]).tolist():
        where = asked.shown & (asked.exposure == exposure)
        yield f"recall.exposure.{exposure}", mean(of, asked.relation, where)
