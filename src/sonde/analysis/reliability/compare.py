"""How MONITOR goes with accuracy over runs, what it tells apart where accuracy does not, and what
is left of it with fewer frames. Knows numbers of runs, nothing of tables.

In the prompt ablation the anchor and the wrong names stay, so only the part of framing changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import combinations

import numpy as np

from sonde.analysis.reliability.outcomes import (
    Common,
    Measure,
    in_common,
    measure,
    measures,
    ratios,
    settled,
    sure,
)
from sonde.analysis.runs import Compared, Reading
from sonde.core.facts import Template
from sonde.core.fingerprints import draw_key
from sonde.core.reports import Estimate
from sonde.core.words import told_apart
from sonde.metrics.distance import Monitored, combined
from sonde.metrics.grid import Floats, around
from sonde.stats.correlation import pearson, pearson_by_row, ranks_by_row

FIRST = "first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """A correlation over points, and how many there are, too few ones included.

    p is how likely so strong a correlation is where there is none between points.
    """

    r: Estimate
    p: float | None
    points: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Equals:
    """Two runs whose base accuracies are not told apart; the first has the lower MONITOR.

    Differences are the first less the second, on the facts of both. `shared` is that of MONITOR
    from the facts alone whose anchor is valid in both.
    """

    first: int
    second: int
    base: Estimate
    monitor: Estimate
    shared: Estimate


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
    """Subsets of `frames` frames beside all, of which a relation has up to `most`; there are none
    where no relation has more."""

    frames: int
    most: int
    full: Measure
    subsets: tuple[Subset, ...]

    @property
    def first(self) -> Subset | None:
        """The subset of the first frames."""
        return next((subset for subset in self.subsets if subset.name == FIRST), None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reliability:
    """Everything that is said of MONITOR over runs: `over` of them, and in each relation."""

    common: Common
    numbers: Mapping[str, Measure]
    over: Linked
    relations: Sequence[Linked]
    equals: Sequence[Equals]
    ablation: Ablation
    seed: int

    @property
    def names(self) -> list[str]:
        """What the runs are called."""
        return self.common.names

    @property
    def monitor(self) -> Measure:
        """The number itself."""
        return self.numbers["monitor"]

    @property
    def order(self) -> list[int]:
        """The runs by MONITOR, those without one last."""
        values = [self.monitor.mean(i).value for i in range(len(self.names))]
        return sorted(range(len(values)), key=lambda i: (values[i] is None, values[i] or 0.0, i))

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Every number under its stable name."""
        return {**_of_runs(self), **_of_relations(self), **_of_equals(self), **_of_frames(self)}


def reliability(runs: Sequence[Compared], reading: Reading) -> Reliability:
    """Compare runs that all measured MONITOR."""
    common, seed = in_common(runs), reading.seed
    numbers = measures(common, seed)
    monitor, accuracy = numbers["monitor"], numbers["prompt_accuracy.avg"]
    return Reliability(
        common=common,
        numbers=numbers,
        over=linked(monitor.means(), accuracy.means()),
        relations=[
            linked(monitor.rows[:, :, r], accuracy.rows[:, :, r])
            for r in range(len(common.relations))
        ],
        equals=equals(common, numbers, seed),
        ablation=ablation(common, monitor, reading.frames, reading.subsets, seed),
        seed=seed,
    )


def linked(one: Floats, other: Floats, ranked: bool = False) -> Linked:
    """Pearson's r of two tables [1 + draws, points], of their ranks if `ranked`.

    Points that one of them lacks are left out. The interval is over draws of facts: the points are
    those there are.
    """
    measured = ~np.isnan(one[0]) & ~np.isnan(other[0])
    a, b = one[:, measured], other[:, measured]
    points = a.shape[1]
    if ranked and points:
        a, b = ranks_by_row(a), ranks_by_row(b)
    whole = pearson(a[0], b[0])
    if whole is None:
        return Linked(r=Estimate.not_measured(), p=None, points=points)
    value, p = whole
    draws = pearson_by_row(a[1:], b[1:])
    told = draws[~np.isnan(draws)]
    r = around(value, told if len(told) else np.array([value]), points)
    return Linked(r=r, p=p, points=points)


def equals(common: Common, numbers: Mapping[str, Measure], seed: int = 0) -> list[Equals]:
    """The pairs of runs that base accuracy does not tell apart, the most different MONITORs first.

    Pairs of which a MONITOR is not measured come last.
    """
    base, monitor = numbers["prompt_accuracy.base"], numbers["monitor"]
    ordered = [
        (b, a) if (monitor.difference(a, b).value or 0.0) > 0 else (a, b)
        for a, b in combinations(range(len(common.runs)), 2)
        if not told_apart(base.difference(a, b))
    ]
    if not ordered:
        return []
    shared = on_shared_anchors(common, ordered, seed)
    rows = [
        Equals(
            first=a,
            second=b,
            base=base.difference(a, b),
            monitor=monitor.difference(a, b),
            shared=shared.difference(2 * k, 2 * k + 1),
        )
        for k, (a, b) in enumerate(ordered)
    ]
    return sorted(rows, key=lambda row: -abs(row.monitor.value or 0.0))


