"""Figures of MONITOR over several runs. A figure with nothing to show is None."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np

from sonde.analysis.reliability.compare import Reliability
from sonde.analysis.reliability.outcomes import Common, answers, prompt_rates
from sonde.analysis.runs import Family, families, relation_name
from sonde.core.reports import Bars, Boxes, Curve, Curves, Estimate, Figure, HeatMap, Series
from sonde.metrics.distance import Monitored
from sonde.metrics.grid import Floats
from sonde.reporting.build.figures import curve, heat
from sonde.reporting.build.parts import shown
from sonde.reporting.build.tables import measured
from sonde.stats.intervals import wilson

MOST_BOXES = 24
EDGES = tuple(k / 10 for k in range(11))
BILLION = 1e9


def figures(of: Reliability) -> tuple[Figure, ...]:
    """Everything that can be drawn."""
    return shown(
        (
            _accuracy_scatter(of),
            _matrix(of),
            _moved_boxes(of.common),
            _prompt_boxes(of),
            _anchor_bars(of.common),
            scaling(of),
            _fewer_frames(of),
        )
    )


def _accuracy_scatter(of: Reliability) -> Curves:
    """MONITOR against mean accuracy, a point for each run."""
    accuracy = of.numbers["prompt_accuracy.avg"]
    points = {i: (accuracy.mean(i).value or 0.0, of.monitor.mean(i)) for i in of.order}
    return Curves(
        id="monitor-accuracy",
        title="MONITOR against mean accuracy",
        kind="number",
        x_axis="mean accuracy over prompts",
        y_axis="MONITOR",
        x_kind="percent",
        curves=tuple(
            curve(of.names[i], [(x, y)], joined=False)
            for i, (x, y) in points.items()
            if y.value is not None
        ),
        note="A point is a run; lower is more reliable. Whiskers are 95 % intervals over facts.",
    )


def _matrix(of: Reliability) -> HeatMap | None:
    """MONITOR of each run in each relation; rows by their mean, the most reliable first."""
    values, relations = of.monitor.values, of.common.relations
    if np.isnan(values).all():
        return None
    means = [np.nanmean(c) if not np.isnan(c).all() else np.inf for c in values.T]
    order = sorted(range(len(means)), key=lambda r: (means[r], relations[r].id))
    facts = np.bincount(of.common.owners, minlength=len(relations)).tolist()
    return heat(
        (f"{relation_name(relations[r])} (n = {facts[r]:,})" for r in order),
        (of.names[i] for i in of.order),
        ((measured(values[i, r]) for i in of.order) for r in order),
        id="monitor-relations",
        title="MONITOR of each run in each relation",
        unit="number",
        high=max(1.0, float(np.nanmax(values))),
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
    cells = [(r, i) for r in some for i in range(len(common.runs))]
    prompts = [_prompts(common, i, r) for r, i in cells]
    left = len(order) - len(some)
    more = f" {left:,} relations that move less are left out." if left else ""
    return Boxes(
        id="accuracy-over-prompts",
        title="Accuracy over prompts" + (f": {names[some[0]]}" if alone else ""),
        axis="accuracy of a prompt",
        labels=tuple(f"{'' if alone else names[r] + ': '}{common.names[i]}" for r, i in cells),
        values=tuple(tuple(rate for _, rate in own) for own in prompts),
        names=tuple(tuple(text for text, _ in own) for own in prompts),
        note="A dot is a prompt: a frame with nothing told, or the base frame after a wrong name. "
        "A box holds the middle half, its line is the median, whiskers reach the ends." + more,
    )


def _moved_boxes(common: Common) -> Boxes | None:
    """How far prompts move the accuracy of each run, over all relations; None for one relation."""
    if len(common.relations) == 1:
        return None
    moved: list[list[tuple[str, float]]] = [[] for _ in common.runs]
    for i, (r, relation) in product(range(len(moved)), enumerate(common.relations)):
        prompts = _prompts(common, i, r)
        mean = float(np.mean([rate for _, rate in prompts]))
        name = relation_name(relation)
        moved[i] += [(f"{name}: {text}", rate - mean) for text, rate in prompts]
    return Boxes(
        id="prompts-from-mean",
        title="How far prompts move accuracy, over all relations",
        axis="accuracy of a prompt less the mean of its relation",
        labels=tuple(common.names),
        values=tuple(tuple(rate for _, rate in own) for own in moved),
        names=tuple(tuple(text for text, _ in own) for own in moved),
        note="A dot is a prompt of a relation. The wider a box, the less one prompt's accuracy "
        "tells of the others'.",
    )


def _prompts(common: Common, run: int, relation: int) -> list[tuple[str, float]]:
    """The prompts of a relation in a run, its frames and then the wrong names by number, each with
    its accuracy."""
    known = common.monitored[run]
    rates = prompt_rates(answers(known)[common.owners == relation].sum(axis=0)[None])[0]
    return list(zip(_prompt_names(known, relation), rates[~np.isnan(rates)].tolist(), strict=False))


def _prompt_names(known: Monitored, relation: int) -> list[str]:
    frames = [template.text for template in known.frames[relation]]
    facts = np.flatnonzero(known.relation == relation).tolist()
    wrong = max((len(known.wrong[c]) for c in facts), default=0)
    return frames + [f"base frame after wrong name {m}" for m in range(1, wrong + 1)]


def _anchor_bars(common: Common) -> Bars | None:
    """How likely the valid anchors of the two runs named first are."""
    anchors = [known.anchors()[known.valid[known.rule]] for known in common.monitored]
    pair = [i for i, own in enumerate(anchors) if own.size][:2]
    if len(pair) < 2:
        return None
    return Bars(
        id="anchor-probabilities",
        title=f"Probability of the anchors: {common.names[pair[0]]} and {common.names[pair[1]]}",
        axis="share of valid anchors",
        labels=tuple(f"{low:.1f} to {high:.1f}" for low, high in pairwise(EDGES)),
        series=tuple(Series(name=common.names[i], values=_bins(anchors[i])) for i in pair),
        note="Of all valid anchors of a run together, whatever their relation. The two runs named "
        "first that have any; name others first to see theirs.",
    )


def _bins(anchors: Floats) -> tuple[Estimate, ...]:
    # rounding can leave a certain token a little above 1
    counts, n = np.histogram(np.clip(anchors, 0.0, 1.0), bins=EDGES)[0].tolist(), len(anchors)
    ends = [wilson(count, n) for count in counts]
    return tuple(
        Estimate(value=count / n, low=low, high=high, n=n)
        for count, (low, high) in zip(counts, ends, strict=True)
    )


def scaling(of: Reliability) -> Curves | None:
    """MONITOR against size, the runs of a family asked in the same way joined."""
    kept = [i for i in range(len(of.names)) if of.monitor.mean(i).value is not None]
    lines = families([of.common.runs[i] for i in kept])
    if not lines:
        return None

    def point(place: int) -> tuple[float, Estimate]:
        i = kept[place]
        return (of.common.runs[i].lineage.size or 0) / BILLION, of.monitor.mean(i)

    return Curves(
        id="scaling",
        title="MONITOR against size",
        kind="number",
        x_axis="parameters in billions",
        y_axis="MONITOR",
        curves=tuple(
            curve(name, [point(place) for place in places])
            for name, places in zip(_family_names(list(lines)), lines.values(), strict=True)
        ),
        note="Each run over the relations in which it has a valid anchor; whiskers are 95 % "
        "intervals over facts.",
    )


def _family_names(keys: list[Family]) -> list[str]:
    """A name for each line: its family, with the stage where a family has two, then a number."""
    families = [family for family, _, _ in keys]
    names: list[str] = []
    for family, stage, _ in keys:
        name = f"{family} ({stage})" if families.count(family) > 1 and stage else family
        same = sum(other == name or other.startswith(f"{name}, ") for other in names)
        names.append(f"{name}, setting {same + 1}" if same else name)
    return names


def _fewer_frames(of: Reliability) -> Curves | None:
    """MONITOR from the first frames against that from all, a point for each relation of a run."""
    ablation, first = of.ablation, of.ablation.first
    if first is None:
        return None
    curves = []
    for i in of.order:
        own = ablation.full.measured(i).tolist()
        x, y = (tuple(m.values[i, own].tolist()) for m in (ablation.full, first.monitor))
        if own:
            curves.append(Curve(name=of.names[i], x=x, y=y, joined=False))
    return Curves(
        id="frames",
        title=f"MONITOR from the first {ablation.frames} frames against all",
        kind="number",
        x_axis="MONITOR from all frames",
        y_axis=f"from the first {ablation.frames}",
        curves=tuple(curves),
        diagonal=True,
        note="A point is a relation in a run.",
    )
