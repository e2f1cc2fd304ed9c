"""The report of MONITOR: headlines and what belongs together. Knows outcomes, no prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from sonde.core.facts import Dataset
from sonde.core.reports import Estimate, Headline, Report
from sonde.metrics.distance import RULES
from sonde.probes.monitor.ask import Shape
from sonde.probes.monitor.figures import figures
from sonde.probes.monitor.findings import findings
from sonde.probes.monitor.numbers import measure
from sonde.probes.monitor.tables import tables
from sonde.probes.monitor.tally import Outcomes, begins
from sonde.prompting.frames import cleaned

Estimates = Mapping[str, Estimate]


def build_report(dataset: Dataset, outcomes: Outcomes, shape: Shape) -> Report:
    """Everything that is reported about some answers."""
    estimates = measure(outcomes)
    return Report(
        title=f"MONITOR on {dataset.name}",
        summary=_summary(estimates, outcomes),
        estimates=estimates,
        counts={**dataset.notes, **_counts(outcomes), **outcomes.census.counts()},
        headlines=tuple(_headlines(estimates)),
        tables=tables(estimates, outcomes, shape),
        figures=figures(estimates, outcomes),
        findings=tuple(findings(estimates, outcomes, shape)),
        notes=_notes(outcomes, shape),
    )


def _summary(estimates: Estimates, outcomes: Outcomes) -> str:
    known = outcomes.monitored
    valid, asked = int(known.valid[known.rule].sum()), len(known.facts)
    value = estimates["monitor.mean_over_relations"].value
    if value is None:
        return f"None of {asked:,} facts has a valid anchor: MONITOR is not measured."
    measured = len(np.unique(known.relation[known.counted()]))
    return (
        f"MONITOR is {value:.3f} over {measured} of {len(known.relations)} relations, from "
        f"{valid:,} valid anchors of {asked:,} facts; 0 is an answer that nothing moves, and a "
        "model that only repeats the name in front of the question has "
        f"{sum(known.alphas) ** 0.5:.3f}."
    )


def _headlines(estimates: Estimates) -> Iterator[Headline]:
    for name, words in (
        ("monitor", "MONITOR, smaller is more reliable"),
        ("pfd", "PFD: how far other frames move the answer"),
        ("ird", "IRD: how far wrong names move the answer"),
    ):
        label = f"{words}, mean over relations"
        name = f"{name}.mean_over_relations"
        yield Headline(label=label, estimate=name, kind="number", best=0.0)
    yield Headline(
        label="Accuracy over prompts, mean over relations",
        estimate="accuracy.all.avg.mean_over_relations",
        control="accuracy.all.majority.mean_over_relations",
        control_label="always the commonest object",
        difference="accuracy.all.above.mean_over_relations",
    )
    yield Headline(
        label="Accuracy of the base frame, mean over relations",
        estimate="accuracy.all.base.mean_over_relations",
    )
    yield Headline(
        label="Standard deviation of the accuracy over prompts",
        estimate="accuracy.all.stdev.mean_over_relations",
    )
    yield Headline(
        label="Probability of valid anchors, mean over relations",
        estimate="anchor_probability.mean_over_relations",
        kind="number",
    )


def _counts(outcomes: Outcomes) -> dict[str, int]:
    """What was asked, and why facts were dropped."""
    known = outcomes.monitored
    valid = known.valid[known.rule]
    dropped = {"answer_empty": 0, "answer_goes_on": 0, "another_answer": 0}
    for c in np.flatnonzero(~valid).tolist():
        said, gold = known.said[c][0], cleaned(known.facts[c].objects[0].name)
        empty, longer = not said, begins(said, gold)
        reason = "answer_empty" if empty else "answer_goes_on" if longer else "another_answer"
        dropped[reason] += 1
    counted = known.counted()
    return {
        "relations": len(known.relations),
        "relations_without_anchors": len(known.relations) - len(np.unique(known.relation[counted])),
        "facts": len(known.facts),
        "facts_counted": int(counted.sum()),
        **{f"anchors_{rule}": int(known.valid[rule].sum()) for rule in RULES},
        **{f"dropped_{reason}": count for reason, count in dropped.items()},
        "dropped_without_wrong_names": int((valid & ~counted).sum()),
    }


def _notes(outcomes: Outcomes, shape: Shape) -> tuple[str, ...]:
    known = outcomes.monitored
    weights = ", ".join(f"{alpha:.3g}" for alpha in known.alphas)
    rules = {
        "exact": "the answer written after the right name is that name",
        "prefix": "the answer written after the right name begins with that name",
        "any": "the answer to some prompt is the right name",
    }
    most = f"at most {shape.most} tokens"
    return (
        f"An anchor is valid where {rules[known.rule]}. Answers are written greedily, {most}, and "
        "compared by their first line without closing punctuation.",
        f"MONITOR is the sum of √(α₁PFD² + α₂IRD² + α₃PFD·IRD) over the sum of the anchors' "
        f"probabilities, with α = {weights}; one score a relation, then the mean. Probabilities "
        "are of the object's own tokens, one by one.",
        "Accuracies are over the frames with nothing told and the base frame after each wrong "
        "name; the right name never stands in front there. Any name of any correct object counts.",
        "Intervals are 95 %: a bootstrap over subjects within relations. Where nothing varies, "
        "they are those of a share of as many trials; a relation with the anchors of one subject "
        "adds nothing to the width of the mean's.",
    )
