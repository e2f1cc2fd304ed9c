"""Figures of MONITOR over several runs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np

from sonde.analysis.reliability.compare import FIRST, Reliability
from sonde.analysis.reliability.measures import Common, Measure, answers, prompt_rates
from sonde.analysis.reliability.tables import ACCURACY
from sonde.analysis.runs import BILLION, families, family_names, relation_name
from sonde.core.reports import Bars, Boxes, Curve, Curves, Estimate, Figure, HeatMap, Metric
from sonde.metrics.distance import MONITOR
from sonde.metrics.judged import Floats
from sonde.reporting.build.figures import bars, curve, heat
from sonde.stats.intervals import wilson

MOST_BOXES = 24
EDGES = tuple(k / 10 for k in range(11))


def figures(of: Reliability) -> Iterator[Figure | None]:
    """Everything that can be drawn; one with nothing to show is None, or has no content."""
    yield Curves(
        id="monitor-accuracy",
        title="MONITOR against mean accuracy",
        kind="number",
        x_axis="mean accuracy over prompts",
        y_axis="MONITOR",
        x_kind="percent",
        curves=tuple(
            curve(name, [(of.of_run(name, ACCURACY).value or 0.0, monitor)], joined=False)
            for name in of.order
            if (monitor := of.of_run(name, MONITOR)).value is not None
        ),
        note="A point is a run; lower is more reliable. Whiskers are 95 % intervals over facts.",
    )
    yield _matrix(of)
    yield _moved_boxes(of.common)
    yield _prompt_boxes(of)
    yield _anchor_bars(of.common)
    yield scaling(of)
    yield _fewer_frames(of)


def _matrix(of: Reliability) -> HeatMap:
    """MONITOR of each run in each relation; rows by their mean, the most reliable first."""
    relations, values = of.common.relations, of.numbers["monitor"].values
    means = [np.nanmean(c) if not np.isnan(c).all() else np.inf for c in values.T]
    order = sorted(range(len(means)), key=lambda r: (means[r], relations[r].id))
    facts = np.bincount(of.common.owners, minlength=len(relations)).tolist()
    return heat(
        (f"{relation_name(relations[r])} (n = {facts[r]:,})" for r in order),
        of.order,
        (
            (of.estimates[f"monitor.relation.{relations[r].id}.run.{name}"] for name in of.order)
            for r in order
        ),
        id="monitor-relations",
        title="MONITOR of each run in each relation",
        unit="number",
        high=float(np.fmax.reduce(values, axis=None, initial=1.0)),
        note="Lower is more reliable. n counts the facts asked; not measured where a run has no "
        "valid anchor.",
    )


def _prompt_boxes(of: Reliability) -> Boxes:
    """The accuracy of every prompt, a box for each run in each relation, as many as can be read.

    Relations whose accuracies move most come first.
    """
    common, stdev = of.common, of.numbers["prompt_accuracy.stdev"]
    moved = np.nan_to_num(stdev.values).mean(axis=0)
    order = sorted(range(len(common.relations)), key=lambda r: (-moved[r], common.relations[r].id))
    some = order[: max(1, MOST_BOXES // len(common.runs))]
    names = {r: relation_name(common.relations[r]) for r in some}
    alone = len(common.relations) == 1
    left = len(order) - len(some)
    more = f" {left:,} relations that move less are left out." if left else ""
    return _boxes(
        {
            f"{'' if alone else names[r] + ': '}{common.names[i]}": _prompts(common, i, r)
            for r, i in product(some, range(len(common.runs)))
        },
        id="accuracy-over-prompts",
        title="Accuracy over prompts" + (f": {names[some[0]]}" if alone else ""),
        axis="accuracy of a prompt",
        note="A dot is a prompt: a frame with nothing told, or the base frame after a wrong name. "
        "A box holds the middle half, its line is the median, whiskers reach the ends." + more,
    )


def _moved_boxes(common: Common) -> Boxes | None:
    """How far prompts move the accuracy of each run, over all relations; None for one relation."""
    if len(common.relations) == 1:
        return None
    moved: dict[str, Dots] = {name: [] for name in common.names}
    for (i, run), (r, relation) in product(enumerate(moved), enumerate(common.relations)):
        prompts = _prompts(common, i, r)
        mean = float(np.mean([rate for _, rate in prompts]))
        name = relation_name(relation)
        moved[run] += [(f"{name}: {text}", rate - mean) for text, rate in prompts]
    return _boxes(
        moved,
        id="prompts-from-mean",
        title="How far prompts move accuracy, over all relations",
        axis="accuracy of a prompt minus the mean of its relation",
        note="A dot is a prompt of a relation. The wider a box, the less one prompt's accuracy "
        "tells of the others'.",
    )


Dots = list[tuple[str, float]]
"""Names and values of what a box is of."""


def _boxes(boxes: dict[str, Dots], *, id: str, title: str, axis: str, note: str) -> Boxes:
    return Boxes(
        id=id,
        title=title,
        axis=axis,
        labels=tuple(boxes),
        values=tuple(tuple(value for _, value in dots) for dots in boxes.values()),
        names=tuple(tuple(name for name, _ in dots) for dots in boxes.values()),
        note=note,
    )


def _prompts(common: Common, run: int, relation: int) -> Dots:
    """The prompts of a relation in a run, its frames and then the wrong names by number, each with
    its accuracy."""
    monitored = common.monitored[run]
    facts = np.flatnonzero(common.owners == relation)
    rates = prompt_rates(answers(monitored)[facts].sum(axis=0)[None])[0]
    frames = [template.text for template in monitored.frames[relation]]
    wrong = max((len(monitored.wrong[c]) for c in facts), default=0)
    names = frames + [f"base frame after wrong name {m}" for m in range(1, wrong + 1)]
    return list(zip(names, rates[~np.isnan(rates)].tolist(), strict=False))


def _anchor_bars(common: Common) -> Bars | None:
    """How likely the valid anchors of the two runs named first are."""
    anchors = [run.anchors()[run.valid[run.rule]] for run in common.monitored]
    pair = [i for i, of_run in enumerate(anchors) if of_run.size][:2]
    if len(pair) < 2:
        return None
    return bars(
        {f"{i}.{label}": e for i in pair for label, e in _bins(anchors[i]).items()},
        {label: label for label in _bins(anchors[pair[0]])},
        {common.names[i]: Metric(f"{i}", "") for i in pair},
        id="anchor-probabilities",
        title=f"Probability of the anchors: {common.names[pair[0]]} and {common.names[pair[1]]}",
        axis="share of valid anchors",
        note="Of all valid anchors of a run together, whatever their relation. The two runs named "
        "first that have any; name others first to see theirs.",
    )


def _bins(anchors: Floats) -> dict[str, Estimate]:
    """The share of anchors between two edges, by what the edges are."""
    labels = [f"{low:.1f} to {high:.1f}" for low, high in pairwise(EDGES)]
    # rounding can leave a certain token a little above 1
    counts, n = np.histogram(np.clip(anchors, 0.0, 1.0), bins=EDGES)[0].tolist(), len(anchors)
    ends = [wilson(count, n) for count in counts]
    return {
        label: Estimate(value=count / n, low=low, high=high, n=n)
        for label, count, (low, high) in zip(labels, counts, ends, strict=True)
    }


def scaling(of: Reliability) -> Curves | None:
    """MONITOR against size, the runs of a family asked in the same way joined."""
    monitor = {run.name: of.of_run(run.name, MONITOR) for run in of.common.runs}
    lines = families([run for run in of.common.runs if monitor[run.name].value is not None])
    if not lines:
        return None
    return Curves(
        id="scaling",
        title="MONITOR against size",
        kind="number",
        x_axis="parameters in billions",
        y_axis="MONITOR",
        curves=tuple(
            curve(name, [((r.lineage.size or 0) / BILLION, monitor[r.name]) for r in members])
            for name, members in zip(family_names(list(lines)), lines.values(), strict=True)
        ),
        note="Each run over the relations in which it has a valid anchor; whiskers are 95 % "
        "intervals over facts.",
    )


def _fewer_frames(of: Reliability) -> Curves | None:
    """MONITOR from the first frames against that from all, a point for each relation of a run."""
    full, few, frames = of.numbers["monitor"], of.subsets.get(f"frames.{FIRST}"), of.reading.frames
    if few is None:
        return None

    def points(name: str, measure: Measure) -> tuple[float, ...]:
        return tuple(measure.values[of.names.index(name), of.measured(name)].tolist())

    return Curves(
        id="frames",
        title=f"MONITOR from the first {frames} frames against all",
        kind="number",
        x_axis="MONITOR from all frames",
        y_axis=f"from the first {frames}",
        curves=tuple(
            Curve(name=name, x=points(name, full), y=points(name, few), joined=False)
            for name in of.order
            if of.measured(name)
        ),
        diagonal=True,
        note="A point is a relation in a run.",
    )
