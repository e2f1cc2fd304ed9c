"""Every number of `framing`, by its name. Knows judgements in arrays, no tables.

A fact's accuracy in a task is its mean over the task's templates, with false statements first
averaged over the wrong names; a relation's is the mean over its facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from sonde.core.fingerprints import draw_key
from sonde.core.reports import Estimate
from sonde.metrics.estimates import ByFact
from sonde.metrics.grid import Floats, Ints
from sonde.probes.framing.ask import Task
from sonde.probes.framing.judge import (
    MISSING,
    RIGHT,
    SAID_FALSE,
    SAID_NEITHER,
    SAID_TRUE,
    Cells,
    Outcomes,
    Way,
    shares,
)
from sonde.stats.draws import resampled_sums
from sonde.stats.intervals import percentile_interval

Table = Callable[[Cells], Floats]
"""One number for each fact and template, or for each fact; nan where there is none."""


@dataclass(frozen=True, slots=True)
class Line:
    """A task as it is reported: whose templates it has, and how its answers are judged."""

    id: str
    task: Task
    words: str
    judged: str
    table: Table


def _pos(way: Way, said: int, cells: Cells) -> Floats:
    return shares(cells.fc[way][:, :, 0], said)


def _neg(way: Way, said: int, cells: Cells) -> Floats:
    return over(shares(cells.fc[way][:, :, 1:], said), 2)


def _right(name: str, cells: Cells) -> Floats:
    return shares(getattr(cells, name), RIGHT)


READINGS: tuple[tuple[Way, str, str], ...] = (
    ("scored", "", "option"),
    ("generated", "_written", "first word"),
)
"""How a verdict is read, what the names of its numbers end with, and what it is called."""

LINES: tuple[Line, ...] = (
    Line("wp", "wp", "sentence", "lemmas", partial(_right, "wp")),
    Line("qa_lemma", "qa", "question", "lemmas", partial(_right, "qa_lemma")),
    Line("qa", "qa", "question", "equal names", partial(_right, "qa")),
    *(
        Line(f"fc_{kind}{after}", "fc", f"{truth} statement", judged, partial(table, way, said))
        for way, after, judged in READINGS
        for kind, truth, said, table in (
            ("pos", "true", SAID_TRUE, _pos),
            ("neg", "false", SAID_FALSE, _neg),
        )
    ),
)
"""Every task with each way of judging it."""


def measure(outcomes: Outcomes, seed: int) -> dict[str, Estimate]:
    """Everything that is estimated."""
    by_fact = ByFact(
        ids=tuple(relation.id for relation in outcomes.relations),
        relation=outcomes.relation,
        subject=outcomes.subject,
        seed=seed,
    )
    cells = outcomes.cells
    values, estimates = dict(_values(cells)), dict[str, Estimate]()
    for name, value in values.items():
        estimates |= by_fact.estimates(name, value)
    for line in LINES:
        estimates |= _spread(by_fact, line.id, line.table(cells))
    for task in ("wp", "qa_lemma", "qa"):
        value = values[f"accuracy.{task}"]
        guess = np.where(
            np.isnan(value), np.nan, outcomes.by_name if task == "qa" else outcomes.by_lemma
        )
        estimates |= by_fact.estimates(f"control.majority.{task}", guess)
        estimates |= by_fact.estimates(f"above_control.{task}", value, guess)
    for _, after, _ in READINGS:
        for name in ("mean_over_relations", *(f"relation.{id}" for id in by_fact.ids)):
            half, above = _beside_half(estimates[f"accuracy.fc{after}.{name}"])
            estimates[f"control.same_verdict.fc{after}.{name}"] = half
            estimates[f"above_half.fc{after}.{name}"] = above
    for told in ("right", "wrong"):
        less = values[f"told.{told}"], values["told.none"]
        estimates |= by_fact.estimates(f"told_minus_none.{told}", *less)
    sides = values["accuracy.qa_lemma"], values["accuracy.wp"]
    return estimates | by_fact.estimates("question_minus_sentence", *sides)


def _values(cells: Cells) -> Iterator[tuple[str, Floats]]:
    """One value for each fact, of every mean."""
    for line in LINES:
        yield f"accuracy.{line.id}", over(line.table(cells), 1)
    for way, after, _ in READINGS:
        yield (
            f"accuracy.fc{after}",
            _halves(_pos(way, SAID_TRUE, cells), _neg(way, SAID_FALSE, cells)),
        )
        for name, said in (("true", SAID_TRUE), ("false", SAID_FALSE), ("neither", SAID_NEITHER)):
            yield f"said_{name}.fc{after}", _halves(_pos(way, said, cells), _neg(way, said, cells))
    agreeing = _agreeing(cells)
    yield "readings_agree.fc", _halves(agreeing[:, :, 0], over(agreeing[:, :, 1:], 2))
    base = shares(cells.qa[:, 0], RIGHT) if cells.qa.shape[1] else np.full(len(cells.qa), np.nan)
    yield "told.none", base
    for name, codes in (("told", cells.told), ("copied", cells.copied)):
        yield f"{name}.right", shares(codes[:, 0], RIGHT)
        yield f"{name}.wrong", over(shares(codes[:, 1:], RIGHT), 1)


def _agreeing(cells: Cells) -> Floats:
    """Whether a statement has the same verdict by option and as written; nan if one is missing."""
    scored, written = cells.fc["scored"], cells.fc["generated"]
    there = (scored != MISSING) & (written != MISSING)
    same = (scored == written) & (scored != SAID_NEITHER)
    return np.where(there, same.astype(np.float64), np.nan)


def _beside_half(share: Estimate) -> tuple[Estimate, Estimate]:
    """One half, as sure as can be, and how far a share is above it."""
    if share.value is None:
        return Estimate.not_measured(), Estimate.not_measured()
    half = Estimate(value=0.5, low=None, high=None, n=share.n)
    low, high = share.ends
    return half, Estimate(value=share.value - 0.5, low=low - 0.5, high=high - 0.5, n=share.n)


def over(values: Floats, axis: int) -> Floats:
    """The mean along an axis of what is there; nan where nothing is."""
    there = ~np.isnan(values)
    counts = there.sum(axis=axis)
    sums = np.where(there, values, 0.0).sum(axis=axis)
    found = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    # rounded, or equal means would seem to differ by their last digit
    return np.asarray(np.round(found, 12))


def _halves(one: Floats, other: Floats) -> Floats:
    """The mean of two, for facts that have both."""
    return (over(one, 1) + over(other, 1)) / 2


def by_template(table: Floats) -> Floats:
    """The accuracy of every template over the facts that were asked with it."""
    return over(table, 0)


def _spread(by_fact: ByFact, id: str, table: Floats) -> dict[str, Estimate]:
    """The best and the worst template of each relation, and the deviation between them."""
    best, worst = np.full((2, len(table)), np.nan)
    estimates, deviations = {}, []
    for number, relation in enumerate(by_fact.ids):
        rows = by_fact.relation == number
        own = table[rows]
        best[rows], worst[rows] = _column(own, np.argmax), _column(own, np.argmin)
        seed = draw_key(by_fact.seed, relation)
        deviation = _deviation(own, by_fact.subject[rows], seed)
        deviations += deviation
        estimates[f"stdev.{id}.relation.{relation}"] = _estimated(deviation)
    return {
        **by_fact.estimates(f"best.{id}", best),
        **by_fact.estimates(f"worst.{id}", worst),
        **estimates,
        f"stdev.{id}.mean_over_relations": _estimated(deviations),
    }


def _column(table: Floats, chosen: Callable[[Floats], np.intp]) -> Floats:
    """The facts under the template chosen by its accuracy, of several the first."""
    accuracies = by_template(table)
    known = np.flatnonzero(~np.isnan(accuracies))
    if not len(known):
        return np.full(len(table), np.nan)
    return table[:, known[chosen(accuracies[known])]]


Spread = tuple[float, Floats, int]
"""A standard deviation, the same with other subjects drawn, and how many facts it is of."""


def _deviation(table: Floats, subjects: Ints, seed: int) -> list[Spread]:
    """The deviation between the templates of a relation; none of fewer than two."""
    whole = by_template(table)
    kept = table[:, ~np.isnan(whole)]
    if kept.shape[1] < 2:
        return []
    whole = whole[~np.isnan(whole)]
    some = ~np.isnan(kept).all(axis=1)
    there = ~np.isnan(kept[some])
    _, index = np.unique(subjects[some], return_inverse=True)
    rows = np.zeros((index.max() + 1, 2 * kept.shape[1]))
    np.add.at(rows, index, np.hstack([np.where(there, kept[some], 0.0), there]))
    sums, counts = np.split(resampled_sums(rows, np.random.default_rng(seed)), 2, axis=1)
    drawn = np.divide(sums, counts, out=np.tile(whole, (len(sums), 1)), where=counts > 0)
    # rounded, because equal accuracies may seem to differ by their last digit
    value, others = np.std(whole, ddof=1), np.std(drawn, axis=1, ddof=1)
    return [(round(float(value), 12), np.round(others, 12), int(some.sum()))]


def _estimated(spreads: Sequence[Spread]) -> Estimate:
    if not spreads:
        return Estimate.not_measured()
    value = float(np.mean([one[0] for one in spreads]))
    low, high = percentile_interval(np.mean([one[1] for one in spreads], axis=0))
    n = sum(one[2] for one in spreads)
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=n)
