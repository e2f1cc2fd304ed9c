"""How MONITOR goes with accuracy over runs, what it tells apart where accuracy does not, and what
is left of it with fewer frames: every estimate by its stable name. Knows nothing of tables.

In the prompt ablation the anchor and the wrong names stay, so only the part of framing changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import combinations
from typing import NamedTuple

import numpy as np

from sonde.analysis.reliability.measures import Common, Measure, in_common, measures, p_value
from sonde.analysis.runs import Compared, Reading
from sonde.core.facts import Template
from sonde.core.fingerprints import draw_key
from sonde.core.reports import Estimate, Estimates, Metric
from sonde.core.words import told_apart
from sonde.metrics.distance import Monitored, combined
from sonde.metrics.judged import Floats, around
from sonde.stats.correlation import pearson, pearson_by_row, ranks_by_row

FIRST = "first"
Pair = tuple[str, str]
Named = Iterator[tuple[str, Estimate]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reliability:
    """Everything that is said of MONITOR over runs.

    points: over how many points each correlation is, too few ones included. equals: runs whose base
    accuracies are not distinguishable, the lower MONITOR first. subsets: MONITOR from choices of
    frames, of which a relation has up to `most`; none where no relation has more than are kept.
    """

    common: Common
    reading: Reading
    numbers: Mapping[str, Measure]
    subsets: Mapping[str, Measure]
    most: int
    equals: Sequence[Pair]
    estimates: Estimates
    points: Mapping[str, int]

    @property
    def names(self) -> list[str]:
        """What the runs are called."""
        return self.common.names

    @property
    def order(self) -> list[str]:
        """The runs by MONITOR, those without one last."""
        values = {name: self.estimates[f"monitor.run.{name}"].value for name in self.names}
        return sorted(values, key=lambda name: (values[name] is None, values[name] or 0.0))

    def of_run(self, name: str, metric: Metric) -> Estimate:
        """A number of a run."""
        return self.estimates[metric.at(f"run.{name}")]

    def measured(self, name: str) -> list[int]:
        """The relations in which a run has a MONITOR, by their numbers."""
        return list(self.numbers["monitor"].measured(self.names.index(name)))

    def difference(self, number: str, run: str, other: str) -> Estimate:
        """How much higher a number of one run is, over the relations that both have."""
        return self.numbers[number].difference(self.names.index(run), self.names.index(other))

    def p_value(self, run: str, other: str) -> float:
        """Of the difference between two runs' MONITORs."""
        runs = self.names.index(run), self.names.index(other)
        return p_value(self.common, self.numbers["monitor"], *runs, self.reading.seed)


def reliability(runs: Sequence[Compared], reading: Reading) -> Reliability:
    """Compare runs that all measured MONITOR."""
    common, seed = in_common(runs), reading.seed
    numbers = measures(common, seed)
    pairs = equals(common, numbers)
    most, subsets = ablation(common, reading)
    links = {
        **_with_accuracy(common, numbers),
        **_with_all_frames(numbers["monitor"], subsets),
    }
    return Reliability(
        common=common,
        reading=reading,
        numbers=numbers,
        subsets=subsets,
        most=most,
        equals=[(common.names[a], common.names[b]) for a, b in pairs],
        estimates={
            **dict(_of_runs(common, numbers)),
            **dict(_less_the_first(common, numbers["monitor"])),
            **dict(_of_equals(common, numbers, pairs, seed)),
            **dict(_of_subsets(common, numbers["monitor"], subsets)),
            **{name: link.r for name, link in links.items()},
            **{
                name.replace(".pearson", ".p"): link.tested()
                for name, link in links.items()
                if name.endswith(".pearson")
            },
        },
        points={name: link.points for name, link in links.items()},
    )


