"""The report of runs under several prompts: what they may have learnt from training facts.

Knows judged facts, nothing of files or models.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from sonde.analysis.controls import against
from sonde.analysis.learning.facts import Learning
from sonde.analysis.learning.numbers import (
    SUBSETS,
    Often,
    answered_too_often,
    drawn_facts,
    elicited,
    numbers,
)
from sonde.analysis.learning.tables import GAIN, METRICS, split_note, tables
from sonde.analysis.runs import with_counts
from sonde.core.reports import Curves, Estimate, Estimates, Figure, Headline, Metric, Report, Strip
from sonde.core.words import in_points, listed, written
from sonde.metrics.estimates import FACTS, RELATIONS
from sonde.reporting.build.figures import bars, curve, dots, strip
from sonde.reporting.build.parts import shown
from sonde.reporting.catalogue import used


def learning_report(runs: Learning, dataset: str, seed: int = 0) -> Report:
    """Everything that can be said about what the runs may have learnt."""
    estimates = numbers(runs, seed)
    often = answered_too_often(runs, seed)
    measured = defaultdict(Estimate.not_measured, estimates)
    return Report(
        title=f"What {len(runs.methods)} runs on {dataset} may have learnt",
        summary=_summary(runs),
        metrics=used(METRICS, estimates),
        estimates=estimates,
        counts=_counts(runs),
        headlines=_headlines(runs),
        tables=shown(*tables(runs, measured, often, drawn_facts(runs, seed))),
        figures=shown(*_figures(runs, measured)),
        findings=tuple(_findings(runs, estimates, often)),
        notes=tuple(_notes(runs)),
    )


def _counts(runs: Learning) -> dict[str, int]:
    easy = int(runs.split["easy"].sum())
    return {
        "runs": len(runs.methods),
        "relations": len(runs.lessons),
        "facts": len(runs.frame),
        "easy_facts": easy,
        "hard_facts": len(runs.split) - easy,
        "relations_without_training_facts": sum(not s.majority for s in runs.lessons.values()),
        **{f"facts_left_out.run.{name}": count for name, count in _left_out(runs).items()},
    }


def _left_out(runs: Learning) -> dict[str, int]:
    """Facts that each run judged and another one that was asked the relation could not."""
    kept = {name: runs.frame[f"right {name}"].count() for name in runs.names}
    return {m.name: len(m.judged.grid) - kept[m.name] for m in runs.methods}


def _headlines(runs: Learning) -> tuple[Headline, ...]:
    """Every run beside the first, or with its gain alone where it was asked other relations.

    The first run's own accuracy is over other relations then, and would not add up with the gain.
    """
    lines = []
    for name in runs.names:
        base, asked = runs.base(name), len(runs.having(name))
        alike = asked == len(runs.having(base))
        accuracy = f"accuracy.{RELATIONS}.run"
        over = "mean over relations" if alike else f"mean over its {asked} relations"
        lines.append(
            Headline(
                label=f"Accuracy of {name}, {over}",
                estimate=f"{accuracy}.{name}",
                control="" if name == base or not alike else f"{accuracy}.{base}",
                control_label=base,
                difference="" if name == base or not alike else f"gain.{RELATIONS}.run.{name}",
            )
        )
        if not alike:
            label = f"Gain of {name} over {base}, on these"
            lines.append(Headline(label=label, estimate=f"gain.{RELATIONS}.run.{name}"))
    return tuple(lines)


def _summary(runs: Learning) -> str:
    facts, relations = len(runs.frame), len(runs.lessons)
    return (
        f"{len(runs.methods)} runs are compared on {facts:,} facts of {relations} "
        f"relation{'s' * (relations > 1)}. {split_note(runs)}"
    )


def _findings(runs: Learning, estimates: Estimates, often: Sequence[Often]) -> Iterator[str]:
    for method in runs.methods:
        if method.name != runs.base(method.name):
            yield _gain(runs, estimates, method.name)
            if method.name not in runs.easy and not method.counting:
                yield from _where(estimates, method.name)
    for method in runs.methods:
        if not method.counting:
            yield from _majority(estimates, method.name, elicited(often, method.name))
    yield from _others(often)


def _gain(runs: Learning, estimates: Estimates, name: str) -> str:
    gain, p = estimates[GAIN.at(f"run.{name}")], estimates[f"gain.p_value.run.{name}"]
    return f"{name} is {against(gain, p, runs.base(name))}"


def _where(estimates: Estimates, name: str) -> Iterator[str]:
    """How much of a gain is on facts that training facts alone give away."""
    easy, hard = (estimates[f"{subset}.gain.{RELATIONS}.run.{name}"] for subset in SUBSETS)
    share = estimates[f"gain.share.easy.run.{name}"]
    if easy.value is None and hard.value is None:
        return
    if share.value is not None:
        part = estimates[f"gain.part.easy.{FACTS}.run.{name}"]
        whole = (part.value or 0.0) + (estimates[f"gain.part.hard.{FACTS}.run.{name}"].value or 0.0)
        yield (
            f"Of the gain of {name} over facts ({100 * whole:+.1f} points), "
            f"{written(share, '.1%')} is on easy facts, which the training facts alone give away."
        )
    yield f"{name} gains on easy facts {in_points(easy)}, on hard facts {in_points(hard)}."


def _majority(estimates: Estimates, name: str, always: Sequence[str]) -> Iterator[str]:
    answered = estimates[f"majority.answered.{RELATIONS}.run.{name}"]
    train, test = (estimates[f"majority.{s}.{RELATIONS}"].value for s in ("train", "test"))
    if answered.value is None or train is None or test is None:
        return
    end = f"; for over 95 % of the facts in {listed(always)}" if always else ""
    yield (
        f"{name} answers {written(answered, '.1%')} of the facts with the commonest training "
        f"object, which {train:.1%} of the training facts and {test:.1%} of the facts asked "
        f"have{end}."
    )


def _others(often: Sequence[Often]) -> Iterator[str]:
    others = [object for object in often if not object.majority]
    if others:
        described = [
            f"{o.object} ({o.run}, {o.relation}: {o.answered.value or 0.0:.1%} of answers, "
            f"{o.test:.1%} of facts)"
            for o in others
        ]
        yield f"Other objects that are answered too often: {listed(described, most=3)}."


def _notes(runs: Learning) -> Iterator[str]:
    yield (
        "Every number of a relation is of the facts that all runs which were asked the relation "
        "could judge. A run is right if it answers the object of the fact, whatever the prompt."
    )
    left = with_counts(_left_out(runs))
    if left:
        yield f"Left out, because not all runs could judge them: {left} facts."
    ways = dict.fromkeys(method.judged.way for method in runs.methods)
    if len(ways) > 1:
        yield (
            f"The runs answered in different ways ({', '.join(ways)}), which allow other answers: "
            "compare their numbers with care."
        )
    bare = [id for id, lesson in runs.lessons.items() if not lesson.majority]
    if bare:
        yield (
            f"No training facts, so that the commonest training object is not known: "
            f"{listed(bare)}."
        )
    if runs.easy:
        yield (
            "What is easy is a lower bound: other ways to learn from the training facts would "
            "answer more facts. A gain on hard facts is not proof that a model knew them."
        )
    yield (
        "Leaked training facts, which are asked too, are left out where training objects are "
        "counted. Intervals are 95 %: a bootstrap over subjects within relations, or exact for a "
        "relation whose facts have different subjects. p: McNemar's exact test for one relation, "
        "else a permutation of signs, of all facts of a subject together."
    )


def _figures(runs: Learning, estimates: Estimates) -> Iterator[Figure | None]:
    """All of them; an estimate that was not made is taken as not measured."""
    run_ends = {name: f"run.{name}" for name in runs.names}
    yield bars(
        estimates,
        run_ends,
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
    yield dots(
        estimates,
        run_ends,
        {subset: Metric(f"{subset}.accuracy.{RELATIONS}", "") for subset in SUBSETS},
        id="easy-hard",
        title="Accuracy on easy and on hard facts",
        axis="share of facts answered right, mean over relations",
        note=f"Easy: answered right by {' or '.join(runs.easy)}, which saw nothing but training "
        "facts; they are right on all easy facts together and on no hard one.",
    )
    yield _majority_strip(runs, estimates)
    yield _gain_curves(runs, estimates)


def _majority_strip(runs: Learning, estimates: Estimates) -> Strip:
    """How often the commonest training object is answered, a dot for each relation."""

    def dots(key: str, end: str = "") -> list[tuple[float, str]]:
        values = {id: estimates[f"{key}.relation.{id}{end}"].value for id in runs.lessons}
        return [
            (v, f"{id}: {runs.lessons[id].majority}") for id, v in values.items() if v is not None
        ]

    return strip(
        [
            ("facts trained on", dots("majority.train")),
            ("facts asked", dots("majority.test")),
            *((name, dots("majority.answered", f".run.{name}")) for name in runs.names),
        ],
        id="majority",
        title="How often the commonest training object is answered",
        axis="share of the facts of a relation",
        note="A dot for each relation. The first two rows: how often it is the object of a fact.",
    )


def _gain_curves(runs: Learning, estimates: Estimates) -> Curves | None:
    """The gain of every run in each relation against that of a control."""
    control = next((name for name in runs.easy if name != runs.base(name)), None)
    if control is None:
        return None
    curves = []
    for name in runs.names:
        base = runs.base(name)
        if name in (*runs.easy, base) or base != runs.base(control):
            continue
        keys = [f"gain.relation.{id}.run" for id in runs.having(name, control, base)]
        points = [
            (estimates[f"{k}.{control}"].value or 0.0, estimates[f"{k}.{name}"]) for k in keys
        ]
        curves.append(curve(name, points, joined=False, sized=True))
    curves = [line for line in curves if line.x]
    if not curves:
        return None
    base = runs.base(control)
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
