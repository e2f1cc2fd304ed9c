"""Filled positions read as a choice between options: which of them is likeliest there.

Only options that are one allowed token can be chosen. Knows log-probabilities and names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sonde.core.columns import Answers
from sonde.core.rated import RatedColumns

NOTHING = ""
"""What is chosen where no option is an allowed token."""


def as_choice(answers: Answers, options: Sequence[Sequence[str]]) -> Answers:
    """Filled answers as scored ones, each between its own options, as far as they were watched."""
    filled = answers.filled
    places = {name: place for place, name in enumerate(filled.watched)}
    may, logps = filled.watched_ranks > 0, filled.watched_logps
    chosen: list[tuple[str, ...]] = []
    values: list[float] = []
    for row, own in enumerate(options):
        found = [name for name in own if name in places and may[row, places[name]]]
        chosen.append(tuple(found) or (NOTHING,))
        values += [float(logps[row, places[name]]) for name in found] or [0.0]
    scores = np.array(values, dtype=np.float32)
    columns = RatedColumns.scored(chosen, scores, np.ones(len(scores), dtype=np.int64))
    return replace(answers, kind="scored", columns=columns)
