"""Figures of `framing`. Knows estimates and judgements, nothing of prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from sonde.core.reports import Estimates, Figure, Metric
from sonde.probes.framing.metrics import ACCURACY, BALANCED, TOLD, was_measured
from sonde.probes.framing.numbers import LINES, Line, by_template
from sonde.probes.framing.tally import Outcomes
from sonde.reporting.build.figures import dots_by_relation, strip

DRAWN = ("wp", "qa", "fc_pos", "fc_neg")
TASKS: Mapping[str, Metric] = {
    "sentence": ACCURACY.of(task="wp"),
    "question": ACCURACY.of(task="qa"),
    "statement, balanced": BALANCED.of(read=""),
}
IN_FRONT: Mapping[str, Metric] = {
    "nothing in front": TOLD.of(name="none"),
    "right name": TOLD.of(name="right"),
    "wrong name": TOLD.of(name="wrong"),
}


def figures(estimates: Estimates, outcomes: Outcomes) -> Iterator[Figure]:
    """Every paraphrase, and every relation by task and by the name in front."""
    drawn = [line for line in LINES if line.id in DRAWN]
    several = " Relations differ, too, not only wordings." if len(outcomes.relations) > 1 else ""
    yield strip(
        [(f"{line.words}, by {line.judged}", list(_dots(line, outcomes))) for line in drawn],
        id="accuracy-by-paraphrase",
        title="Accuracy with every paraphrase",
        axis="accuracy with one template",
        note=f"A dot is a template of a relation.{several}",
    )
    for id, title, series, note in (
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
            IN_FRONT,
            "The base question, judged by equal names. Whiskers are 95 % intervals.",
        ),
    ):
        kept = {name: m for name, m in series.items() if was_measured(estimates, m)}
        if kept:
            relations = [one.relation for one in outcomes.relations]
            words = {"id": id, "title": title, "axis": "accuracy", "note": note}
            yield dots_by_relation(estimates, relations, kept, **words)


def _dots(line: Line, outcomes: Outcomes) -> Iterator[tuple[float, str]]:
    for one in outcomes.relations:
        rates = by_template(line.table(one.cells))
        for value, template in zip(rates.tolist(), one.templates[line.task], strict=True):
            if not np.isnan(value):
                yield value, f"{one.relation.id}: {template.text}"
