"""Every number of `framing`, by its name. Knows judgements in arrays, no tables.

A fact's accuracy in a task is its mean over the task's templates, with false statements first
averaged over the wrong names; a relation's is the mean over its facts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from sonde.core.fingerprints import draw_key
from sonde.core.reports import Estimate
from sonde.metrics.estimates import Resampled, Sample
from sonde.metrics.grid import Floats
from sonde.probes.framing.ask import Task, Way
from sonde.probes.framing.tally import (
    MISSING,
    RIGHT,
    SAID_FALSE,
    SAID_NEITHER,
    SAID_TRUE,
    Cells,
    Measured,
    shares,
)
from sonde.stats.draws import resampled_sums
from sonde.stats.intervals import percentile_interval

OVER = "mean_over_relations"

Table = Callable[[Cells], Floats]
"""One number for each fact and template, or for each fact; nan where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A task as it is reported: whose templates it has, and how its answers are judged."""

    id: str
    task: Task
    words: str
    judged: str
    table: Table


def _neg(way: Way, said: int, cells: Cells) -> Floats:
    return over(shares(cells.fc[way][:, :, 1:], said), 2)


def _pos(way: Way, said: int, cells: Cells) -> Floats:
    return shares(cells.fc[way][:, :, 0], said)


def _checks(way: Way, after: str, judged: str) -> tuple[Line, Line]:
    return (
        Line(
            id=f"fc_pos{after}",
            task="fc",
            words="true statement",
            judged=judged,
            table=partial(_pos, way, SAID_TRUE),
        ),
        Line(
            id=f"fc_neg{after}",
            task="fc",
            words="false statement",
            judged=judged,
            table=partial(_neg, way, SAID_FALSE),
        ),
    )


SENTENCE = Line(
    id="wp",
    task="wp",
    words="sentence",
    judged="lemmas",
    table=lambda cells: shares(cells.wp, RIGHT),
)
QUESTION = Line(
    id="qa",
    task="qa",
    words="question",
    judged="equal names",
    table=lambda cells: shares(cells.qa, RIGHT),
)
QUESTION_BY_LEMMAS = Line(
    id="qa_lemma",
    task="qa",
    words="question",
    judged="lemmas",
    table=lambda cells: shares(cells.qa_lemma, RIGHT),
)
LINES: tuple[Line, ...] = (
    SENTENCE,
    QUESTION_BY_LEMMAS,
    QUESTION,
    *_checks("score", "", "option"),
    *_checks("write", "_written", "first word"),
)
"""Every task with each way of judging it."""

READINGS: tuple[tuple[Way, str, str], ...] = (
    ("score", "", "option"),
    ("write", "_written", "first word"),
)
"""How a verdict is read, what the names of its numbers end with, and what it is called."""


def measure(found: Sequence[Measured], seed: int) -> dict[str, Estimate]:
    """Everything that is estimated."""
    numbers = Numbers(found=found, seed=seed)
    for line in LINES:
        numbers.put(f"accuracy.{line.id}", _mean(line.table))
        numbers.put_spread(line.id, line.table)
    for way, after, _ in READINGS:
        _put_checks(numbers, way, after)
    numbers.put(
        "readings_agree.fc",
        _halves(lambda c: _agreeing(c)[:, :, 0], lambda c: over(_agreeing(c)[:, :, 1:], 2)),
    )
    _put_controls(numbers)
    _put_told(numbers)
    by_question, by_sentence = _mean(QUESTION_BY_LEMMAS.table), _mean(SENTENCE.table)
    numbers.put("question_minus_sentence", by_question, by_sentence)
    return numbers.made


def _put_checks(numbers: Numbers, way: Way, after: str) -> None:
    """Both kinds of statement together, each as much as the other."""
    balanced = _halves(partial(_pos, way, SAID_TRUE), partial(_neg, way, SAID_FALSE))
    numbers.put(f"accuracy.fc{after}", balanced)
    for name, said in (
        ("said_true", SAID_TRUE),
        ("said_false", SAID_FALSE),
        ("said_neither", SAID_NEITHER),
    ):
        shared = _halves(partial(_pos, way, said), partial(_neg, way, said))
        numbers.put(f"{name}.fc{after}", shared)


def _agreeing(cells: Cells) -> Floats:
    """Whether a statement has the same verdict by option and as written; nan if one is missing."""
    one, other = cells.fc["score"], cells.fc["write"]
    there = (one != MISSING) & (other != MISSING)
    same = (one == other) & (one != SAID_NEITHER)
    return np.where(there, same.astype(np.float64), np.nan)


def _put_controls(numbers: Numbers) -> None:
    for line in (SENTENCE, QUESTION_BY_LEMMAS, QUESTION):
        control = {
            one.relation.id: (one.by_name if line is QUESTION else one.by_lemma).astype(np.float64)
            for one in numbers.found
        }
        numbers.put_control(line.id, _mean(line.table), control)
    for _, after, _ in READINGS:
        for name in (OVER, *(f"relation.{one.relation.id}" for one in numbers.found)):
            balanced = numbers.made[f"accuracy.fc{after}.{name}"]
            half, above = _beside_half(balanced)
            numbers.made[f"control.same_verdict.fc{after}.{name}"] = half
            numbers.made[f"above_half.fc{after}.{name}"] = above


def _beside_half(share: Estimate) -> tuple[Estimate, Estimate]:
    """One half, as sure as can be, and how far a share is above it."""
    if share.value is None:
        return Estimate.not_measured(), Estimate.not_measured()
    half = Estimate(value=0.5, low=None, high=None, n=share.n)
    low, high = share.ends
    return half, Estimate(value=share.value - 0.5, low=low - 0.5, high=high - 0.5, n=share.n)


def _put_told(numbers: Numbers) -> None:
    """What a name in front of the base question does."""

    def none(cells: Cells) -> Floats:
        if not cells.qa.shape[1]:
            return np.full(len(cells.qa), np.nan)
        return shares(cells.qa[:, 0], RIGHT)

    def right(cells: Cells) -> Floats:
        return shares(cells.told[:, 0], RIGHT)

    def wrong(cells: Cells) -> Floats:
        return over(shares(cells.told[:, 1:], RIGHT), 1)

    numbers.put("told.none", none)
    numbers.put("told.right", right)
    numbers.put("told.wrong", wrong)
    numbers.put("told_minus_none.right", right, none)
    numbers.put("told_minus_none.wrong", wrong, none)
    numbers.put("copied.right", lambda cells: shares(cells.copied[:, 0], RIGHT))
    numbers.put("copied.wrong", lambda cells: over(shares(cells.copied[:, 1:], RIGHT), 1))


def over(values: Floats, axis: int) -> Floats:
    """The mean along an axis of what is there; nan where nothing is."""
    there = ~np.isnan(values)
    counts = there.sum(axis=axis)
    sums = np.where(there, values, 0.0).sum(axis=axis)
    found = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    # rounded, or equal means would seem to differ by their last digit
    return np.asarray(np.round(found, 12))


def _mean(table: Table) -> Table:
    return lambda cells: over(table(cells), 1)


def _halves(one: Table, other: Table) -> Table:
    """The mean of two, for facts that have both."""
    return lambda cells: (over(one(cells), 1) + over(other(cells), 1)) / 2


@dataclass(slots=True, kw_only=True, eq=False)
class Numbers:
    """Estimates by name, made one by one: each relation's own, and the mean over relations."""

    found: Sequence[Measured]
    seed: int
    made: dict[str, Estimate] = field(default_factory=dict)

    def put(self, name: str, value: Table, minus: Table | None = None) -> None:
        """The mean of a value, or of the difference of two, over the facts that have it."""
        self._add(
            name,
            {
                one.relation.id: _sample(
                    one, value(one.cells), None if minus is None else minus(one.cells)
                )
                for one in self.found
            },
        )

    def put_control(self, id: str, value: Table, control: Mapping[str, Floats]) -> None:
        """What the commonest object is worth on the same facts, and the difference."""
        alone, beside = {}, {}
        for one in self.found:
            own = value(one.cells)
            guess = np.where(np.isnan(own), np.nan, control[one.relation.id])
            alone[one.relation.id] = _sample(one, guess, None)
            beside[one.relation.id] = _sample(one, own, guess)
        self._add(f"control.majority.{id}", alone)
        self._add(f"above_control.{id}", beside)

    def put_spread(self, id: str, table: Table) -> None:
        """The best and the worst template of each relation, and the deviation between them."""
        tables = {one.relation.id: table(one.cells) for one in self.found}
        for name, chosen in (("best", np.argmax), ("worst", np.argmin)):
            samples = {
                one.relation.id: _sample(one, _column(tables[one.relation.id], chosen), None)
                for one in self.found
            }
            self._add(f"{name}.{id}", samples)
        spreads = []
        for one in self.found:
            made = _spread(one, tables[one.relation.id], self.seed)
            spreads += [] if made is None else [made]
            self.made[f"stdev.{id}.relation.{one.relation.id}"] = _estimated(
                [] if made is None else [made]
            )
        self.made[f"stdev.{id}.{OVER}"] = _estimated(spreads)

    def _add(self, name: str, samples: Mapping[str, Sample]) -> None:
        resampled = Resampled(samples, self.seed)
        self.made[f"{name}.{OVER}"] = resampled.mean_over_relations()
        for relation in samples:
            self.made[f"{name}.relation.{relation}"] = resampled.relation(relation)


