"""The report of `framing`: headlines, tables, findings. Knows judgements, no prompts."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.core.facts import Dataset
from sonde.core.reports import Estimates, Headline, Metric, Report
from sonde.probes.framing import metrics
from sonde.probes.framing.ask import FEW, MOST, Settings
from sonde.probes.framing.findings import findings, share
from sonde.probes.framing.judge import Outcomes
from sonde.probes.framing.numbers import LINES, READINGS, measure
from sonde.probes.framing.tables import figures, tables
from sonde.reporting.build.parts import headline, shown
from sonde.reporting.catalogue import RELATIONS


def build_report(dataset: Dataset, outcomes: Outcomes, settings: Settings) -> Report:
    """Everything that is reported about some answers."""
    estimates = measure(outcomes, dataset.selection.seed)
    counts = {**outcomes.counts(), **outcomes.census.counts()}
    return Report(
        title=f"Framing on {dataset.name}",
        summary=_summary(estimates),
        metrics=tuple(_metrics()),
        estimates=estimates,
        counts={**dataset.notes, **counts},
        headlines=tuple(h for h in _headlines() if estimates[h.estimate].value is not None),
        tables=shown(tables(estimates, outcomes)),
        figures=shown(figures(estimates, outcomes)),
        findings=shown(findings(estimates, outcomes.census, counts, settings)),
        notes=tuple(_notes(settings)),
    )


def _metrics() -> Iterator[Metric]:
    yield from (metric.of(task=line.id) for line in LINES for metric in metrics.SPREAD)
    yield from metrics.CONTROLS
    yield from (metric.of(read=read) for _, read, _ in READINGS for metric in metrics.VERDICTS)
    yield metrics.AGREE
    yield from metrics.INTERFERENCE


def _summary(estimates: Estimates) -> str:
    parts = [
        f"{share(estimates, metric)} of {words}"
        for metric, words in (
            (metrics.ACCURACY.of(task="wp"), "sentences are completed rightly"),
            (metrics.ACCURACY.of(task="qa"), "questions are answered with just a right name"),
            (
                metrics.BALANCED.of(read=""),
                "statements are judged rightly (balanced: 50 % is guessing)",
            ),
        )
        if metrics.was_measured(estimates, metric)
    ]
    if not parts:
        return "No fact could be asked about."
    return f"About the same facts, {'; '.join(parts)}."


def _headlines() -> Iterator[Headline]:
    for task, words in (("wp", "Sentences completed"), ("qa", "Questions answered")):
        yield headline(
            metrics.ACCURACY.of(task=task).named(words),
            RELATIONS,
            control=metrics.MAJORITY.of(task=task),
            above=metrics.ABOVE.of(task=task),
        )
    for _, read, words in READINGS:
        yield headline(
            metrics.BALANCED.of(read=read),
            RELATIONS,
            label=f"Statements judged by {words}, balanced",
            control=metrics.SAME_VERDICT.of(read=read),
            above=metrics.ABOVE_HALF.of(read=read),
            control_label="always True, or always False",
        )
    for name, words in (("right", "the right name"), ("wrong", "a wrong name")):
        yield headline(
            metrics.TOLD.of(name=name),
            RELATIONS,
            label=f"Base question after {words}",
            control=metrics.TOLD.of(name="none"),
            above=metrics.MOVED.of(name=name),
            control_label="nothing in front",
        )


def _notes(settings: Settings) -> Iterator[str]:
    yield (
        f"Answers are written greedily, at most {MOST} tokens to the end of the line. By lemmas an "
        "answer is right if it holds a right name, by equal names if it is one, without closing "
        "punctuation. Every name of every object that is right for the subject counts."
    )
    yield (
        "A statement is judged by the likelier of True and False, a tie being wrong, and by the "
        f"first word written, of at most {FEW} tokens; any other word is wrong."
    )
    if settings.shots:
        yield (
            f"Before each prompt stand up to {settings.shots} facts of its relation, worded as the "
            "task's first template, without names in front; before statements true and false "
            "ones in turn. A fact about the subject itself is replaced by a spare."
        )
    yield (
        "The majority control answers with the commonest object of the split that is asked about. "
        "Whoever says True to everything, or False, is right on half of the balanced statements."
    )
    yield (
        "Intervals are 95 %: a bootstrap over subjects within relations. Within one relation: "
        "Wilson's for a share and Newcombe's for a paired difference, where each fact is simply "
        "right or wrong. Best and worst are those found, whatever the chance of another being so."
    )
