"""Figures of MONITOR. Knows estimates and outcomes, nothing of prompts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sonde.core.reports import Curve, Curves, Estimates, Figure, Strip
from sonde.metrics.distance import IRD, MONITOR, PFD, SOLID
from sonde.probes.monitor.judge import Outcomes
from sonde.probes.monitor.numbers import table_of
from sonde.reporting.build.figures import Dot, distribution, dots_by_relation, strip
from sonde.reporting.build.parts import shown
from sonde.reporting.build.tables import titled

POINTS = 2_000


def figures(estimates: Estimates, outcomes: Outcomes) -> tuple[Figure, ...]:
    """Those figures that have something to show."""
    known = outcomes.monitored
    return shown(
        (
            dots_by_relation(
                estimates,
                known.relations,
                {metric.label: metric for metric in (MONITOR, PFD, IRD)},
                id="monitor-by-relation",
                title="MONITOR of every relation, with its two parts",
                axis="smaller is more reliable",
                note="Whiskers are 95 % intervals. PFD and IRD are distances of probabilities; "
                "MONITOR divides by that of the anchors.",
            ),
            _distances(outcomes),
            _accuracies(outcomes),
            distribution(
                known.anchors()[known.valid[known.rule]],
                id="anchor-probability",
                title="How likely the valid anchors are",
                unit="number",
                axis="probability of the object after its own name",
                marks={"solid": SOLID},
            ),
        )
    )


def _distances(outcomes: Outcomes) -> Curves:
    known = outcomes.monitored
    places = np.flatnonzero(known.counted())
    step = max(1, -(-len(places) // POINTS))
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
    return strip(
        ((titled(r), list(_dots(outcomes, i))) for i, r in enumerate(known.relations)),
        id="accuracy-by-prompt",
        title="Accuracy with every prompt",
        axis="accuracy over all facts of the relation",
        note="One dot a prompt: frames with nothing told, and the base frame after wrong names.",
    )


def _dots(outcomes: Outcomes, relation: int) -> Iterator[Dot]:
    known = outcomes.monitored
    everyone = np.ones(len(known.facts), dtype=np.bool_)
    rates = np.nanmean(table_of(outcomes, relation, everyone), axis=0).tolist()
    frames = known.frames[relation]
    for rate, template in zip(rates, frames, strict=False):
        yield rate, template.text.replace("[Y].", "").strip(), "frame"
    for number, rate in enumerate(rates[len(frames) :], 1):
        yield rate, f"wrong name {number}", "after a wrong name"