class Linked(NamedTuple):
    """A correlation over points, and how many there are, too few ones included.

    p is how likely so strong a correlation is where there is none between points.
    """

    r: Estimate
    p: float | None
    points: int

    def tested(self) -> Estimate:
        """p as an estimate, which has no interval."""
        return Estimate(value=self.p, low=None, high=None, n=self.r.n)


def linked(first: Floats, second: Floats, ranked: bool = False) -> Linked:
    """Pearson's r of two tables [1 + draws, points], of their ranks if `ranked`.

    Points that one of them lacks are left out. The interval is over draws of facts: the points are
    those there are.
    """
    measured = ~np.isnan(first[0]) & ~np.isnan(second[0])
    a, b = first[:, measured], second[:, measured]
    points = a.shape[1]
    if ranked and points:
        a, b = ranks_by_row(a), ranks_by_row(b)
    whole = pearson(a[0], b[0])
    if whole is None:
        return Linked(Estimate.not_measured(), None, points)
    value, p = whole
    draws = pearson_by_row(a[1:], b[1:])
    drawn = draws[~np.isnan(draws)]
    return Linked(around(value, drawn if len(drawn) else np.array([value]), points), p, points)


def _with_accuracy(common: Common, numbers: Mapping[str, Measure]) -> dict[str, Linked]:
    """How MONITOR goes with mean accuracy, over runs and in each relation."""
    monitor, accuracy = numbers["monitor"], numbers["prompt_accuracy.avg"]
    return {
        "monitor_accuracy.pearson": linked(monitor.means(), accuracy.means()),
        **{
            f"monitor_accuracy.relation.{relation.id}.pearson": linked(
                monitor.rows[:, :, r], accuracy.rows[:, :, r]
            )
            for r, relation in enumerate(common.relations)
        },
    }


def _with_all_frames(full: Measure, subsets: Mapping[str, Measure]) -> dict[str, Linked]:
    """How MONITOR from some frames goes with that from all, over runs, and over runs and relations:
    on one line (Pearson), in the same order (Spearman)."""
    links = {}
    for name, subset in subsets.items():
        over = {"": (full.means(), subset.means())}
        cells = (of.rows.reshape(len(of.rows), -1) for of in (full, subset))
        over[".cells"] = (next(cells), next(cells))
        for part, tables in over.items():
            links[f"{name}{part}.pearson"] = linked(*tables)
            links[f"{name}{part}.spearman"] = linked(*tables, ranked=True)
    return links


def _of_runs(common: Common, numbers: Mapping[str, Measure]) -> Named:
    for i, run in enumerate(common.names):
        for name, number in numbers.items():
            yield f"{name}.run.{run}", number.mean(i)
        for r, relation in enumerate(common.relations):
            yield f"monitor.relation.{relation.id}.run.{run}", numbers["monitor"].cell(i, r)


def _less_the_first(common: Common, monitor: Measure) -> Named:
    """How much higher MONITOR is than in the first run, over the relations that both have."""
    first, *others = common.names
    for i, run in enumerate(others, 1):
        yield f"monitor.runs.{run}.minus.{first}", monitor.difference(i, 0)


def equals(common: Common, numbers: Mapping[str, Measure]) -> list[tuple[int, int]]:
    """The pairs of runs that base accuracy does not tell apart, the most different MONITORs first.

    Of two the one with the lower MONITOR stands first. Pairs of which a MONITOR is not measured
    come last.
    """
    base, monitor = numbers["prompt_accuracy.base"], numbers["monitor"]
    pairs = {
        (a, b): monitor.difference(a, b).value or 0.0
        for a, b in combinations(range(len(common.runs)), 2)
        if not told_apart(base.difference(a, b))
    }
    ordered = sorted(pairs, key=lambda pair: -abs(pairs[pair]))
    return [(b, a) if pairs[a, b] > 0 else (a, b) for a, b in ordered]


