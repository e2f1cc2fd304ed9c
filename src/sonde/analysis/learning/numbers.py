"""Every number about what runs may have learnt from training facts, single facts with every run's
answer, and objects that runs answer too often. Knows sheets alone.

Gains are paired: a run less the one it is set against, on the same facts. Intervals resample
subjects within their relation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sonde.analysis.learning.sheets import Learning, Sheet
from sonde.core.fingerprints import draw_key
from sonde.core.reports import Estimate
from sonde.core.words import above_zero
from sonde.metrics.estimates import Resampled, Sample, p_value
from sonde.metrics.grid import Bools, Floats, around, stream
from sonde.reporting.catalogue import FACTS, RELATIONS
from sonde.stats.intervals import DRAWS, wilson

KINDS = ("1-1", "N-1", "N-M")
TYPE, RELATION = "type", "relation"
OVER = (RELATIONS, FACTS, TYPE, RELATION)
NOTHING = Estimate.not_measured()
DRAWN = 10
NEARLY_ALWAYS = 0.95
TOO_OFTEN = 0.1
"""Answers beyond an object's share of the facts from which it counts as over-predicted."""

Named = Iterator[tuple[str, Estimate]]
Values = Callable[[Sheet], Bools | Floats]
"""A value for each fact of a relation."""


def numbers(runs: Learning, seed: int) -> dict[str, Estimate]:
    """All estimates by name."""
    estimates = dict(_of_facts(runs, seed))
    for name in runs.names:
        for part in (_accuracy, _gain, _majority, _subsets, _parts):
            estimates |= {f"{key}.run.{name}": value for key, value in part(runs, name, seed)}
    return estimates


def _of_facts(runs: Learning, seed: int) -> Named:
    """What does not depend on the run: how many facts are easy, and what the majority would get."""
    yield from _means("easy.share", runs.split, _easy, seed, (FACTS, RELATION))
    taught = [sheet for sheet in runs.sheets if sheet.lesson.majority]
    yield from _means("majority.test", taught, _has_majority, seed, (RELATIONS, RELATION))
    shares = {s.id: s.lesson.train_share(s.lesson.majority) or 0.0 for s in taught}
    mean = _counted(float(np.mean([*shares.values()])), len(shares)) if shares else NOTHING
    yield f"majority.train.{RELATIONS}", mean
    for sheet in taught:
        facts = sum(sheet.lesson.trained.values())
        yield f"majority.train.relation.{sheet.id}", _counted(shares[sheet.id], facts)


def _counted(value: float, n: int) -> Estimate:
    """A number that is counted, not estimated: it has no interval."""
    return Estimate(value=value, low=None, high=None, n=n)


def _accuracy(runs: Learning, name: str, seed: int) -> Named:
    sheets, right = runs.having(name), right_of(name)
    yield from _means("accuracy", sheets, right, seed, OVER)

    def unguessable(sheet: Sheet) -> Bools:
        return ~sheet.guessable[name]

    yield from _means("accuracy.uhn", sheets, right, seed, (RELATIONS,), where=unguessable)


def _gain(runs: Learning, name: str, seed: int) -> Named:
    base = runs.base(name)
    if name == base:
        return
    sheets = runs.having(name, base)
    yield from _means("gain", sheets, right_of(name), seed, OVER, minus=right_of(base))
    less = _samples(sheets, right_of(name), minus=right_of(base))
    n = sum(len(sheet.facts) for sheet in sheets)
    yield "gain.p_value", _counted(p_value(less, seed, f"gain.{name}"), n)


def _majority(runs: Learning, name: str, seed: int) -> Named:
    """How often the commonest training object is answered, and how often that is right."""
    sheets = [sheet for sheet in runs.having(name) if sheet.lesson.majority]
    for kind, values in (
        ("answered", majority_of(name)),
        ("right", right_by_majority(name)),
        ("other_right", right_by_other(name)),
    ):
        yield from _means(f"majority.{kind}", sheets, values, seed, (RELATIONS, RELATION))
    share = ratio(sheets, right_by_majority(name), right_of(name), seed, f"majority:{name}")
    yield "majority.share_of_right", share


def _subsets(runs: Learning, name: str, seed: int) -> Named:
    """Accuracy and gain on easy and on hard facts."""
    base, right = runs.base(name), right_of(name)
    sheets = [sheet for sheet in runs.split if name in sheet.right]
    shared = [sheet for sheet in sheets if base in sheet.right]
    for subset, where in SUBSETS.items():
        over = (RELATIONS, FACTS, RELATION)
        yield from _means(f"{subset}.accuracy", sheets, right, seed, over, where=where)
        if name != base:
            yield from _means(
                f"{subset}.gain", shared, right, seed, over[:2], where=where, minus=right_of(base)
            )


