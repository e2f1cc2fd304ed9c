"""Figures of MONITOR. Knows estimates and outcomes, nothing of prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from sonde.core.reports import Curve, Curves, DotPlot, Estimate, Figure, Histogram, Series, Strip
from sonde.metrics.distance import SOLID
from sonde.probes.monitor.numbers import table_of
from sonde.probes.monitor.tally import Outcomes

Estimates = Mapping[str, Estimate]

POINTS = 2_000


def figures(estimates: Estimates, outcomes: Outcomes) -> tuple[Figure, ...]:
    """Those figures that have something to show."""
    return tuple(_figures(estimates, outcomes))


def _figures(estimates: Estimates, outcomes: Outcomes) -> Iterator[Figure]:
    known = outcomes.monitored
    if known.counted().any():
        yield _by_relation(estimates, outcomes)
        yield _distances(outcomes)
    if len(known.facts):
        yield _accuracies(outcomes)
    if known.valid[known.rule].any():
        yield _anchors(outcomes)


def _by_relation(estimates: Estimates, outcomes: Outcomes) -> DotPlot:
    measured = [
        (estimates[f"monitor.relation.{r.id}"].value, r)
        for r in outcomes.monitored.relations
        if estimates[f"monitor.relation.{r.id}"].value is not None
    ]
    ordered = [r for _, r in sorted(measured, key=lambda entry: (entry[0] or 0.0, entry[1].id))]
    return DotPlot(
        id="monitor-by-relation",
        title="MONITOR of every relation, with its two parts",
        kind="number",
        axis="smaller is more reliable",
        labels=tuple(f"{r.id} {r.label}" for r in ordered),
        series=tuple(
            Series(name=name, values=tuple(estimates[f"{key}.relation.{r.id}"] for r in ordered))
            for name, key in (("MONITOR", "monitor"), ("PFD", "pfd"), ("IRD", "ird"))
        ),
        note="Whiskers are 95 % intervals. PFD and IRD are distances of probabilities; MONITOR "
        "divides by that of the anchors.",
    )


def _distances(outcomes: Outcomes) -> Curves:
    known = outcomes.monitored
    places = np.flatnonzero(known.counted())
    step = -(-len(places) // POINTS)
    pfd, ird = known.pfd()[places[::step]], known.ird()[places[::step]]
    some = f" Every {step}th fact is drawn." if step > 1 else ""
    return Curves(
        id="framing-against-interference",
        title="What moves each fact: other frames or wrong names",
        kind="number",
        x_axis="PFD, distance of other frames",
        y_axis="IRD, distance after wrong names",
        curves=(Curve(name="fact", x=tuple(pfd.tolist()), y=tuple(ird.tolist()), joined=False),),
        diagonal=True,
        note=f"One dot a fact with a valid anchor; near the corner nothing moves it.{some}",
    )


def _accuracies(outcomes: Outcomes) -> Strip:
    """Accuracy of every prompt: the frames, and the base frame after each wrong name."""
    known = outcomes.monitored
    everyone = np.ones(len(known.facts), dtype=np.bool_)
    labels, values, names, groups = [], [], [], []
    for number, relation in enumerate(known.relations):
        table = table_of(outcomes, number, everyone)
        frames = len(known.frames[number])
        rates = np.nanmean(table, axis=0).tolist()
        labels.append(f"{relation.id} {relation.label}")
        values.append(tuple(rates))
        asked = [t.text.replace("[Y].", "").strip() for t in known.frames[number]]
        told = [f"wrong name {m + 1}" for m in range(len(rates) - frames)]
        names.append((*asked, *told))
        groups.append(("frame",) * frames + ("after a wrong name",) * len(told))
    return Strip(
        id="accuracy-by-prompt",
        title="Accuracy with every prompt",
        axis="accuracy over all facts of the relation",
        labels=tuple(labels),
        values=tuple(values),
        names=tuple(names),
        groups=tuple(groups),
        note="One dot a prompt: frames with nothing told, and the base frame after wrong names.",
    )


def _anchors(outcomes: Outcomes) -> Histogram:
    known = outcomes.monitored
    anchors = known.anchors()[known.valid[known.rule]]
    counts, edges = np.histogram(anchors, bins=20, range=(0.0, 1.0))
    return Histogram(
        id="anchor-probability",
        title="How likely the valid anchors are",
        kind="number",
        axis="probability of the object after its own name",
        edges=tuple(map(float, edges)),
        counts=tuple(map(int, counts)),
        marks=(("solid", SOLID),),
    )