def _of_equals(
    common: Common,
    numbers: Mapping[str, Measure],
    pairs: Sequence[tuple[int, int]],
    seed: int,
) -> Named:
    """Differences of two runs, the first minus the second, on the facts of both."""
    same_facts = on_shared_anchors(common, pairs, seed) if pairs else None
    for k, (a, b) in enumerate(pairs):
        ends = f"runs.{common.names[a]}.minus.{common.names[b]}"
        yield f"base_accuracy.{ends}", numbers["prompt_accuracy.base"].difference(a, b)
        yield f"monitor.{ends}", numbers["monitor"].difference(a, b)
        if same_facts is not None:
            yield f"monitor_same_facts.{ends}", same_facts.difference(2 * k, 2 * k + 1)


def on_shared_anchors(common: Common, pairs: Sequence[tuple[int, int]], seed: int) -> Measure:
    """MONITOR of each of two runs from the facts that count in both; runs 2k and 2k + 1 are a pair.

    Where no fact does, it is not measured.
    """
    runs = [run for pair in pairs for run in pair]
    of = [
        common.parts[a]["counted"] * common.parts[b]["counted"] for a, b in pairs for _ in range(2)
    ]
    wholes, anchors = (
        [common.parts[run][part] * mask for run, mask in zip(runs, of, strict=True)]
        for part in ("whole", "anchor")
    )
    return common.ratios("monitor", wholes, anchors, of, seed)


def ablation(common: Common, reading: Reading) -> tuple[int, dict[str, Measure]]:
    """How many frames a relation has at most, and MONITOR from the first few of each relation and
    from draws of as many; nothing where no relation has more."""
    most = max(len(frames) for run in common.monitored for frames in run.frames)
    names = [FIRST, *(f"draw_{k}" for k in range(1, reading.subsets + 1))]
    return most, {
        f"frames.{name}": monitor_from(common, reading.frames, name, reading.seed)
        for name in (names if reading.frames < most else [])
    }


def chosen(
    frames: tuple[Template, ...], count: int, name: str, seed: int, relation: str
) -> list[int]:
    """The places of the frames that a subset keeps; a draw depends on the frames' ids alone."""
    if name == FIRST:
        return list(range(len(frames)))[:count]
    key = f"frames:{name.replace('_', ' ')}:{relation}"
    places = range(len(frames))
    return sorted(nsmallest(count, places, key=lambda j: draw_key(seed, f"{key}:{frames[j].id}")))


def monitor_from(common: Common, frames: int, name: str, seed: int) -> Measure:
    """MONITOR of every run from so many frames, chosen as the name says."""
    wholes = []
    for run, parts in zip(common.monitored, common.parts, strict=True):
        keep = [
            chosen(of_relation, frames, name, seed, relation.id)
            for relation, of_relation in zip(run.relations, run.frames, strict=True)
        ]
        wholes.append(combined(_framing(run, keep), parts["ird"], run.alphas) * parts["counted"])
    anchors, of = ([parts[key] for parts in common.parts] for key in ("anchor", "counted"))
    return common.ratios("monitor", wholes, anchors, of, seed)


def _framing(run: Monitored, keep: Sequence[Sequence[int]]) -> Floats:
    """PFD of each fact from the frames kept of its relation."""
    facts = zip(run.anchor, run.framed, run.relation.tolist(), strict=True)
    return np.array([np.abs(framed[keep[r]] - anchor).mean() for anchor, framed, r in facts])


def _of_subsets(common: Common, full: Measure, subsets: Mapping[str, Measure]) -> Named:
    """MONITOR of each run from a choice of frames, and how much that is above that from all."""
    for name, subset in subsets.items():
        less = subset.means() - full.means()
        for i, run in enumerate(common.names):
            yield f"{name}.monitor.run.{run}", subset.mean(i)
            relations = full.measured(i)
            yield (
                f"{name}.minus_all.run.{run}",
                full.estimate(
                    less[:, i], full.n[i, relations], full.independent[i, relations], paired=True
                )
                if len(relations)
                else Estimate.not_measured(),
            )
