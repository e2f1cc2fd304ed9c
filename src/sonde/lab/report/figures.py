"""Pictures of a lab's report: how far estimates are from the truth, and what they find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sonde.core.reports import Curve, Curves, Estimates, Figure, Metric
from sonde.lab.evaluation.judging import Group
from sonde.lab.evaluation.measures import BASE, CAUSES
from sonde.lab.evaluation.verdicts import ANY
from sonde.lab.report.words import MARKED, any_note, key, marked, places, titled
from sonde.lab.worlds.truth import Trial
from sonde.reporting.build.figures import bars, curve, dots

SPREAD = 0.5
"""Of the distance between two labels: how far curves stand apart, so that whiskers are seen."""


def figures(
    groups: Sequence[Group], estimates: Estimates, timeline: Sequence[Trial]
) -> Iterator[Figure | None]:
    """All pictures: shares, ranking, recall, false discoveries, and knowledge over training."""
    for kind in dict.fromkeys(group.kind for group in groups):
        yield _true(kind, [g for g in groups if g.kind == kind], timeline)
    titles = {key(group): titled(group, groups) for group in groups}
    for group in groups:
        yield dots(
            estimates,
            places(group),
            {f"less share {truth}": Metric(f"share.less_{truth}", "") for truth in TRUTHS},
            id=f"off-{key(group)}",
            title=f"{titles[key(group)]}: how far the estimated share is off",
            axis="estimated share less the true one",
            note=f"At 0 an estimate is right; above 0 it flatters. {MARKED}",
        )
    for group in groups:
        yield dots(
            estimates,
            places(group),
            {truth: Metric(f"auroc.{truth}", "", "number") for truth in TRUTHS},
            id=f"auroc-{key(group)}",
            title=f"{titles[key(group)]}: how well scores tell known facts from others",
            axis="AUROC: 1 is perfect, 0.5 useless",
            note=MARKED,
        )
    for make in (_recall, _learnt_recall):
        for group in groups:
            yield make(group, titles[key(group)])
    for group in groups:
        yield bars(
            estimates,
            places(group),
            {
                words: Metric(f"false.{cause}", "")
                for cause, words in CAUSES.items()
                if group.measured(f"false.{cause}")
            },
            id=f"false-{key(group)}",
            title=f"{titles[key(group)]}: untaught facts held to be known, by cause",
            axis="share of untaught facts held to be known",
            note=MARKED,
        )
    yield from _training(groups, timeline)


TRUTHS = ("taught", "stored")


def _true(kind: str, groups: Sequence[Group], timeline: Sequence[Trial]) -> Curves:
    """Estimated against stored share, a point for each model and checkpoint."""
    checkpoints = [trial for trial in timeline if trial.kind == kind and not trial.final]
    trials = [one.trial for group in groups for one in group.models] + checkpoints
    names = dict.fromkeys(name for group in groups for name in group.own)
    points = {name: [point for trial in trials for point in _point(trial, name)] for name in names}
    return Curves(
        id=f"shares-{kind}",
        title=f"{kind.capitalize()} models: estimated against true knowledge",
        x_axis="share of facts that the model has stored",
        y_axis="share that the estimator says is known",
        curves=tuple(_line(name, own, joined=False) for name, own in points.items()),
        diagonal=True,
        note=f"A point for each model{' and checkpoint' if checkpoints else ''}. On the diagonal "
        "an estimate is right; above it, it flatters.",
    )


def _recall(group: Group, title: str) -> Curves | None:
    """What is found by how often the text states it, a curve for each estimator."""
    if len(group.ladder) < 2 or not group.plain:
        return None
    return _stairs(
        group,
        (*([ANY] if group.finders else []), *group.plain),
        id=f"recall-{key(group)}",
        title=f"{title}: facts found, by how often the text states them",
        note=any_note(group),
    )


def _learnt_recall(group: Group, title: str) -> Curves | None:
    """The same of what learns, beside its controls."""
    learnt = [name for name in group.names if name in group.learners | group.controls]
    if len(group.ladder) < 2 or not learnt:
        return None
    return _stairs(
        group,
        (*(name for name in (BASE,) if name in group.names), *learnt),
        id=f"recall-learning-{key(group)}",
        title=f"{title}: the same, of what learns from other facts",
        note=MARKED,
    )


def _stairs(group: Group, names: Sequence[str], *, id: str, title: str, note: str) -> Curves:
    def stairs(k: int, name: str) -> Curve:
        shift = SPREAD * (k / (len(names) - 1) - 0.5) if len(names) > 1 else 0.0
        found = (group.of(f"recall.exposure.{step}", name) for step in group.ladder)
        return curve(marked(group, name), ((i + shift, e) for i, e in enumerate(found)))

    return Curves(
        id=id,
        title=title,
        x_axis="times that the text states the fact; 0: not taught",
        y_axis="share held to be known",
        curves=tuple(stairs(k, name) for k, name in enumerate(names)),
        x_kind="number",
        x_labels=tuple(map(str, group.ladder)),
        note=f"{note} At 0 everything found is false. Points of a step stand side by side; a click "
        "on a name hides its curve.",
    )


def _training(groups: Sequence[Group], timeline: Sequence[Trial]) -> Iterator[Curves]:
    """Knowledge over training, a picture for each model with checkpoints."""
    finals = [one.trial for group in groups for one in group.models]
    for model in dict.fromkeys((t.kind, t.world, t.seed) for t in timeline):
        # a final model may stand in the timeline too: the first of a step counts
        own = {
            t.step: t for t in reversed([*timeline, *finals]) if (t.kind, t.world, t.seed) == model
        }
        yield _over_steps([own[step] for step in sorted(own)], "-".join(map(str, model)))


def _over_steps(trials: Sequence[Trial], id: str) -> Curves:
    names = dict.fromkeys(v.estimator for t in trials for v in t.verdicts if not v.control)
    truths = [(t.step, *_truths(t)) for t in trials]
    return Curves(
        id=f"training-{id}",
        title=f"{trials[0].kind.capitalize()} model of {trials[0].world}: knowledge over training",
        x_axis="training steps",
        y_axis="share known",
        curves=(
            _line("stored (truth)", [(step, stored) for step, _, stored in truths]),
            _line("taught (truth)", [(step, taught) for step, taught, _ in truths]),
            *(_line(n, [(t.step, y) for t in trials for _, y in _point(t, n)]) for n in names),
        ),
        x_kind="number",
        note="Stored: what the model gives back in a text it was taught the fact in, at each "
        "checkpoint. Taught: what stands in the text, read to the end.",
    )


def _line(name: str, points: Sequence[tuple[float, float]], *, joined: bool = True) -> Curve:
    x, y = (tuple(point[i] for point in points) for i in (0, 1))
    return Curve(name=name, x=x, y=y, joined=joined)


def _point(trial: Trial, name: str) -> list[tuple[float, float]]:
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
    taught = np.mean([one.taught.exposure > 0 for one in own])
    return float(taught), float(np.mean([one.stored for one in own]))
