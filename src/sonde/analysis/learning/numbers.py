"""Every number about what runs may have learnt from training facts. Knows sheets alone.

Gains are paired: a run less the one it is set against, on the same facts. Intervals resample
subjects within their relation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from sonde.analysis.learning.sheets import Learning, Sheet
from sonde.core.reports import Estimate
from sonde.core.words import above_zero
from sonde.metrics.cells import around, stream
from sonde.metrics.estimates import Resampled, Sample, p_value
from sonde.metrics.grid import Bools, Floats
from sonde.stats.intervals import DRAWS, wilson

KINDS = ("1-1", "N-1", "N-M")
RELATIONS = "mean_over_relations"
FACTS = "mean_over_facts"
OVER = (RELATIONS, FACTS)

Estimates = dict[str, Estimate]
Values = Callable[[Sheet], Bools]


def numbers(found: Learning, seed: int) -> Estimates:
    """All estimates by name."""
    estimates = dict(_of_facts(found, seed))
    for name in found.names:
        estimates |= {f"{key}.run.{name}": value for key, value in _of_run(found, name, seed)}
    return estimates


def _of_facts(found: Learning, seed: int) -> Iterator[tuple[str, Estimate]]:
    """What does not depend on the run: how many facts are easy, and what the majority would get."""
    easy = _resampled(found.split, _easy, seed)
    yield "easy.share.mean_over_facts", easy.mean_over_facts()
    for sheet in found.split:
        yield f"easy.share.relation.{sheet.id}", easy.relation(sheet.id)
    taught = [sheet for sheet in found.sheets if sheet.lesson.majority]
    test = _resampled(taught, _is_majority, seed)
    shares = [sheet.lesson.train_share(sheet.lesson.majority) or 0.0 for sheet in taught]
    yield "majority.test.mean_over_relations", test.mean_over_relations()
    yield "majority.train.mean_over_relations", counted(shares)
    for sheet, share in zip(taught, shares, strict=True):
        yield f"majority.test.relation.{sheet.id}", test.relation(sheet.id)
        facts = sum(sheet.lesson.trained.values())
        yield f"majority.train.relation.{sheet.id}", counted([share], facts)


def counted(shares: Sequence[float], n: int | None = None) -> Estimate:
    """A mean that is counted, not estimated: it has no interval."""
    if not shares:
        return Estimate.not_measured()
    n = len(shares) if n is None else n
    return Estimate(value=float(np.mean(shares)), low=None, high=None, n=n)


def _of_run(found: Learning, name: str, seed: int) -> Iterator[tuple[str, Estimate]]:
    yield from _accuracy(found, name, seed)
    yield from _gain(found, name, seed)
    yield from _majority(found, name, seed)
    yield from _subsets(found, name, seed)
    yield from _parts(found, name, seed)


def _accuracy(found: Learning, name: str, seed: int) -> Iterator[tuple[str, Estimate]]:
    sheets, right = found.having(name), right_of(name)
    made = _resampled(sheets, right, seed)
    yield from _averages("accuracy", made)
    yield from _by_kind("accuracy", made, sheets)
    yield from ((f"accuracy.relation.{s.id}", made.relation(s.id)) for s in sheets)
    uhn = _resampled(sheets, right, seed, where=lambda sheet: ~sheet.guessable[name])
    yield f"accuracy.uhn.{RELATIONS}", uhn.mean_over_relations()


def _gain(found: Learning, name: str, seed: int) -> Iterator[tuple[str, Estimate]]:
    base = found.base(name)
    if name == base:
        return
    sheets = found.having(name, base)
    made = _resampled(sheets, right_of(name), seed, minus=right_of(base))
    yield from _averages("gain", made)
    yield from _by_kind("gain", made, sheets)
    yield from ((f"gain.relation.{s.id}", made.relation(s.id)) for s in sheets)
    value = p_value(made.samples, seed, f"gain.{name}")
    n = sum(len(sheet.facts) for sheet in sheets)
    yield "gain.p_value", Estimate(value=value, low=None, high=None, n=n)


def _majority(found: Learning, name: str, seed: int) -> Iterator[tuple[str, Estimate]]:
    """How often the commonest training object is answered, and how often that is right."""
    sheets = [sheet for sheet in found.having(name) if sheet.lesson.majority]
    answered = _resampled(sheets, majority_of(name), seed)
    right = _resampled(sheets, right_by_majority(name), seed)
    other = _resampled(sheets, right_by_other(name), seed)
    for kind, made in (("answered", answered), ("right", right), ("other_right", other)):
        yield f"majority.{kind}.{RELATIONS}", made.mean_over_relations()
        for sheet in sheets:
            yield f"majority.{kind}.relation.{sheet.id}", made.relation(sheet.id)
    share = ratio(sheets, right_by_majority(name), right_of(name), seed, f"majority:{name}")
    yield "majority.share_of_right", share


def _subsets(found: Learning, name: str, seed: int) -> Iterator[tuple[str, Estimate]]:
    """Accuracy and gain on easy and on hard facts."""
    base = found.base(name)
    for subset, where in (("easy", _easy), ("hard", _hard)):
        sheets = [sheet for sheet in found.split if name in sheet.right]
        made = _resampled(sheets, right_of(name), seed, where=where)
        yield from _averages(f"{subset}.accuracy", made)
        for sheet in sheets:
            yield f"{subset}.accuracy.relation.{sheet.id}", made.relation(sheet.id)
        if name != base:
            shared = [sheet for sheet in sheets if base in sheet.right]
            less = _resampled(shared, right_of(name), seed, where=where, minus=right_of(base))
            yield from _averages(f"{subset}.gain", less)


def _parts(found: Learning, name: str, seed: int) -> Iterator[tuple[str, Estimate]]:
    """Where a gain comes from: parts of the mean over facts that add up to it."""
    own = [sheet for sheet in found.split if name in sheet.right]
    share = ratio(own, _both(_easy, right_of(name)), right_of(name), seed, f"easy:{name}")
    yield "easy.share_of_right", share
    base = found.base(name)
    if name == base:
        return
    split = [sheet for sheet in own if base in sheet.right]
    taught = [sheet for sheet in found.having(name, base) if sheet.lesson.majority]
    for part, sheets, of in (
        ("easy", split, lambda run: _both(_easy, right_of(run))),
        ("hard", split, lambda run: _both(_hard, right_of(run))),
        ("majority", taught, right_by_majority),
        ("other", taught, right_by_other),
    ):
        made = _resampled(sheets, of(name), seed, minus=of(base))
        yield f"gain.part.{part}.{FACTS}", made.mean_over_facts()
    whole = _resampled(split, right_of(name), seed, minus=right_of(base))
    p = p_value(whole.samples, seed, f"gain.facts.{name}", over="facts")
    clear = above_zero(whole.mean_over_facts(), p)
    for subset, where in (("easy", _easy), ("hard", _hard)):
        # a share of what may be no gain says nothing
        of_gain = _share_of_gain(split, name, base, where, seed) if clear else None
        yield f"gain.share.{subset}", of_gain or Estimate.not_measured()


def _share_of_gain(
    sheets: Sequence[Sheet], name: str, base: str, where: Values, seed: int
) -> Estimate:
    """The share of a gain on some facts."""

    def less(sheet: Sheet) -> Floats:
        return sheet.right[name].astype(np.float64) - sheet.right[base]

    # one stream for all parts, so that their intervals are of the same draws
    return _ratio(sheets, lambda s: less(s) * where(s), less, seed, f"gain:{name}")


def ratio(sheets: Sequence[Sheet], part: Values, whole: Values, seed: int, name: str) -> Estimate:
    """Of the facts for which one thing holds, the share for which another does; n counts these."""
    return _ratio(
        sheets,
        lambda sheet: part(sheet).astype(np.float64),
        lambda sheet: whole(sheet).astype(np.float64),
        seed,
        name,
    )


def _ratio(
    sheets: Sequence[Sheet],
    part: Callable[[Sheet], Floats],
    whole: Callable[[Sheet], Floats],
    seed: int,
    name: str,
) -> Estimate:
    sums = [_by_subject(sheet, part(sheet), whole(sheet)) for sheet in sheets]
    totals = sum((own.sum(axis=0) for own in sums), np.zeros(2))
    if totals[1] <= 0:
        return Estimate.not_measured()
    draws = np.zeros((DRAWS, 2))
    for own, sheet in zip(sums, sheets, strict=True):
        draws += _resampled_sums(own, stream(seed, f"{name}:{sheet.id}"))
    kept = draws[draws[:, 1] > 0]
    n = sum(int(np.abs(whole(sheet)).sum()) for sheet in sheets)
    value = float(totals[0] / totals[1])
    drawn = kept[:, 0] / kept[:, 1] if len(kept) else np.array([value])
    if np.ptp(drawn) == 0 and 0 <= value <= 1:  # all or nothing: others may differ
        low, high = wilson(value * n, n)
        return Estimate(value=value, low=low, high=high, n=n)
    return around(value, drawn, n)


def _by_subject(sheet: Sheet, *columns: Floats) -> Floats:
    return np.column_stack([np.bincount(sheet.clusters, column) for column in columns])


def _resampled_sums(sums: Floats, rng: np.random.Generator) -> Floats:
    """Sums when subjects are drawn anew; there are few kinds, so it draws how often each comes."""
    kinds, counts = np.unique(sums, axis=0, return_counts=True)
    return np.asarray(rng.multinomial(len(sums), counts / len(sums), size=DRAWS) @ kinds)


def _averages(name: str, made: Resampled) -> Iterator[tuple[str, Estimate]]:
    yield f"{name}.{RELATIONS}", made.mean_over_relations()
    yield f"{name}.{FACTS}", made.mean_over_facts()


def _by_kind(name: str, made: Resampled, sheets: Iterable[Sheet]) -> Iterator[tuple[str, Estimate]]:
    kinds = {sheet.id: sheet.lesson.relation.kind for sheet in sheets}
    for kind in KINDS:
        only = [id for id, own in kinds.items() if own == kind]
        yield f"{name}.type.{kind}", made.mean_over_relations(only)


def _resampled(
    sheets: Iterable[Sheet],
    values: Values,
    seed: int,
    *,
    where: Values | None = None,
    minus: Values | None = None,
) -> Resampled:
    samples = {}
    for sheet in sheets:
        kept = np.ones(len(sheet.facts), dtype=np.bool_) if where is None else where(sheet)
        samples[sheet.id] = Sample(
            values=values(sheet)[kept].astype(np.float64),
            clusters=sheet.clusters[kept],
            minus=None if minus is None else minus(sheet)[kept].astype(np.float64),
        )
    return Resampled(samples, seed)


def right_of(name: str) -> Values:
    """The facts that a run answers right."""
    return lambda sheet: sheet.right[name]


def majority_of(name: str) -> Values:
    """The facts that a run answers with the commonest training object."""
    return lambda sheet: sheet.answered(name, sheet.lesson.majority)


def right_by_majority(name: str) -> Values:
    """The facts that a run answers right with the commonest training object."""
    return lambda sheet: sheet.right[name] & majority_of(name)(sheet)


def right_by_other(name: str) -> Values:
    """The facts that a run answers right with another object."""
    return lambda sheet: sheet.right[name] & ~majority_of(name)(sheet)


def _is_majority(sheet: Sheet) -> Bools:
    return sheet.of(sheet.lesson.majority)


def _easy(sheet: Sheet) -> Bools:
    assert sheet.easy is not None
    return sheet.easy


def _hard(sheet: Sheet) -> Bools:
    return ~_easy(sheet)


def _both(one: Values, other: Values) -> Values:
    return lambda sheet: one(sheet) & other(sheet)