def _parts(runs: Learning, name: str, seed: int) -> Named:
    """Where a gain comes from: parts of the mean over facts that add up to it."""
    own = [sheet for sheet in runs.split if name in sheet.right]
    share = ratio(own, _both(_easy, right_of(name)), right_of(name), seed, f"easy:{name}")
    yield "easy.share_of_right", share
    base = runs.base(name)
    if name == base:
        return
    split = [sheet for sheet in own if base in sheet.right]
    taught = [sheet for sheet in runs.having(name, base) if sheet.lesson.majority]
    for part, sheets, of in (
        ("easy", split, lambda run: _both(_easy, right_of(run))),
        ("hard", split, lambda run: _both(_hard, right_of(run))),
        ("majority", taught, right_by_majority),
        ("other", taught, right_by_other),
    ):
        yield from _means(f"gain.part.{part}", sheets, of(name), seed, (FACTS,), minus=of(base))
    whole = _samples(split, right_of(name), minus=right_of(base))
    p = p_value(whole, seed, f"gain.facts.{name}", over="facts")
    clear = above_zero(Resampled(whole, seed).mean_over_facts(), p)

    def less(sheet: Sheet) -> Floats:
        return sheet.right[name].astype(np.float64) - sheet.right[base]

    for subset, where in SUBSETS.items():
        # one stream for all parts, so that their intervals are of the same draws
        share = ratio(split, _product(less, where), less, seed, f"gain:{name}")
        # a share of what may be no gain says nothing
        yield f"gain.share.{subset}", share if clear else NOTHING


def ratio(sheets: Sequence[Sheet], part: Values, whole: Values, seed: int, name: str) -> Estimate:
    """What one thing is of another, summed over facts; n counts the facts of the whole."""
    sums = [_by_subject(sheet, part(sheet), whole(sheet)) for sheet in sheets]
    totals = sum((own.sum(axis=0) for own in sums), np.zeros(2))
    if totals[1] <= 0:
        return Estimate.not_measured()
    draws = np.zeros((DRAWS, 2))
    for own, sheet in zip(sums, sheets, strict=True):
        draws += _resampled_sums(own, stream(seed, f"{name}:{sheet.id}"))
    kept = draws[draws[:, 1] > 0]
    n = sum(int(np.abs(whole(sheet).astype(np.float64)).sum()) for sheet in sheets)
    value = float(totals[0] / totals[1])
    drawn = kept[:, 0] / kept[:, 1] if len(kept) else np.array([value])
    if np.ptp(drawn) == 0 and 0 <= value <= 1:  # all or nothing: others may differ
        low, high = wilson(value * n, n)
        return Estimate(value=value, low=low, high=high, n=n)
    return around(value, drawn, n)


def _by_subject(sheet: Sheet, *columns: Bools | Floats) -> Floats:
    sums = [np.bincount(sheet.clusters, column.astype(np.float64)) for column in columns]
    return np.column_stack(sums).astype(np.float64)


def _resampled_sums(sums: Floats, rng: np.random.Generator) -> Floats:
    """Sums when subjects are drawn anew; there are few kinds, so it draws how often each comes."""
    kinds, counts = np.unique(sums, axis=0, return_counts=True)
    return np.asarray(rng.multinomial(len(sums), counts / len(sums), size=DRAWS) @ kinds)


def _means(
    name: str,
    sheets: Sequence[Sheet],
    values: Values,
    seed: int,
    over: Collection[str],
    *,
    where: Values | None = None,
    minus: Values | None = None,
) -> Named:
    """Means of some facts, less those of another run: over relations, over facts, over relations of
    each type, of each relation."""
    made = Resampled(_samples(sheets, values, where=where, minus=minus), seed)
    if RELATIONS in over:
        yield f"{name}.{RELATIONS}", made.mean_over_relations()
    if FACTS in over:
        yield f"{name}.{FACTS}", made.mean_over_facts()
    for kind in KINDS if TYPE in over else ():
        of_kind = [sheet.id for sheet in sheets if sheet.lesson.relation.kind == kind]
        yield f"{name}.type.{kind}", made.mean_over_relations(of_kind)
    for sheet in sheets if RELATION in over else ():
        yield f"{name}.relation.{sheet.id}", made.relation(sheet.id)


def _samples(
    sheets: Iterable[Sheet],
    values: Values,
    *,
    where: Values | None = None,
    minus: Values | None = None,
) -> dict[str, Sample]:
    samples = {}
    for sheet in sheets:
        kept = slice(None) if where is None else where(sheet)
        samples[sheet.id] = Sample(
            values=values(sheet)[kept].astype(np.float64),
            clusters=sheet.clusters[kept],
            minus=None if minus is None else minus(sheet)[kept].astype(np.float64),
        )
    return samples


