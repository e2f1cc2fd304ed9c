"""The numbers of `framing`; `{task}` is that of a line, `{read}` how verdicts are read."""

from __future__ import annotations

from sonde.core.reports import Estimate, Estimates, Metric
from sonde.reporting.catalogue import RELATIONS

ACCURACY = Metric("accuracy.{task}", "accuracy", "percent", "share that is right")
WORST = Metric("worst.{task}", "worst", "percent", "with the worst paraphrase of each relation")
BEST = Metric("best.{task}", "best", "percent", "with the best paraphrase of each relation")
STDEV = Metric(
    "stdev.{task}",
    "stdev",
    "percent",
    "standard deviation between the paraphrases of a relation",
    better="lower",
)
SPREAD = (ACCURACY, BEST, WORST, STDEV)

MAJORITY = Metric(
    "control.majority.{task}",
    "majority",
    "percent",
    "accuracy of always answering the commonest object",
    better="",
)
ABOVE = Metric(
    "above_control.{task}",
    "above",
    "percent",
    "accuracy minus the control's, fact by fact; from −1 to 1",
)
QUESTION_MINUS_SENTENCE = Metric(
    "question_minus_sentence",
    "question minus sentence",
    "percent",
    "accuracy of questions minus that of sentences, both by lemmas",
    better="",
)
CONTROLS = (
    *(metric.of(task=t) for metric in (MAJORITY, ABOVE) for t in ("wp", "qa", "qa_lemma")),
    QUESTION_MINUS_SENTENCE,
)

BALANCED = Metric("accuracy.fc{read}", "balanced", "percent", "mean of true and false statements")
SAME_VERDICT = Metric(
    "control.same_verdict.fc{read}", "same", "percent", "of always saying the same: 50 %", better=""
)
ABOVE_HALF = Metric("above_half.fc{read}", "above 50 %", "percent", "balanced, less one half")
SAID_TRUE = Metric(
    "said_true.fc{read}",
    "says True",
    "percent",
    "true and false statements count the same: 50 % where all is right",
    better="",
)
SAID_FALSE = Metric(
    "said_false.fc{read}", "says False", "percent", "the same of those called False", better=""
)
SAID_NEITHER = Metric(
    "said_neither.fc{read}", "neither", "percent", "a tie, or another word", better="lower"
)
VERDICTS = (BALANCED, SAME_VERDICT, ABOVE_HALF, SAID_TRUE, SAID_FALSE, SAID_NEITHER)
BY_OPTION = tuple(metric.of(read="") for metric in VERDICTS)

AGREE = Metric(
    "readings_agree.fc",
    "readings agree",
    "percent",
    "share of statements with the same verdict by option and by the first word",
)
BOTH = (AGREE,)

TOLD = Metric("told.{name}", "accuracy", "percent", "of the base question, by equal names")
MOVED = Metric(
    "told_minus_none.{name}",
    "moved",
    "percent",
    "accuracy against nothing in front, fact by fact",
    better="",
)
COPIED = Metric(
    "copied.{name}", "copied", "percent", "answers that are the name in front", better=""
)
INTERFERENCE = (
    *(TOLD.of(name=name) for name in ("none", "right", "wrong")),
    *(metric.of(name=name) for metric in (MOVED, COPIED) for name in ("right", "wrong")),
)


def mean(estimates: Estimates, metric: Metric) -> Estimate:
    """The mean over relations."""
    return estimates[metric.at(RELATIONS)]


def was_measured(estimates: Estimates, metric: Metric) -> bool:
    """Whether there is a mean over relations."""
    return mean(estimates, metric).value is not None
