"""Figures of `framing`. Knows estimates and judgements, nothing of prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from sonde.core.reports import DotPlot, Estimate, Figure, Series, Strip
from sonde.probes.framing.numbers import LINES, OVER, Line, by_template
from sonde.probes.framing.tally import Measured, Outcomes

Estimates = Mapping[str, Estimate]
Named = tuple[tuple[str, str], ...]
"""What series are called, each with the name of its estimates."""

DRAWN = ("wp", "qa", "fc_pos", "fc_neg")
TASKS: Named = (
    ("sentence", "accuracy.wp"),
    ("question", "accuracy.qa"),
    ("statement, balanced", "accuracy.fc"),
)
TOLD: Named = (
    ("nothing in front", "told.none"),
    ("right name", "told.right"),
    ("wrong name", "told.wrong"),
)


def label(one: Measured) -> str:
    """A relation as figures and tables call it."""
    return f"{one.relation.id} {one.relation.label}"


def figures(estimates: Estimates, outcomes: Outcomes) -> tuple[Figure, ...]:
    """Those figures that have something to show."""
    return tuple(_figures(estimates, outcomes))


def _figures(estimates: Estimates, outcomes: Outcomes) -> Iterator[Figure]:
    drawn = [
        line
        for line in LINES
        if line.id in DRAWN and estimates[f"accuracy.{line.id}.{OVER}"].value is not None
    ]
    if drawn:
        yield _paraphrases(drawn, outcomes)
    for id, title, named, note in (
        (
            "accuracy-by-relation",
            "Accuracy of every relation in three tasks",
            TASKS,
            "Statements: the mean of true and false ones, read by the likelier option; always "
            "saying the same gives 50 %. Whiskers are 95 % intervals.",
        ),
        (
            "interference-by-relation",
            "What a name in front of the question does in every relation",
            TOLD,
            "The base question, judged by equal names. Whiskers are 95 % intervals.",
        ),
    ):
        kept = tuple(n for n in named if estimates[f"{n[1]}.{OVER}"].value is not None)
        if kept:
            yield _by_relation(estimates, outcomes, id, title, kept, note)


def _paraphrases(lines: list[Line], outcomes: Outcomes) -> Strip:
    rows = [list(_dots(line, outcomes)) for line in lines]
    several = " Relations differ, too, not only wordings." if len(outcomes.relations) > 1 else ""
    return Strip(
        id="accuracy-by-paraphrase",
        title="Accuracy with every paraphrase",
        axis="accuracy with one template",
        labels=tuple(f"{line.words}, by {line.judged}" for line in lines),
        values=tuple(tuple(value for value, _ in row) for row in rows),
        names=tuple(tuple(name for _, name in row) for row in rows),
        note=f"A dot is a template of a relation.{several}",
    )


def _dots(line: Line, outcomes: Outcomes) -> Iterator[tuple[float, str]]:
    for one in outcomes.relations:
        found = by_template(line.table(one.cells))
        for value, template in zip(found.tolist(), one.templates[line.task], strict=True):
            if not np.isnan(value):
                yield value, f"{one.relation.id}: {template.text}"


def _by_relation(
    estimates: Estimates, outcomes: Outcomes, id: str, title: str, named: Named, note: str
) -> DotPlot:
    """The relations by the first series, the highest at the top."""
    first = named[0][1]

    def value(one: Measured) -> float:
        return estimates[f"{first}.relation.{one.relation.id}"].value or 0.0

    ordered = sorted(outcomes.relations, key=lambda one: (-value(one), one.relation.id))
    return DotPlot(
        id=id,
        title=title,
        axis="accuracy",
        labels=tuple(label(one) for one in ordered),
        series=tuple(
            Series(
                name=name,
                values=tuple(estimates[f"{metric}.relation.{o.relation.id}"] for o in ordered),
            )
            for name, metric in named
        ),
        note=note,
    )