def right_of(name: str) -> Values:
    """The facts that a run answers right."""
    return lambda sheet: sheet.right[name]


def answered_with(run: str, name: str) -> Values:
    """The facts that a run answers with an object."""
    return lambda sheet: sheet.answered(run, name)


def majority_of(name: str) -> Values:
    """The facts that a run answers with the commonest training object."""
    return lambda sheet: sheet.answered(name, sheet.lesson.majority)


def right_by_majority(name: str) -> Values:
    """The facts that a run answers right with the commonest training object."""
    return _both(right_of(name), majority_of(name))


def right_by_other(name: str) -> Values:
    """The facts that a run answers right with another object."""
    return lambda sheet: sheet.right[name] & ~sheet.answered(name, sheet.lesson.majority)


def _has_majority(sheet: Sheet) -> Bools:
    return sheet.of(sheet.lesson.majority)


def _easy(sheet: Sheet) -> Bools:
    assert sheet.easy is not None
    return sheet.easy


def _hard(sheet: Sheet) -> Bools:
    return ~_easy(sheet)


SUBSETS: dict[str, Values] = {"easy": _easy, "hard": _hard}


def _both(one: Values, other: Values) -> Values:
    return lambda sheet: one(sheet).astype(np.bool_) & other(sheet).astype(np.bool_)


def _product(one: Values, other: Values) -> Values:
    return lambda sheet: one(sheet) * other(sheet)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A fact as it is shown, in the words of the first run, with the answer of every run."""

    subset: str
    relation: str
    sentence: str
    object: str
    answers: tuple[tuple[str, bool] | None, ...]


def drawn_facts(runs: Learning, seed: int, count: int = DRAWN) -> list[Drawn]:
    """So many easy and so many hard facts, drawn by the seed, of those that some run answers right
    and whose object is not the commonest training object."""
    shown = []
    for subset in SUBSETS:
        places = [(sheet, i) for sheet in runs.split for i in _worth_showing(sheet, subset)]
        places.sort(key=lambda place: (draw_key(seed, place[0].facts[place[1]].id), place[0].id))
        shown += [_drawn(runs.names, subset, sheet, i) for sheet, i in places[:count]]
    return shown


def _worth_showing(sheet: Sheet, subset: str) -> list[int]:
    some = np.any(list(sheet.right.values()), axis=0)
    kept = some & ~sheet.of(sheet.lesson.majority) & SUBSETS[subset](sheet)
    return [int(i) for i in np.flatnonzero(kept)]


def _drawn(names: Sequence[str], subset: str, sheet: Sheet, i: int) -> Drawn:
    fact, template = sheet.facts[i], next(iter(sheet.templates.values()))
    object = fact.objects[0].name
    return Drawn(
        subset=subset,
        relation=sheet.id,
        sentence=template.replace("[X]", fact.subject.name).replace("[Y]", object),
        object=object,
        answers=tuple(
            (sheet.answers[name][i], bool(sheet.right[name][i])) if name in sheet.right else None
            for name in names
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Often:
    """An object that a run answers more often than the facts have it."""

    run: str
    relation: str
    template: str
    object: str
    majority: bool
    answered: Estimate
    train: float | None
    test: float


def answered_too_often(runs: Learning, seed: int) -> list[Often]:
    """The commonest training object where a prompt elicits it nearly always, and other objects
    that are answered clearly more often than the facts have them; the worst first."""
    told = [
        often
        for method in runs.methods
        if not method.counting
        for sheet in runs.having(method.name)
        for often in _too_often(sheet, method.name, seed)
    ]
    return sorted(told, key=lambda o: (-((o.answered.value or 0.0) - o.test), o.run, o.relation))


def _too_often(sheet: Sheet, run: str, seed: int) -> Iterator[Often]:
    for name, count in Counter(sheet.answers[run]).most_common():
        share, test = count / len(sheet.facts), float(sheet.of(name).mean())
        majority = name == sheet.lesson.majority
        if share <= NEARLY_ALWAYS if majority else share - test < TOO_OFTEN:
            continue
        samples = _samples([sheet], answered_with(run, name))
        answered = Resampled(samples, seed).relation(sheet.id)
        if majority or (answered.low is not None and answered.low > test):
            yield Often(
                run=run,
                relation=sheet.id,
                template=sheet.templates[run],
                object=name,
                majority=majority,
                answered=answered,
                train=sheet.lesson.train_share(name),
                test=test,
            )


def elicited(often: Sequence[Often], run: str) -> list[str]:
    """The relations in which a run's prompt elicits the commonest training object nearly always."""
    return [one.relation for one in often if one.run == run and one.majority]