def _sample(one: Measured, values: Floats, minus: Floats | None) -> Sample:
    kept = ~np.isnan(values) if minus is None else ~np.isnan(values) & ~np.isnan(minus)
    return Sample(
        values=values[kept],
        clusters=one.subjects[kept],
        minus=None if minus is None else minus[kept],
    )


def by_template(table: Floats) -> Floats:
    """The accuracy of every template over the facts that were asked with it."""
    return over(table, 0)


def _column(table: Floats, chosen: Callable[[Floats], np.intp]) -> Floats:
    """The facts under the template chosen by its accuracy, of several the first."""
    accuracies = by_template(table)
    known = np.flatnonzero(~np.isnan(accuracies))
    if not len(known):
        return np.full(len(table), np.nan)
    return table[:, known[chosen(accuracies[known])]]


Spread = tuple[float, Floats, int]
"""A standard deviation, the same with other subjects drawn, and how many facts it is of."""


def _spread(one: Measured, table: Floats, seed: int) -> Spread | None:
    """The deviation between the templates of a relation; none of fewer than two."""
    whole = by_template(table)
    kept = table[:, ~np.isnan(whole)]
    if kept.shape[1] < 2:
        return None
    whole = whole[~np.isnan(whole)]
    some = ~np.isnan(kept).all(axis=1)
    there = ~np.isnan(kept[some])
    _, index = np.unique(one.subjects[some], return_inverse=True)
    rows = np.zeros((index.max() + 1, 2 * kept.shape[1]))
    np.add.at(rows, index, np.hstack([np.where(there, kept[some], 0.0), there]))
    rng = np.random.default_rng(draw_key(seed, one.relation.id))
    sums, counts = np.split(resampled_sums(rows, rng), 2, axis=1)
    drawn = np.divide(sums, counts, out=np.tile(whole, (len(sums), 1)), where=counts > 0)
    # rounded, because equal accuracies may seem to differ by their last digit
    value, others = np.std(whole, ddof=1), np.std(drawn, axis=1, ddof=1)
    return round(float(value), 12), np.round(others, 12), int(some.sum())


def _estimated(spreads: Sequence[Spread]) -> Estimate:
    if not spreads:
        return Estimate.not_measured()
    value = float(np.mean([one[0] for one in spreads]))
    low, high = percentile_interval(np.mean([one[1] for one in spreads], axis=0))
    n = sum(one[2] for one in spreads)
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=n)
