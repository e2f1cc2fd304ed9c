"""Pictures of a lab's report: how far estimates are from the truth, and what they find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sonde.core.reports import Bars, Curve, Curves, DotPlot, Figure, Series
from sonde.lab.evaluation.asked import ANY
from sonde.lab.evaluation.judging import Group
from sonde.lab.evaluation.measures import BASE, CAUSES
from sonde.lab.report.tables import any_note
from sonde.lab.report.words import MARKED, key, marked, titled
from sonde.lab.worlds.truth import Bools, Trial

SPREAD = 0.5
"""Of the distance between two labels: how far curves stand apart, so that whiskers are seen."""


def figures(groups: Sequence[Group], timeline: Sequence[Trial]) -> tuple[Figure, ...]:
    """All pictures: shares, ranking, recall, false discoveries, and knowledge over training."""
    return tuple(_figures(groups, timeline))


def _figures(groups: Sequence[Group], timeline: Sequence[Trial]) -> Iterator[Figure]:
    for kind in dict.fromkeys(group.kind for group in groups):
        yield _true(kind, [g for g in groups if g.kind == kind], timeline)
    for make in (_off, _auroc, _recall, _learnt_recall, _causes):
        for group in groups:
            if (made := make(group, groups)) is not None:
                yield made
    yield from _training(groups, timeline)


def _true(kind: str, groups: Sequence[Group], timeline: Sequence[Trial]) -> Curves:
    """Estimated against stored share, a point for each model and checkpoint."""
    trials = [one.trial for group in groups for one in group.models]
    trials += [trial for trial in timeline if trial.kind == kind and not trial.final]
    names = dict.fromkeys(name for group in groups for name in group.own)
    curves = []
    for name in names:
        places = [place for trial in trials for place in _place(trial, name)]
        x, y = ([place[i] for place in places] for i in (0, 1))
        curves.append(Curve(name=name, x=tuple(x), y=tuple(y), joined=False))
    return Curves(
        id=f"shares-{kind}",
        title=f"{kind.capitalize()} models: estimated against true knowledge",
        x_axis="share of facts that the model has stored",
        y_axis="share that the estimator says is known",
        curves=tuple(curves),
        diagonal=True,
        note="A point for each model"
        + (" and checkpoint" if any(t.kind == kind and not t.final for t in timeline) else "")
        + ". On the diagonal an estimate is right; above it, it flatters.",
    )


def _off(group: Group, groups: Sequence[Group]) -> DotPlot:
    """How far the estimated shares are from both truths."""
    truths = (("taught", "less share taught"), ("stored", "less share stored"))
    return DotPlot(
        id=f"off-{key(group)}",
        title=f"{titled(group, groups)}: how far the estimated share is off",
        axis="estimated share less the true one",
        labels=tuple(marked(group, name) for name in group.names),
        series=tuple(
            Series(
                name=label,
                values=tuple(group.of(f"share.less_{truth}", name) for name in group.names),
            )
            for truth, label in truths
        ),
        note=f"At 0 an estimate is right; above 0 it flatters. {MARKED}",
    )


def _auroc(group: Group, groups: Sequence[Group]) -> DotPlot:
    return DotPlot(
        id=f"auroc-{key(group)}",
        title=f"{titled(group, groups)}: how well scores tell known facts from others",
        kind="number",
        axis="AUROC: 1 is perfect, 0.5 useless",
        labels=tuple(marked(group, name) for name in group.names),
        series=tuple(
            Series(
                name=truth, values=tuple(group.of(f"auroc.{truth}", name) for name in group.names)
            )
            for truth in ("taught", "stored")
        ),
        note=MARKED,
    )


def _recall(group: Group, groups: Sequence[Group]) -> Curves | None:
    """What is found by how often the text states it, a curve for each estimator."""
    if len(group.ladder) < 2 or not group.plain:
        return None
    return _stairs(
        group,
        (*([ANY] if group.finders else []), *group.plain),
        id=f"recall-{key(group)}",
        title=f"{titled(group, groups)}: facts found, by how often the text states them",
        note=any_note(group),
    )


def _learnt_recall(group: Group, groups: Sequence[Group]) -> Curves | None:
    """The same of what learns, beside its controls."""
    learnt = [name for name in group.names if name in group.learners | group.controls]
    if len(group.ladder) < 2 or not learnt:
        return None
    return _stairs(
        group,
        (*(name for name in (BASE,) if name in group.names), *learnt),
        id=f"recall-learning-{key(group)}",
        title=f"{titled(group, groups)}: the same, of what learns from other facts",
        note=MARKED,
    )


def _stairs(group: Group, names: Sequence[str], *, id: str, title: str, note: str) -> Curves:
    return Curves(
        id=id,
        title=title,
        x_axis="times that the text states the fact; 0: not taught",
        y_axis="share held to be known",
        curves=tuple(_ladder(group, name, k, len(names)) for k, name in enumerate(names)),
        x_kind="number",
        x_labels=tuple(map(str, group.ladder)),
        note=f"{note} At 0 everything found is false. Points of a step stand side by side; a click "
        "on a name hides its curve.",
    )


def _ladder(group: Group, name: str, k: int, count: int) -> Curve:
    found = [(i, group.of(f"recall.exposure.{step}", name)) for i, step in enumerate(group.ladder)]
    kept = [(i, e) for i, e in found if e.value is not None]
    shift = SPREAD * (k / (count - 1) - 0.5) if count > 1 else 0.0
    return Curve(
        name=marked(group, name),
        x=tuple(i + shift for i, _ in kept),
        y=tuple(e.value or 0.0 for _, e in kept),
        low=tuple(e.ends[0] for _, e in kept),
        high=tuple(e.ends[1] for _, e in kept),
    )


def _causes(group: Group, groups: Sequence[Group]) -> Bars | None:
    causes = [cause for cause in CAUSES if group.measured(f"false.{cause}")]
    if not causes:
        return None
    return Bars(
        id=f"false-{key(group)}",
        title=f"{titled(group, groups)}: untaught facts held to be known, by cause",
        axis="share of untaught facts held to be known",
        labels=tuple(marked(group, name) for name in group.names),
        series=tuple(
            Series(
                name=CAUSES[cause],
                values=tuple(group.of(f"false.{cause}", name) for name in group.names),
            )
            for cause in causes
        ),
        note=MARKED,
    )


def _training(groups: Sequence[Group], timeline: Sequence[Trial]) -> Iterator[Curves]:
    """Knowledge over training, a picture for each model with checkpoints."""
    finals = [one.trial for group in groups for one in group.models]
    for kind, world, seed in dict.fromkeys((t.kind, t.world, t.seed) for t in timeline):
        own = [t for t in timeline if (t.kind, t.world, t.seed) == (kind, world, seed)]
        seen = {trial.step for trial in own}
        own += [
            t for t in finals if (t.kind, t.world, t.seed) == (kind, world, seed)
            and t.step not in seen
        ]  # fmt: skip
        yield _over_steps(sorted(own, key=lambda t: t.step), f"{kind}-{world}-{seed}")


def _over_steps(trials: Sequence[Trial], id: str) -> Curves:
    names = dict.fromkeys(v.estimator for t in trials for v in t.verdicts if not v.control)
    truths = [(t.step, *_truths(t)) for t in trials]
    curves = [
        Curve(name="stored (truth)", x=_column(truths, 0), y=_column(truths, 2)),
        Curve(name="taught (truth)", x=_column(truths, 0), y=_column(truths, 1)),
    ]
    for name in names:
        places = [(t.step, y) for t in trials for _, y in _place(t, name)]
        curves.append(Curve(name=name, x=_column(places, 0), y=_column(places, 1)))
    return Curves(
        id=f"training-{id}",
        title=f"{trials[0].kind.capitalize()} model of {trials[0].world}: knowledge over training",
        x_axis="training steps",
        y_axis="share known",
        curves=tuple(curves),
        x_kind="number",
        note="Stored: what the model gives back in a text it was taught the fact in, at each "
        "checkpoint. Taught: what stands in the text, read to the end.",
    )


def _column(rows: Sequence[tuple[float, ...]], i: int) -> tuple[float, ...]:
    return tuple(row[i] for row in rows)


def _place(trial: Trial, name: str) -> list[tuple[float, float]]:
    """The stored and the estimated share of an estimator's own facts."""
    for v in trial.verdicts:
        if v.estimator == name and len(v.facts):
            stored = {one.taught.fact: one.stored for one in trial.known}
            return [(float(np.mean([stored[f] for f in v.facts])), float(v.counts.mean()))]
    return []


def _truths(trial: Trial) -> tuple[float, float]:
    """The taught and the stored share of the facts that any estimator was asked."""
    asked = {fact for v in trial.verdicts for fact in v.facts}
    own = [one for one in trial.known if one.taught.fact in asked] or list(trial.known)
    taught: Bools = np.array([one.taught.exposure > 0 for one in own])
    return float(taught.mean()), float(np.mean([one.stored for one in own]))
