"""The report of `framing`: headlines, tables, findings. Knows judgements, no prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sonde.core.facts import Dataset
from sonde.core.reports import Estimate, Headline, Report
from sonde.probes.framing.ask import FEW, MOST, Shape
from sonde.probes.framing.browse import browsed_tables
from sonde.probes.framing.figures import figures
from sonde.probes.framing.findings import findings, share
from sonde.probes.framing.numbers import OVER, READINGS, measure
from sonde.probes.framing.tables import number_tables
from sonde.probes.framing.tally import Outcomes

Estimates = Mapping[str, Estimate]


def build_report(dataset: Dataset, outcomes: Outcomes, shape: Shape) -> Report:
    """Everything that is reported about some answers."""
    estimates = measure(outcomes.relations, dataset.selection.seed)
    counts = {**outcomes.counts(), **outcomes.census.counts()}
    return Report(
        title=f"Framing on {dataset.name}",
        summary=_summary(estimates),
        estimates=estimates,
        counts={**dataset.notes, **counts},
        headlines=tuple(_headlines(estimates)),
        tables=(*number_tables(estimates, outcomes), *browsed_tables(outcomes)),
        figures=figures(estimates, outcomes),
        findings=tuple(findings(estimates, outcomes.census, counts, shape)),
        notes=tuple(_notes(shape)),
    )


def _summary(estimates: Estimates) -> str:
    parts = [
        f"{share(estimates, name)} of {words}"
        for name, words in (
            ("accuracy.wp", "sentences are completed rightly"),
            ("accuracy.qa", "questions are answered with just a right name"),
            ("accuracy.fc", "statements are judged rightly (balanced: 50 % is guessing)"),
        )
        if estimates[f"{name}.{OVER}"].value is not None
    ]
    if not parts:
        return "No fact could be asked about."
    return f"About the same facts, {'; '.join(parts)}."


def _headlines(estimates: Estimates) -> Iterator[Headline]:
    for id, words in (("wp", "Sentences completed"), ("qa", "Questions answered")):
        if estimates[f"accuracy.{id}.{OVER}"].value is not None:
            yield Headline(
                label=f"{words}, mean over relations",
                estimate=f"accuracy.{id}.{OVER}",
                control=f"control.majority.{id}.{OVER}",
                control_label="always the commonest object",
                difference=f"above_control.{id}.{OVER}",
            )
    for _, after, words in READINGS:
        if estimates[f"accuracy.fc{after}.{OVER}"].value is not None:
            yield Headline(
                label=f"Statements judged by {words}, balanced",
                estimate=f"accuracy.fc{after}.{OVER}",
                control=f"control.same_verdict.fc{after}.{OVER}",
                control_label="always True, or always False",
                difference=f"above_half.fc{after}.{OVER}",
            )
    for kind, words in (("right", "the right name"), ("wrong", "a wrong name")):
        if estimates[f"told.{kind}.{OVER}"].value is not None:
            yield Headline(
                label=f"Base question after {words}",
                estimate=f"told.{kind}.{OVER}",
                control=f"told.none.{OVER}",
                control_label="nothing in front",
                difference=f"told_minus_none.{kind}.{OVER}",
            )


def _notes(shape: Shape) -> Iterator[str]:
    yield (
        f"Answers are written greedily, at most {MOST} tokens to the end of the line. By lemmas an "
        "answer is right if it holds a right name, by equal names if it is one, without closing "
        "punctuation. Every name of every object that is right for the subject counts."
    )
    yield (
        "A statement is judged by the likelier of True and False, a tie being wrong, and by the "
        f"first word written, of at most {FEW} tokens; any other word is wrong."
    )
    if shape.shots:
        yield (
            f"Before each prompt stand up to {shape.shots} facts of its relation, worded as the "
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
