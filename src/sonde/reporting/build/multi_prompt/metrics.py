"""The numbers of probes that ask about a pair of subject and relation in many prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from sonde.core.reports import Metric

Draw = Literal["relation", "pair"]
DRAWN: Mapping[Draw, str] = {"relation": "a template per relation", "pair": "a prompt per pair"}
"""What is drawn anew to see how far the accuracy fluctuates."""

ACC = Metric(
    "acc_at_1", "Acc@1", "percent", "mean over pairs of the share of their prompts answered right"
)
MAJORITY = Metric(
    "control.majority.acc_at_1",
    "majority",
    "percent",
    "Acc@1 of always answering the commonest object",
    better="",
)
ABOVE = Metric(
    "above_control.acc_at_1",
    "above",
    "percent",
    "Acc@1 minus the majority control's, pair by pair; from −1 to 1",
)
WORST, BEST, MEAN = (
    Metric(f"template_accuracy.{id}", label, "percent", sentence)
    for id, label, sentence in (
        ("min", "worst templates", "accuracy with each relation's worst template"),
        ("max", "best templates", "accuracy with each relation's best template"),
        ("mean", "mean of templates", "mean accuracy of the templates"),
    )
)
RANGE, STDEV, CLOSED_FORM = (
    Metric(f"fluctuation.{{draw}}.{id}", label, "percent", sentence, better="lower")
    for id, label, sentence in (
        ("range", "fluctuation, range", "best minus worst accuracy over draws of {what}"),
        ("stdev", "fluctuation, stdev", "standard deviation of the accuracy over these draws"),
        ("closed_form", "fluctuation, closed form", "the same standard deviation without drawing"),
    )
)
CONSIST = Metric(
    "consist",
    "Consist",
    "percent",
    "share of prompt pairs of a pair that have the same answer, right or wrong",
)
OVERCONF = Metric(
    "overconf",
    "Overconf",
    "percent",
    "mean confidence minus accuracy; above 0: too sure",
    better="nearer 0",
)
ECE = Metric(
    "ece",
    "ECE",
    "percent",
    "mean distance of confidence and accuracy over ten bins",
    better="lower",
)
COVERAGE = tuple(
    Metric(f"coverage.{id}", id.replace("_", " "), "percent", sentence)
    for id, sentence in (
        ("average", "share of prompts that are right, per pair: Acc@1 again"),
        ("average_best_name", "right under some name of the subject, averaged over templates"),
        ("maximum", "right under some name with each relation's best template"),
        ("oracle", "right under some prompt"),
    )
)
AVERAGE, _, MAXIMUM, ORACLE = COVERAGE


def fluctuation(draw: Draw) -> tuple[Metric, Metric, Metric]:
    """Range, standard deviation and its closed form, over what is drawn."""
    a, b, c = (metric.of(draw=draw, what=DRAWN[draw]) for metric in (RANGE, STDEV, CLOSED_FORM))
    return a, b, c


METRICS = (
    *(ACC, MAJORITY, ABOVE, WORST, BEST, MEAN),
    *(metric for draw in DRAWN for metric in fluctuation(draw)),
    *(CONSIST, OVERCONF, ECE),
    *COVERAGE,
)
"""What `sections` measures, over everything and in each relation."""

DRIVERS = {"names of the subject": "names_only", "templates": "templates_only"}
"""What moves the answers: by what alone differs between prompts, the id of its numbers."""

DRIVER = tuple(
    Metric(f"{{only}}.{id}", label, "percent", sentence)
    for id, label, sentence in (
        ("consist", "Consist", "share of prompt pairs that agree, where only {what} differ"),
        ("min", "worst", "right under every name; with each relation's worst template"),
        ("max", "best", "right under some name; with each relation's best template"),
    )
)


def driver(what: str) -> tuple[Metric, ...]:
    """Agreement, the worst and the best case, where only this differs."""
    return tuple(metric.of(only=DRIVERS[what], what=what) for metric in DRIVER)


SUBJECT_NAMES = Metric(
    "names_help.subject",
    "added subject names that help",
    "percent",
    "share under which the correct answer is likelier than under the usual name",
    better="",
)
OBJECT_NAMES = Metric(
    "names_help.object",
    "added object names that help",
    "percent",
    "share that are likelier than the object's usual name in the same prompt",
    better="",
)
MANUAL_RANK = Metric(
    "manual.rank",
    "mean rank of manual templates",
    "number",
    "by accuracy in their relation; 1 is best",
    better="",
)
CHANCE_RANK = Metric(
    "manual.rank_by_chance",
    "… if it were chance",
    "number",
    "(number of templates + 1) / 2",
    better="",
)
INNER_CONSIST = Metric(
    "groups.inner_consist",
    "Consist inside a paraphrase group",
    "percent",
    "templates made from the same hand-written one",
)
INTER_CONSIST = Metric(
    "groups.inter_consist",
    "Consist between groups",
    "percent",
    "templates made from different hand-written ones",
)
BY_TEMPLATE = (
    Metric(
        "overconf_by_template.mean",
        "Overconf of a template, mean",
        "percent",
        "over templates with enough prompts, which n counts",
        better="nearer 0",
    ),
    Metric(
        "overconf_by_template.stdev",
        "… standard deviation",
        "percent",
        "over these templates",
        better="lower",
    ),
    Metric("overconf_by_template.min", "… lowest", "percent", "of a template", better=""),
    Metric("overconf_by_template.max", "… highest", "percent", "of a template", better=""),
)
ONE_WORD = Metric(
    "one_word_rate", "One-word rate", "percent", "share of answers of exactly one word"
)

WORDINGS = (
    *(SUBJECT_NAMES, OBJECT_NAMES, MANUAL_RANK, CHANCE_RANK, INNER_CONSIST, INTER_CONSIST),
    *BY_TEMPLATE,
)
OVERALL = (*(metric for what in DRIVERS for metric in driver(what)), *WORDINGS)
"""What templates and names do to the answers, over everything only."""
