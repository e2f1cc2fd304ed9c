"""Single facts with the probabilities that each run gives their object. Knows no tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sonde.analysis.reliability.outcomes import Common
from sonde.core.facts import Fact, Relation
from sonde.metrics.distance import Monitored
from sonde.metrics.grid import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One fact in one run. Probabilities are means over the object's tokens.

    framed and misled are means over frames and over wrong names, the lowest of each follows with
    the frame and the name that gave it; None where a fact has no wrong name.
    """

    relation: Relation
    fact: Fact
    run: int
    valid: bool
    anchor: float
    framed: float
    lowest_framed: float
    frame: str
    misled: float | None
    lowest_misled: float | None
    name: str


def spread(found: Common) -> Floats:
    """How far runs disagree on each fact: the largest less the smallest distance that MONITOR sums.

    nan for facts that do not count in all runs.
    """
    made = np.stack([parts.whole for parts in found.parts])
    counted = np.stack([parts.counted for parts in found.parts]).all(axis=0)
    return np.where(counted, np.ptp(made, axis=0), np.nan)


def most_disputed(found: Common, most: int) -> list[int]:
    """The facts that runs disagree on most, of those whose anchor is valid in all."""
    off = spread(found)
    there = np.flatnonzero(~np.isnan(off)).tolist()
    return sorted(there, key=lambda c: (-off[c], c))[:most]


def seen(found: Common, c: int, run: int) -> Seen:
    """What a run gave for a fact."""
    known = found.known[run]
    framed, misled = known.framed[c].mean(axis=1), known.misled[c].mean(axis=1)
    low, worst = int(framed.argmin()), int(misled.argmin()) if len(misled) else None
    number = int(known.relation[c])
    return Seen(
        relation=known.relations[number],
        fact=known.facts[c],
        run=run,
        valid=bool(known.valid[known.rule][c]),
        anchor=float(known.anchor[c].mean()),
        framed=float(framed.mean()),
        lowest_framed=float(framed[low]),
        frame=known.frames[number][low].text,
        misled=None if worst is None else float(misled.mean()),
        lowest_misled=None if worst is None else float(misled[worst]),
        name="" if worst is None else known.wrong[c][worst],
    )


def prompt_names(known: Monitored, relation: int) -> list[str]:
    """What the prompts of a relation are called: its frames, then the wrong names by number."""
    frames = [template.text for template in known.frames[relation]]
    own = np.flatnonzero(known.relation == relation).tolist()
    wrong = max((len(known.wrong[c]) for c in own), default=0)
    return frames + [f"base frame after wrong name {m}" for m in range(1, wrong + 1)]
