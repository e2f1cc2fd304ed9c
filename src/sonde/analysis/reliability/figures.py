"""Figures of MONITOR over several runs; the report drops those with nothing to show."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from sonde.analysis.reliability.facts import prompt_names
from sonde.analysis.reliability.frames import FIRST, Ablation
from sonde.analysis.reliability.outcomes import Common, Measure, answers, prompt_rates
from sonde.analysis.reliability.tables import by_monitor
from sonde.analysis.runs import UNKNOWN, relation_name
from sonde.core.reports import Bars, Boxes, Curve, Curves, Estimate, HeatMap, Series
from sonde.stats.intervals import wilson

MOST_BOXES = 24
EDGES = tuple(k / 10 for k in range(11))
BILLION = 1e9


def accuracy_scatter(found: Common, made: dict[str, Measure]) -> Curves:
    """MONITOR against mean accuracy, a point for each run."""
    monitor, accuracy = made["monitor"], made["prompt_accuracy.avg"]
    there = [i for i in by_monitor(monitor) if monitor.mean(i).value is not None]
    return Curves(
        id="monitor-accuracy",
        title="MONITOR against mean accuracy",
        kind="number",
        x_axis="mean accuracy over prompts",
        y_axis="MONITOR",
        x_kind="percent",
        curves=tuple(
            _point(found.names[i], accuracy.mean(i).value or 0.0, monitor.mean(i)) for i in there
        ),
        note="A point is a run; lower is more reliable. Whiskers are 95 % intervals over facts.",
    )


def _point(name: str, x: float, y: Estimate) -> Curve:
    value = y.value if y.value is not None else float("nan")
    low, high = y.ends
    return Curve(name=name, x=(x,), y=(value,), low=(low,), high=(high,), joined=False)


def matrix_map(found: Common, monitor: Measure) -> HeatMap | None:
    """MONITOR of each run in each relation; rows by their mean, the most reliable first."""
    values, runs = monitor.values, by_monitor(monitor)
    if np.isnan(values).all():
        return None
    means = [np.nanmean(c) if not np.isnan(c).all() else np.inf for c in values.T]
    order = sorted(range(len(means)), key=lambda r: (means[r], found.relations[r].id))
    facts = [int((found.owners == r).sum()) for r in range(len(found.relations))]
    return HeatMap(
        id="monitor-relations",
        title="MONITOR of each run in each relation",
        kind="number",
        rows=tuple(f"{relation_name(found.relations[r])} (n = {facts[r]:,})" for r in order),
        columns=tuple(found.names[i] for i in runs),
        values=tuple(
            tuple(None if np.isnan(values[i, r]) else float(values[i, r]) for i in runs)
            for r in order
        ),
        high=max(1.0, float(np.nanmax(values))),
        note="Lower is more reliable. n counts the facts asked; not measured where a run has no "
        "valid anchor.",
    )


def prompt_boxes(found: Common, stdev: Measure) -> Boxes:
    """The accuracy of every prompt, a box for each run in each relation, as many as can be read.

    Relations whose accuracies move most come first.
    """
    moved = np.nan_to_num(stdev.values).mean(axis=0)
    order = sorted(range(len(found.relations)), key=lambda r: (-moved[r], found.relations[r].id))
    shown = order[: max(1, MOST_BOXES // len(found.runs))]
    runs, alone = range(len(found.runs)), len(found.relations) == 1
    cells = [(r, i) for r in shown for i in runs]
    names = {r: relation_name(found.relations[r]) for r in shown}
    left = len(order) - len(shown)
    more = f" {left:,} relations that move less are left out." if left else ""
    return Boxes(
        id="accuracy-over-prompts",
        title="Accuracy over prompts" + (f": {names[shown[0]]}" if alone else ""),
        axis="accuracy of a prompt",
        labels=tuple(f"{'' if alone else names[r] + ': '}{found.names[i]}" for r, i in cells),
        values=tuple(tuple(rates(found, i, r)) for r, i in cells),
        names=tuple(_names(found, i, r) for r, i in cells),
        note="A dot is a prompt: a frame with nothing told, or the base frame after a wrong name. "
        "A box holds the middle half, its line is the median, whiskers reach the ends." + more,
    )  # fmt: skip


def moved_boxes(found: Common) -> Boxes | None:
    """How far prompts move the accuracy of each run, over all relations; None for one relation."""
    if len(found.relations) == 1:
        return None
    values, names = [], []
    for i in range(len(found.runs)):
        own = [(r, rates(found, i, r)) for r in range(len(found.relations))]
        values.append(tuple(v - float(np.mean(row)) for _, row in own for v in row))
        told = ((relation_name(found.relations[r]), t) for r, _ in own for t in _names(found, i, r))
        names.append(tuple(f"{relation}: {text}" for relation, text in told))
    return Boxes(
        id="prompts-from-mean",
        title="How far prompts move accuracy, over all relations",
        axis="accuracy of a prompt less the mean of its relation",
        labels=tuple(found.names),
        values=tuple(values),
        names=tuple(names),
        note="A dot is a prompt of a relation. The wider a box, the less one prompt's accuracy "
        "tells of the others'.",
    )


def rates(found: Common, run: int, relation: int) -> list[float]:
    """The accuracy of each prompt of a relation in a run."""
    own = answers(found.known[run])[found.owners == relation]
    made = prompt_rates(own.sum(axis=0)[None])[0]
    return [float(value) for value in made[~np.isnan(made)]]


def _names(found: Common, run: int, relation: int) -> tuple[str, ...]:
    return tuple(prompt_names(found.known[run], relation)[: len(rates(found, run, relation))])


def anchor_bars(found: Common) -> Bars | None:
    """How likely the valid anchors of the two runs named first are."""
    pair = [i for i in range(len(found.runs)) if _anchors(found, i).size][:2]
    if len(pair) < 2:
        return None
    labels = [f"{low:.1f} to {high:.1f}" for low, high in pairwise(EDGES)]
    return Bars(
        id="anchor-probabilities",
        title=f"Probability of the anchors: {found.names[pair[0]]} and {found.names[pair[1]]}",
        axis="share of valid anchors",
        labels=tuple(labels),
        series=tuple(Series(name=found.names[i], values=_bins(_anchors(found, i))) for i in pair),
        note="Of all valid anchors of a run together, whatever their relation. The two runs named "
        "first that have any; name others first to see theirs.",
    )


def _anchors(found: Common, run: int) -> np.ndarray:
    known = found.known[run]
    # rounding can leave a certain token a little above 1
    return np.clip(known.anchors()[known.valid[known.rule]], 0.0, 1.0)


def _bins(values: np.ndarray) -> tuple[Estimate, ...]:
    counts, _ = np.histogram(values, bins=EDGES)
    n = len(values)
    made = []
    for count in counts.tolist():
        low, high = wilson(count, n)
        made.append(Estimate(value=count / n, low=low, high=high, n=n))
    return tuple(made)


def scaling_curves(found: Common, monitor: Measure) -> Curves:
    """MONITOR against size, the runs of a family asked in the same way joined."""
    families: dict[tuple[str, str, str], list[int]] = {}
    for i, run in enumerate(found.runs):
        of = run.lineage
        if of.family != UNKNOWN and of.size is not None and monitor.mean(i).value is not None:
            families.setdefault((of.family, of.stage, run.setting), []).append(i)
    several = {
        key: sorted(runs, key=lambda i: found.runs[i].lineage.size or 0)
        for key, runs in families.items()
        if len({found.runs[i].lineage.size for i in runs}) > 1
    }
    names = family_names(list(several))
    return Curves(
        id="scaling",
        title="MONITOR against size",
        kind="number",
        x_axis="parameters in billions",
        y_axis="MONITOR",
        curves=tuple(
            _line(found, monitor, name, runs)
            for name, runs in zip(names, several.values(), strict=True)
        ),
        note="Each run over the relations in which it has a valid anchor; whiskers are 95 % "
        "intervals over facts.",
    )


def family_names(keys: list[tuple[str, str, str]]) -> list[str]:
    """A name for each line: its family, with the stage where a family has two, then a number."""
    families = [family for family, _, _ in keys]
    made: list[str] = []
    for family, stage, _ in keys:
        name = f"{family} ({stage})" if families.count(family) > 1 and stage else family
        same = sum(one == name or one.startswith(f"{name}, ") for one in made)
        made.append(f"{name}, setting {same + 1}" if same else name)
    return made


def _line(found: Common, monitor: Measure, name: str, runs: list[int]) -> Curve:
    points = [
        _point(name, (found.runs[i].lineage.size or 0) / BILLION, monitor.mean(i)) for i in runs
    ]
    return Curve(
        name=name,
        x=tuple(p.x[0] for p in points),
        y=tuple(p.y[0] for p in points),
        low=tuple(p.low[0] for p in points),
        high=tuple(p.high[0] for p in points),
    )


def ablation_scatter(found: Common, made: Ablation) -> Curves | None:
    """MONITOR from the first frames against that from all, a point for each relation of a run."""
    first = next((s for s in made.subsets if s.name == FIRST), None)
    if first is None or np.isnan(made.full.values).all():
        return None
    curves = []
    for i in by_monitor(made.full):
        own = made.full.measured(i).tolist()
        x, y = (tuple(m.values[i, own].tolist()) for m in (made.full, first.monitor))
        if own:
            curves.append(Curve(name=found.names[i], x=x, y=y, joined=False))
    return Curves(
        id="frames",
        title=f"MONITOR from the first {made.frames} frames against all",
        kind="number",
        x_axis="MONITOR from all frames",
        y_axis=f"from the first {made.frames}",
        curves=tuple(curves),
        diagonal=True,
        note="A point is a relation in a run.",
    )
