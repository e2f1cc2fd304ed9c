"""Figures about what runs may have learnt from training facts. One with nothing to show is None."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.analysis.learning.numbers import RELATIONS
from sonde.analysis.learning.sheets import Learning
from sonde.core.reports import Curve, Curves, DotPlot, Estimates, Figure, Metric, Series, Strip
from sonde.reporting.build.figures import bars, strip


def figures(found: Learning, estimates: Estimates) -> Iterator[Figure | None]:
    """All of them; an estimate that was not made is taken as not measured."""
    yield bars(
        estimates,
        {name: f"run.{name}" for name in found.names},
        {
            "by the commonest training object": Metric(f"majority.right.{RELATIONS}", ""),
            "by other objects": Metric(f"majority.other_right.{RELATIONS}", ""),
        },
        id="accuracy-parts",
        title="Accuracy, and how much of it is the commonest training object",
        axis="share of facts answered right, mean over relations",
        note="The two bars of a run add up to its accuracy in the relations that have training "
        "facts. Whiskers are 95 % intervals.",
    )
    yield _subsets(found, estimates)
    yield _majority(found, estimates)
    yield _gains(found, estimates)


def _subsets(found: Learning, estimates: Estimates) -> DotPlot | None:
    """Accuracy on easy and on hard facts."""
    if not found.split:
        return None

    def series(subset: str) -> Series:
        key = f"{subset}.accuracy.{RELATIONS}.run"
        return Series(name=subset, values=tuple(estimates[f"{key}.{run}"] for run in found.names))

    return DotPlot(
        id="easy-hard",
        title="Accuracy on easy and on hard facts",
        axis="share of facts answered right, mean over relations",
        labels=found.names,
        series=(series("easy"), series("hard")),
        note=f"Easy: answered right by {' or '.join(found.easy)}, which saw nothing but training "
        "facts; they are right on all easy facts together and on no hard one.",
    )


def _majority(found: Learning, estimates: Estimates) -> Strip:
    """How often the commonest training object is answered, a dot for each relation."""
    taught = [sheet for sheet in found.sheets if sheet.lesson.majority]

    def dots(key: str, end: str = "") -> list[tuple[float, str]]:
        values = ((estimates[f"{key}.relation.{s.id}{end}"].value, s) for s in taught)
        return [(v, f"{s.id}: {s.lesson.majority}") for v, s in values if v is not None]

    return strip(
        [
            ("facts trained on", dots("majority.train")),
            ("facts asked", dots("majority.test")),
            *((name, dots("majority.answered", f".run.{name}")) for name in found.names),
        ],
        id="majority",
        title="How often the commonest training object is answered",
        axis="share of the facts of a relation",
        note="A dot for each relation. The first two rows: how often it is the object of a fact.",
    )


def _gains(found: Learning, estimates: Estimates) -> Curves | None:
    """The gain of every run in each relation against that of a control."""
    control = next((name for name in found.easy if name != found.base(name)), None)
    if control is None:
        return None
    curves = []
    for name in found.names:
        if name in (*found.easy, found.base(name)):
            continue
        ids = [sheet.id for sheet in found.having(name, control, found.base(name))]
        points = [
            (estimates[f"gain.relation.{id}.run.{control}"].value or 0.0, own)
            for id in ids
            if (own := estimates[f"gain.relation.{id}.run.{name}"]).value is not None
        ]
        if points and found.base(name) == found.base(control):
            curves.append(
                Curve(
                    name=name,
                    x=tuple(x for x, _ in points),
                    y=tuple(own.value or 0.0 for _, own in points),
                    sizes=tuple(own.n for _, own in points),
                    low=tuple(own.ends[0] for _, own in points),
                    high=tuple(own.ends[1] for _, own in points),
                    joined=False,
                )
            )
    if not curves:
        return None
    base = found.base(control)
    return Curves(
        id="gains",
        title=f"Gains over {base} by relation, against those of {control}",
        x_axis=f"accuracy of {control} less that of {base}",
        y_axis=f"accuracy of the run less that of {base}",
        curves=tuple(curves),
        diagonal=True,
        note=f"A dot for each relation. On the diagonal a run gains what {control} gains, which "
        "knows the training facts alone; above it, more.",
    )
