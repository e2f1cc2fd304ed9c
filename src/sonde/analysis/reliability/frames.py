"""Prompt ablation: MONITOR from some of the frames, and how it goes with that from all of them.

The anchor and the wrong names stay, so only the part of framing changes. Knows numbers of runs,
nothing of tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nsmallest

import numpy as np

from sonde.analysis.reliability.accuracy import Linked, linked
from sonde.analysis.reliability.outcomes import Common, Measure, measure, ratio, resampled, sure
from sonde.core.facts import Template
from sonde.core.fingerprints import draw_key
from sonde.core.reports import Estimate
from sonde.metrics.cells import around
from sonde.metrics.distance import Monitored, combined
from sonde.metrics.grid import Floats
from sonde.stats.intervals import DRAWS

FIRST = "first"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subset:
    """MONITOR from a choice of frames: the first ones, or draw 1, 2, … of as many.

    less[i]: run i's MONITOR from the choice less that from all frames. rank and line: Spearman's
    and Pearson's correlation of the two over runs; in_cells the same over runs and relations.
    """

    name: str
    monitor: Measure
    less: tuple[Estimate, ...]
    rank: Linked
    line: Linked
    rank_in_cells: Linked
    line_in_cells: Linked


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ablation:
    """Subsets of `frames` frames beside all; none where no relation has more than that."""

    frames: int
    most: int
    full: Measure
    subsets: tuple[Subset, ...]


def ablation(found: Common, full: Measure, frames: int, draws: int, seed: int) -> Ablation:
    """The first frames of each relation, and so many draws of them."""
    most = max(len(own) for known in found.known for own in known.frames)
    names = [FIRST, *(f"draw {k}" for k in range(1, draws + 1))] if frames < most else []
    made = [monitor_from(found, frames, name, seed) for name in names]
    subsets = tuple(_subset(name, of, full) for name, of in zip(names, made, strict=True))
    return Ablation(frames=frames, most=most, full=full, subsets=subsets)


def chosen(
    own: tuple[Template, ...], frames: int, name: str, seed: int, relation: str
) -> list[int]:
    """The places of the frames that a subset keeps; a draw depends on the frames' ids alone."""
    if name == FIRST:
        return list(range(len(own)))[:frames]
    key = f"frames:{name}:{relation}"
    return sorted(
        nsmallest(frames, range(len(own)), key=lambda j: draw_key(seed, f"{key}:{own[j].id}"))
    )


def framing(known: Monitored, keep: list[list[int]]) -> Floats:
    """PFD of each fact from the frames kept of its relation."""
    own = [keep[r] for r in known.relation.tolist()]
    return np.array(
        [
            np.abs(framed[places] - anchor).mean()
            for anchor, framed, places in zip(known.anchor, known.framed, own, strict=True)
        ],
        dtype=np.float64,
    )


def monitor_from(found: Common, frames: int, name: str, seed: int) -> Measure:
    """MONITOR of every run from so many frames, chosen as the name says."""
    columns = []
    for known, parts in zip(found.known, found.parts, strict=True):
        keep = [
            chosen(own, frames, name, seed, relation.id)
            for relation, own in zip(known.relations, known.frames, strict=True)
        ]
        whole = combined(framing(known, keep), parts.ird, known.alphas)
        columns += [whole * parts.counted, parts.anchors * parts.counted]
    rows = np.full((1 + DRAWS, len(found.runs), len(found.relations)), np.nan)
    for r, sums in enumerate(resampled(found, np.column_stack(columns), seed)):
        rows[:, :, r] = ratio(sums[:, ::2], sums[:, 1::2])
    return measure(found, "monitor", rows)


def _subset(name: str, made: Measure, full: Measure) -> Subset:
    over, cells = (full.means(), made.means()), (_flat(full), _flat(made))
    return Subset(
        name=name,
        monitor=made,
        less=tuple(_less(made, full, i) for i in range(made.rows.shape[1])),
        rank=linked(*over, ranked=True),
        line=linked(*over),
        rank_in_cells=linked(*cells, ranked=True),
        line_in_cells=linked(*cells),
    )


def _flat(of: Measure) -> Floats:
    return of.rows.reshape(len(of.rows), -1)


def _less(made: Measure, full: Measure, run: int) -> Estimate:
    rows = made.means()[:, run] - full.means()[:, run]
    if np.isnan(rows[0]):
        return Estimate.not_measured()
    found = around(float(rows[0]), rows[1:], full.mean(run).n)
    return sure(found, full.independent[run, full.measured(run)])
