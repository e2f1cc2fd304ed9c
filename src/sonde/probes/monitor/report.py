"""The report of MONITOR: headlines and what belongs together. Knows outcomes, no prompts."""

from __future__ import annotations

import numpy as np

from sonde.core.facts import Dataset
from sonde.core.reports import Estimates, Headline, Report
from sonde.metrics.distance import ANCHOR, IRD, MONITOR, PFD, RULES
from sonde.probes.monitor.ask import Settings
from sonde.probes.monitor.figures import figures
from sonde.probes.monitor.findings import findings
from sonde.probes.monitor.judge import Outcomes, as_judged, begins
from sonde.probes.monitor.metrics import (
    ABOVE,
    AVG,
    BASE,
    MAJORITY,
    METRICS,
    OVER_PROMPTS,
    STDEV,
    of_all,
)
from sonde.probes.monitor.numbers import GROUPS, measure
from sonde.probes.monitor.tables import tables
from sonde.prompting.frames import cleaned
from sonde.reporting.build.parts import headline, shown
from sonde.reporting.catalogue import RELATIONS


def build_report(dataset: Dataset, outcomes: Outcomes, settings: Settings) -> Report:
    """Everything that is reported about some answers."""
    estimates = measure(outcomes)
    parts = ("accuracy", "full") if settings.full else ("accuracy",)
    accuracies = (
        metric.of(part=part, group=group)
        for part in parts
        for group in GROUPS
        for metric in OVER_PROMPTS
    )
    return Report(
        title=f"MONITOR on {dataset.name}",
        summary=_summary(estimates, outcomes),
        metrics=(*(m for m in METRICS if m not in OVER_PROMPTS), *accuracies),
        estimates=estimates,
        counts={**dataset.notes, **_counts(outcomes), **outcomes.census.counts()},
        headlines=_headlines(),
        tables=tables(estimates, outcomes, settings),
        figures=figures(estimates, outcomes),
        findings=shown(findings(estimates, outcomes, settings)),
        notes=_notes(outcomes, settings),
        judged=as_judged(outcomes.monitored),
    )


def _summary(estimates: Estimates, outcomes: Outcomes) -> str:
    known = outcomes.monitored
    valid, asked = int(known.valid[known.rule].sum()), len(known.facts)
    value = estimates[MONITOR.at(RELATIONS)].value
    if value is None:
        return f"None of {asked:,} facts has a valid anchor: MONITOR is not measured."
    measured = len(np.unique(known.relation[known.counted()]))
    return (
        f"MONITOR is {value:.3f} over {measured} of {len(known.relations)} relations, from "
        f"{valid:,} valid anchors of {asked:,} facts; 0 is an answer that nothing moves, and a "
        "model that only repeats the name in front of the question has "
        f"{sum(known.alphas) ** 0.5:.3f}."
    )


def _headlines() -> tuple[Headline, ...]:
    accuracy = of_all(AVG).named("Accuracy over prompts")
    return (
        headline(MONITOR.named("MONITOR, smaller is more reliable"), RELATIONS),
        headline(PFD.named("PFD: how far other frames move the answer"), RELATIONS),
        headline(IRD.named("IRD: how far wrong names move the answer"), RELATIONS),
        headline(accuracy, RELATIONS, control=of_all(MAJORITY), above=of_all(ABOVE)),
        headline(of_all(BASE).named("Accuracy of the base frame"), RELATIONS),
        headline(of_all(STDEV).named("Standard deviation of the accuracy over prompts"), RELATIONS),
        headline(ANCHOR.named("Probability of valid anchors"), RELATIONS),
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


def _notes(outcomes: Outcomes, settings: Settings) -> tuple[str, ...]:
    known = outcomes.monitored
    weights = ", ".join(f"{alpha:.3g}" for alpha in known.alphas)
    rules = {
        "exact": "the answer written after the right name is that name",
        "prefix": "the answer written after the right name begins with that name",
        "any": "the answer to some prompt is the right name",
    }
    most = f"at most {settings.most} tokens"
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
