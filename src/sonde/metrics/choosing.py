"""Filled positions read as a choice between options: which of them is likeliest there.

Only options that are one allowed token can be chosen. Knows log-probabilities and names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sonde.core.columns import Answers, FilledColumns
from sonde.core.rated import RatedColumns

NOTHING = ""
"""What is chosen where no option is an allowed token."""


def fillable(filled: FilledColumns, options: Sequence[Sequence[str]]) -> list[list[str]]:
    """Those options of each prompt that are one allowed token, as far as they were watched."""
    places = {name: place for place, name in enumerate(filled.watched)}
    may = filled.watched_ranks > 0
    return [
        [name for name in own if name in places and may[row, places[name]]]
        for row, own in enumerate(options)
    ]


def as_choice(answers: Answers, options: Sequence[Sequence[str]]) -> Answers:
    """Filled answers as scored ones, each between options that can be filled in."""
    logps = answers.filled.watched_logps
    places = {name: place for place, name in enumerate(answers.filled.watched)}
    values: list[float] = []
    for row, own in enumerate(options):
        values += [float(logps[row, places[name]]) for name in own] or [0.0]
    scores = np.array(values, dtype=np.float32)
    chosen = [tuple(own) or (NOTHING,) for own in options]
    columns = RatedColumns.scored(chosen, scores, np.ones(len(scores), dtype=np.int64))
    return replace(answers, kind="scored", columns=columns)
