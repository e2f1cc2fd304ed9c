"""Figures about what runs may have learnt from training facts. One with nothing to show is None."""

from __future__ import annotations

from collections.abc import Mapping

from sonde.analysis.learning.numbers import RELATIONS
from sonde.analysis.learning.sheets import Learning
from sonde.core.reports import Bars, Curve, Curves, DotPlot, Estimate, Figure, Series, Strip

Estimates = Mapping[str, Estimate]

MISSING = Estimate.not_measured()


def figures(found: Learning, estimates: Estimates) -> tuple[Figure, ...]:
    """All that have something to show."""
    made = (
        _accuracy(found, estimates),
        _subsets(found, estimates),
        _majority(found, estimates),
        _gains(found, estimates),
    )
    return tuple(figure for figure in made if figure is not None)


def _accuracy(found: Learning, estimates: Estimates) -> Bars:
    """Accuracy in two parts: by the commonest training object, and by others."""
    parts = {
        "by the commonest training object": "majority.right",
        "by other objects": "majority.other_right",
    }
    return Bars(
        id="accuracy-parts",
        title="Accuracy, and how much of it is the commonest training object",
        axis="share of facts answered right, mean over relations",
        labels=found.names,
        series=tuple(
            _series(found, estimates, name, f"{key}.{RELATIONS}") for name, key in parts.items()
        ),
        note="The two bars of a run add up to its accuracy in the relations that have training "
        "facts. Whiskers are 95 % intervals.",
    )


def _subsets(found: Learning, estimates: Estimates) -> DotPlot | None:
    """Accuracy on easy and on hard facts."""
    if not found.split:
        return None
    return DotPlot(
        id="easy-hard",
        title="Accuracy on easy and on hard facts",
        axis="share of facts answered right, mean over relations",
        labels=found.names,
        series=tuple(
            _series(found, estimates, subset, f"{subset}.accuracy.{RELATIONS}")
            for subset in ("easy", "hard")
        ),
        note=f"Easy: answered right by {' or '.join(found.easy)}, which saw nothing but training "
        "facts; they are right on all easy facts together and on no hard one.",
    )


def _majority(found: Learning, estimates: Estimates) -> Strip | None:
    """How often the commonest training object is answered, a dot for each relation."""
    taught = [sheet for sheet in found.sheets if sheet.lesson.majority]
    if not taught:
        return None
    rows: dict[str, list[tuple[str, float]]] = {}
    keys = {"facts trained on": "majority.train", "facts asked": "majority.test"}
    for label, key in (keys | dict.fromkeys(found.names, "majority.answered")).items():
        for sheet in taught:
            end = "" if label in keys else f".run.{label}"
            value = estimates.get(f"{key}.relation.{sheet.id}{end}", MISSING).value
            if value is not None:
                rows.setdefault(label, []).append((_name(sheet.id, sheet.lesson.majority), value))
    return Strip(
        id="majority",
        title="How often the commonest training object is answered",
        axis="share of the facts of a relation",
        labels=tuple(rows),
        values=tuple(tuple(value for _, value in row) for row in rows.values()),
        names=tuple(tuple(name for name, _ in row) for row in rows.values()),
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


def _series(found: Learning, estimates: Estimates, name: str, key: str) -> Series:
    values = tuple(estimates.get(f"{key}.run.{run}", MISSING) for run in found.names)
    return Series(name=name, values=values)


def _name(relation: str, majority: str) -> str:
    return f"{relation}: {majority}"
