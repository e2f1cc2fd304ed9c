"""Every number of `framing`: what they are called, which prompts each is of, and their estimates.

Knows judged prompts, no tables. A fact's accuracy in a task is its mean over the task's templates,
with false statements first averaged over the wrong names; a relation's is the mean over its facts.
In the names of metrics `{task}` is that of a line, `{read}` how verdicts are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from sonde.core.fingerprints import draw_key
from sonde.core.reports import Estimate, Estimates, Metric
from sonde.metrics.estimates import RELATIONS, ByFact
from sonde.metrics.judged import Floats, around
from sonde.former.framing.judge import Outcomes, Task
from sonde.prompting.frames import Told
from sonde.reporting.catalogue import shares
from sonde.stats.intervals import resampled_rates

SPREAD = ACCURACY, BEST, WORST, STDEV = shares(
    ("accuracy.{task}", "accuracy", "share that is right", "higher"),
    ("best.{task}", "best", "with the best paraphrase of each relation", "higher"),
    ("worst.{task}", "worst", "with the worst paraphrase of each relation", "higher"),
    ("stdev.{task}", "stdev", "standard deviation between the paraphrases of a relation", "lower"),
)
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
    "points",
    "accuracy minus the control's, fact by fact; from −1 to 1",
)
QUESTION_MINUS_SENTENCE = Metric(
    "question_minus_sentence",
    "question minus sentence",
    "points",
    "accuracy of questions minus that of sentences, both by lemmas",
    better="",
)
WRITTEN = ("wp", "qa", "qa_lemma")
CONTROLS = (
    *(metric.of(task=task) for metric, task in product((MAJORITY, ABOVE), WRITTEN)),
    QUESTION_MINUS_SENTENCE,
)

BALANCE = "true and false statements count the same: 50 % where all is right"
VERDICTS = BALANCED, SAME_VERDICT, ABOVE_HALF, SAID_TRUE, SAID_FALSE, SAID_NEITHER = shares(
    ("accuracy.fc{read}", "balanced", "mean of true and false statements", "higher"),
    ("control.same_verdict.fc{read}", "same", "of always saying the same: 50 %", ""),
    ("above_half.fc{read}", "above 50 %", "balanced, less one half", "higher"),
    ("said_true.fc{read}", "says True", BALANCE, ""),
    ("said_false.fc{read}", "says False", "the same of those called False", ""),
    ("said_neither.fc{read}", "neither", "a tie, or another word", "lower"),
    differences=("above_half.fc{read}",),
)
BY_OPTION = tuple(metric.of(read="") for metric in VERDICTS)

AGREE = Metric(
    "readings_agree.fc",
    "readings agree",
    "percent",
    "share of statements with the same verdict by option and by the first word",
)
BOTH = (AGREE,)

TOLD, MOVED, COPIED = shares(
    ("told.{name}", "accuracy", "of the base question, by equal names", "higher"),
    ("told_minus_none.{name}", "moved", "accuracy against nothing in front, fact by fact", ""),
    ("copied.{name}", "copied", "answers that are the name in front", ""),
    differences=("told_minus_none.{name}",),
)
NAMES: tuple[Told, ...] = ("right", "wrong")
INTERFERENCE = (
    TOLD.of(name="none"),
    *(metric.of(name=name) for metric, name in product((TOLD, MOVED, COPIED), NAMES)),
)


class Line(NamedTuple):
    """A task as it is reported: which prompts it is of, and the column that says what is right."""

    id: str
    task: Task
    words: str
    judged: str
    told: Told = "none"
    way: str = "generated"
    column: str = "right"


READINGS = (("scored", "", "option"), ("generated", "_written", "first word"))
"""How a verdict is read, what the names of its numbers end with, and what it is called."""

LINES = (
    Line("wp", "wp", "sentence", "lemmas"),
    Line("qa_lemma", "qa", "question", "lemmas", column="lemma"),
    Line("qa", "qa", "question", "equal names"),
    *(
        Line(f"fc_{kind}{read}", "fc", f"{truth} statement", judged, told, way)
        for way, read, judged in READINGS
        for kind, truth, told in (("pos", "true", NAMES[0]), ("neg", "false", NAMES[1]))
    ),
)
"""Every task with each way of judging it."""

METRICS = (
    *(metric.of(task=line.id) for line, metric in product(LINES, SPREAD)),
    *CONTROLS,
    *(metric.of(read=read) for (_, read, _), metric in product(READINGS, VERDICTS)),
    AGREE,
    *INTERFERENCE,
)

DIFFERENCES: Mapping[Metric, tuple[Metric, Metric]] = {
    **{ABOVE.of(task=t): (ACCURACY.of(task=t), MAJORITY.of(task=t)) for t in WRITTEN},
    **{MOVED.of(name=name): (TOLD.of(name=name), TOLD.of(name="none")) for name in NAMES},
    QUESTION_MINUS_SENTENCE: (ACCURACY.of(task="qa_lemma"), ACCURACY.of(task="wp")),
}
"""What is the mean of one number less another, fact by fact."""


def mean(estimates: Estimates, metric: Metric) -> Estimate:
    """The mean over relations."""
    return estimates[metric.at(RELATIONS)]


def was_measured(estimates: Estimates, metric: Metric) -> bool:
    """Whether there is a mean over relations."""
    return mean(estimates, metric).value is not None


def measure(outcomes: Outcomes, seed: int) -> dict[str, Estimate]:
    """Everything that is estimated."""
    asked = outcomes.asked
    by_fact = ByFact.of(asked.relations, asked.relation, asked.subject, seed)
    values, estimates = dict(_values(outcomes)), dict[str, Estimate]()
    for metric, value in values.items():
        estimates |= by_fact.estimates(metric.id, value)
    for metric, (of, minus) in DIFFERENCES.items():
        estimates |= by_fact.estimates(metric.id, values[of], values[minus])
    for line in LINES:
        estimates |= _spread(by_fact, line.id, accuracies(outcomes, line))
    for (_, read, _), over in product(
        READINGS, (RELATIONS, *(f"relation.{r}" for r in by_fact.ids))
    ):
        half, above = _beside_half(estimates[BALANCED.of(read=read).at(over)])
        estimates[SAME_VERDICT.of(read=read).at(over)] = half
        estimates[ABOVE_HALF.of(read=read).at(over)] = above
    return estimates


def _values(outcomes: Outcomes) -> Iterator[tuple[Metric, Floats]]:
    """One value for each fact, of every mean."""
    asked = outcomes.asked
    for line in LINES:
        value = averaged(accuracies(outcomes, line), 1)
        yield ACCURACY.of(task=line.id), value
        if line.id in WRITTEN:
            guess = asked.majority_right(asked.is_right if line.id == "qa" else outcomes.holds)
            yield MAJORITY.of(task=line.id), np.where(np.isnan(value), np.nan, guess)
    for way, read, _ in READINGS:
        yield BALANCED.of(read=read), _halves(outcomes, way, "right")
        yield SAID_TRUE.of(read=read), _halves(outcomes, way, "says_true")
        yield SAID_FALSE.of(read=read), _halves(outcomes, way, "says_false")
        yield SAID_NEITHER.of(read=read), _halves(outcomes, way, "says_neither")
    yield AGREE, _halves(outcomes, "scored", "agree")
    yield TOLD.of(name="none"), table(outcomes, "qa", "none")[:, 0]
    for metric, column in ((TOLD, "right"), (COPIED, "copied")):
        for name in NAMES:
            yield metric.of(name=name), table(outcomes, "qa", name, column=column)[:, 0]


def accuracies(outcomes: Outcomes, line: Line) -> Floats:
    """What a line averages, as a table."""
    return table(outcomes, line.task, line.told, line.way, line.column)


def table(
    outcomes: Outcomes, task: Task, told: Told, way: str = "generated", column: str = "right"
) -> Floats:
    """A column's mean over the names of each fact and template; nan where there is none.

    [facts, templates]: relations with fewer templates than others miss the last ones.
    """
    from polars import col

    chosen = outcomes.parts.get((task, told, way), outcomes.prompts.clear())
    cells = chosen.group_by("fact", "template").agg(col(column).mean()).drop_nulls()
    width = 1 + max((len(t) for own in outcomes.templates for t in own.values()), default=0)
    values = np.full((len(outcomes.asked.items), width), np.nan)
    # rounded, or equal means would seem to differ by their last digit
    values[cells["fact"].to_numpy(), cells["template"].to_numpy()] = cells[column].round(12)
    return values


def averaged(values: Floats, axis: int) -> Floats:
    """The mean along an axis of what is there; nan where nothing is."""
    there = ~np.isnan(values)
    counts = there.sum(axis=axis)
    sums = np.where(there, values, 0.0).sum(axis=axis)
    means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return np.asarray(np.round(means, 12))  # for the same reason


def _halves(outcomes: Outcomes, way: str, column: str) -> Floats:
    """The mean of true and of false statements, for facts that have both."""
    true, false = (averaged(table(outcomes, "fc", told, way, column), 1) for told in NAMES)
    return (true + false) / 2


def _beside_half(share: Estimate) -> tuple[Estimate, Estimate]:
    """One half, as sure as can be, and how far a share is above it."""
    if share.value is None:
        return Estimate.not_measured(), Estimate.not_measured()
    half = Estimate(value=0.5, low=None, high=None, n=share.n)
    low, high = share.ends
    return half, Estimate(value=share.value - 0.5, low=low - 0.5, high=high - 0.5, n=share.n)


Deviation = tuple[Floats, int]
"""A standard deviation, the same with other subjects drawn, and how many facts it is of."""


def _spread(by_fact: ByFact, task: str, values: Floats) -> dict[str, Estimate]:
    """The best and the worst template of each relation, and the deviation between them."""
    best, worst = np.full((2, len(values)), np.nan)
    deviations: dict[str, list[Deviation]] = {}
    for number, relation in enumerate(by_fact.ids):
        rows = np.flatnonzero(by_fact.relation == number)
        rates = averaged(values[rows], 0)
        if not np.isnan(rates).all():
            best[rows] = values[rows, np.nanargmax(rates)]
            worst[rows] = values[rows, np.nanargmin(rates)]
        kept, seed = values[rows][:, ~np.isnan(rates)], draw_key(by_fact.seed, relation)
        deviations[relation] = _deviation(kept, by_fact.subject[rows], seed)
    stdev = STDEV.of(task=task)
    return {
        **by_fact.estimates(BEST.of(task=task).id, best),
        **by_fact.estimates(WORST.of(task=task).id, worst),
        **{stdev.at(f"relation.{id}"): _estimated(found) for id, found in deviations.items()},
        stdev.at(RELATIONS): _estimated([d for found in deviations.values() for d in found]),
    }


def _deviation(values: Floats, subjects: np.ndarray, seed: int) -> list[Deviation]:
    """The deviation between the templates of a relation; none of fewer than two."""
    if values.shape[1] < 2:
        return []
    some = ~np.isnan(values).all(axis=1)
    rates = resampled_rates(values[some], subjects[some], np.random.default_rng(seed))
    drawn = np.where(np.isnan(rates), rates[0], rates)
    # rounded, because equal accuracies may seem to differ by their last digit
    return [(np.round(np.std(drawn, axis=1, ddof=1), 12), int(some.sum()))]


def _estimated(deviations: Sequence[Deviation]) -> Estimate:
    if not deviations:
        return Estimate.not_measured()
    mean = np.mean([values for values, _ in deviations], axis=0)
    return around(float(mean[0]), mean[1:], sum(n for _, n in deviations))
