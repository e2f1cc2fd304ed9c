"""Pictures of a lab's report: how far estimates are from the truth, and what they find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from polars import Series, col

from sonde.core.reports import Curve, Curves, Estimates, Figure, Metric
from sonde.lab.evaluation.judging import ANY, Group, Trial
from sonde.lab.evaluation.measures import BASE, CAUSES, TRUTHS
from sonde.lab.report.tables import MARKED, any_note
from sonde.reports.legacy import curve, dot_plot

SPREAD = 0.5
"""Of the distance between two labels: how far curves stand apart, so that whiskers are seen."""

Point = tuple[float, float]


def figures(
    groups: Sequence[Group], estimates: Estimates, timeline: Sequence[Trial]
) -> Iterator[Figure | None]:
    """All pictures: shares, ranking, recall, false discoveries, and knowledge over training."""
    for kind in dict.fromkeys(group.kind for group in groups):
        yield _true(kind, [g for g in groups if g.kind == kind], timeline)
    for group in groups:
        yield dot_plot(
            estimates,
            group.places(),
            {f"less share {truth}": Metric(f"share.less_{truth}", "") for truth in TRUTHS},
            id=f"off-{group.key}",
            title=f"{group.title}: how far the estimated share is off",
            axis="estimated share less the true one",
            note=f"At 0 an estimate is right; above 0 it flatters. {MARKED}",
        )
    for group in groups:
        yield dot_plot(
            estimates,
            group.places(),
            {truth: Metric(f"auroc.{truth}", "", "number") for truth in TRUTHS},
            id=f"auroc-{group.key}",
            title=f"{group.title}: how well scores tell known facts from others",
            axis="AUROC: 1 is perfect, 0.5 useless",
            note=MARKED,
        )
    yield from map(_recall, groups)
    yield from map(_learnt_recall, groups)
    for group in groups:
        causes = {part.words: Metric(f"false.{cause}", "") for cause, part in CAUSES.items()}
        yield dot_plot(
            estimates,
            group.places(),
            {words: metric for words, metric in causes.items() if group.measured(metric.id)},
            id=f"false-{group.key}",
            title=f"{group.title}: untaught facts held to be known, by cause",
            axis="share of untaught facts held to be known",
            note=MARKED,
        )
    yield from _training(groups, timeline)


def _true(kind: str, groups: Sequence[Group], timeline: Sequence[Trial]) -> Curves:
    """Estimated against stored share, a point for each model and checkpoint."""
    checkpoints = [trial for trial in timeline if trial.kind == kind and not trial.final]
    trials = [trial for group in groups for trial in group.trials] + checkpoints
    names = dict.fromkeys(name for group in groups for name in group.estimators)
    points = {name: [point for trial in trials for point in _shares(trial, name)] for name in names}
    return Curves(
        id=f"shares-{kind}",
        title=f"{kind.capitalize()} models: estimated against true knowledge",
        x_axis="share of facts that the model has stored",
        y_axis="share that the estimator says is known",
        curves=tuple(_line(name, points[name], joined=False) for name in names),
        diagonal=True,
        note=f"A point for each model{' and checkpoint' if checkpoints else ''}. On the diagonal "
        "an estimate is right; above it, it flatters.",
    )


def _recall(group: Group) -> Curves | None:
    """What is found by how often the text states it, a curve for each estimator."""
    names = [*([ANY] if group.finders else []), *group.plain]
    title = "facts found, by how often the text states them"
    return _stairs(group, names, "recall", title, any_note(group)) if group.plain else None


def _learnt_recall(group: Group) -> Curves | None:
    """The same of what learns, beside its controls."""
    learnt = [name for name in group.names if name not in group.plain]
    names = [*(name for name in group.names if name == BASE), *learnt]
    title = "the same, of what learns from other facts"
    return _stairs(group, names, "recall-learning", title, MARKED) if learnt else None


def _stairs(group: Group, names: Sequence[str], id: str, title: str, note: str) -> Curves | None:
    if len(group.ladder) < 2:
        return None

    def stairs(k: int, name: str) -> Curve:
        shift = SPREAD * (k / (len(names) - 1) - 0.5) if len(names) > 1 else 0.0
        found = (group.of(f"recall.exposure.{step}", name) for step in group.ladder)
        return curve(group.marked(name), ((i + shift, e) for i, e in enumerate(found)))

    return Curves(
        id=f"{id}-{group.key}",
        title=f"{group.title}: {title}",
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
    finals = [trial for group in groups for trial in group.trials]
    for model in dict.fromkeys((t.kind, t.world, t.seed) for t in timeline):
        # a final model may stand in the timeline too: the first of a step counts
        steps = {
            t.step: t for t in reversed([*timeline, *finals]) if (t.kind, t.world, t.seed) == model
        }
        yield _over_steps([steps[step] for step in sorted(steps)], "-".join(map(str, model)))


def _over_steps(trials: Sequence[Trial], id: str) -> Curves:
    names = dict.fromkeys(v.estimator for t in trials for v in t.verdicts if not v.control)
    return Curves(
        id=f"training-{id}",
        title=f"{trials[0].kind.capitalize()} model of {trials[0].world}: knowledge over training",
        x_axis="training steps",
        y_axis="share known",
        curves=(
            _line("stored (truth)", [(t.step, _known(t, "stored")) for t in trials]),
            _line("taught (truth)", [(t.step, _known(t, "taught")) for t in trials]),
            *(_line(n, [(t.step, y) for t in trials for _, y in _shares(t, n)]) for n in names),
        ),
        x_kind="number",
        note="Stored: what the model gives back in a text it was taught the fact in, at each "
        "checkpoint. Taught: what stands in the text, read to the end.",
    )


def _line(name: str, points: Sequence[Point], *, joined: bool = True) -> Curve:
    x, y = (tuple(point[i] for point in points) for i in (0, 1))
    return Curve(name=name, x=x, y=y, joined=joined)


def _shares(trial: Trial, name: str) -> list[Point]:
    """The stored and the estimated share of an estimator's own facts."""
    asked = [trial.beside(v) for v in trial.verdicts if v.estimator == name and len(v.frame)]
    return [(_mean(frame["stored"]), _mean(frame["counts"])) for frame in asked]


def _known(trial: Trial, truth: str) -> float:
    """The taught or the stored share of the facts that any estimator was asked."""
    asked = {fact for v in trial.verdicts for fact in v.frame["fact"]} or set(trial.facts["fact"])
    facts = trial.facts.with_columns(taught=col("exposure") > 0)
    return _mean(facts.filter(col("fact").is_in([*asked]))[truth])


def _mean(values: Series) -> float:
    return float(values.to_numpy().mean())