def on_shared_anchors(common: Common, pairs: Sequence[tuple[int, int]], seed: int) -> Measure:
    """MONITOR of each of two runs from the facts that count in both; runs 2k and 2k + 1 are a pair.

    Where no fact does, it is not measured.
    """
    columns, counts = [], []
    for a, b in pairs:
        both = common.parts[a].counted * common.parts[b].counted
        of_relations = np.bincount(common.owners, both, minlength=len(common.relations))
        for i in (a, b):
            columns += [common.parts[i].whole * both, common.parts[i].anchors * both]
            counts.append(of_relations.astype(np.int64))
    n = np.stack(counts)
    return Measure(rows=settled(ratios(common, columns, seed)), n=n, independent=n)


def ablation(common: Common, full: Measure, frames: int, draws: int, seed: int) -> Ablation:
    """The first frames of each relation, and so many draws of them."""
    most = max(len(own) for run in common.monitored for own in run.frames)
    names = [FIRST, *(f"draw {k}" for k in range(1, draws + 1))] if frames < most else []
    subsets = (_subset(name, monitor_from(common, frames, name, seed), full) for name in names)
    return Ablation(frames=frames, most=most, full=full, subsets=tuple(subsets))


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


def monitor_from(common: Common, frames: int, name: str, seed: int) -> Measure:
    """MONITOR of every run from so many frames, chosen as the name says."""
    columns = []
    for run, parts in zip(common.monitored, common.parts, strict=True):
        keep = [
            chosen(own, frames, name, seed, relation.id)
            for relation, own in zip(run.relations, run.frames, strict=True)
        ]
        whole = combined(_framing(run, keep), parts.ird, run.alphas)
        columns += [whole * parts.counted, parts.anchors * parts.counted]
    return measure(common, "monitor", ratios(common, columns, seed))


def _framing(run: Monitored, keep: Sequence[Sequence[int]]) -> Floats:
    """PFD of each fact from the frames kept of its relation."""
    facts = zip(run.anchor, run.framed, run.relation.tolist(), strict=True)
    return np.array([np.abs(framed[keep[r]] - anchor).mean() for anchor, framed, r in facts])


def _subset(name: str, monitor: Measure, full: Measure) -> Subset:
    over = full.means(), monitor.means()
    cells = full.rows.reshape(len(full.rows), -1), monitor.rows.reshape(len(monitor.rows), -1)
    return Subset(
        name=name,
        monitor=monitor,
        less=tuple(_less(over[1][:, i] - over[0][:, i], full, i) for i in range(over[0].shape[1])),
        rank=linked(*over, ranked=True),
        line=linked(*over),
        rank_in_cells=linked(*cells, ranked=True),
        line_in_cells=linked(*cells),
    )


def _less(rows: Floats, full: Measure, run: int) -> Estimate:
    if np.isnan(rows[0]):
        return Estimate.not_measured()
    difference = around(float(rows[0]), rows[1:], full.mean(run).n)
    return sure(difference, full.independent[run, full.measured(run)])


def _of_runs(of: Reliability) -> dict[str, Estimate]:
    runs = list(enumerate(of.names))
    return {
        f"{name}.run.{run}": number.mean(i)
        for name, number in of.numbers.items()
        for i, run in runs
    }


def _of_relations(of: Reliability) -> dict[str, Estimate]:
    estimates = _link("monitor_accuracy", of.over)
    for r, relation in enumerate(of.common.relations):
        estimates |= _link(f"monitor_accuracy.relation.{relation.id}", of.relations[r])
        for i, run in enumerate(of.names):
            estimates[f"monitor.relation.{relation.id}.run.{run}"] = of.monitor.cell(i, r)
    return estimates


def _of_equals(of: Reliability) -> dict[str, Estimate]:
    estimates = {}
    for pair in of.equals:
        ends = f"runs.{of.names[pair.first]}.minus.{of.names[pair.second]}"
        estimates[f"base_accuracy.{ends}"] = pair.base
        estimates[f"monitor.{ends}"] = pair.monitor
        estimates[f"monitor_same_facts.{ends}"] = pair.shared
    return estimates


def _of_frames(of: Reliability) -> dict[str, Estimate]:
    estimates: dict[str, Estimate] = {}
    for subset in of.ablation.subsets:
        name = f"frames.{subset.name.replace(' ', '_')}"
        estimates |= _link(name, subset.line) | _link(f"{name}.cells", subset.line_in_cells)
        estimates[f"{name}.spearman"] = subset.rank.r
        estimates[f"{name}.cells.spearman"] = subset.rank_in_cells.r
        for i, run in enumerate(of.names):
            estimates[f"{name}.monitor.run.{run}"] = subset.monitor.mean(i)
            estimates[f"{name}.minus_all.run.{run}"] = subset.less[i]
    return estimates


def _link(name: str, link: Linked) -> dict[str, Estimate]:
    p = Estimate(value=link.p, low=None, high=None, n=link.r.n)
    return {f"{name}.pearson": link.r, f"{name}.p": p}
