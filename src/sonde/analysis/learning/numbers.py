"""Every number about what runs may have learnt from training facts, single facts with every run's
answer, and objects that runs answer too often. Knows the frame of facts alone.

Gains are paired: a run less the one it is set against, on the same facts. Intervals resample
subjects within their relation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sonde.analysis.learning.facts import Learning, Method, by_fact
from sonde.analysis.runs import drawn_sums
from sonde.core.fingerprints import draw_key
from sonde.core.reports import Estimate
from sonde.core.words import above_zero, by_test
from sonde.metrics.estimates import FACTS, RELATIONS, ByFact, Resampled, p_value
from sonde.metrics.judged import Floats, around
from sonde.stats.intervals import wilson

if TYPE_CHECKING:
    from polars import DataFrame

KINDS = ("1-1", "N-1", "N-M")
SUBSETS = ("easy", "hard")
TYPE, RELATION = "type", "relation"
OVER = (RELATIONS, FACTS, TYPE, RELATION)
NOTHING = Estimate.not_measured()
DRAWN = 10
NEARLY_ALWAYS = 0.95
TOO_OFTEN = 0.1
"""Answers beyond an object's share of the facts from which it counts as over-predicted."""

Named = Iterator[tuple[str, Estimate]]


class Answers:
    """What is true of a run's answers, a number for each fact: 1, 0, or nan where not known."""

    def __init__(self, runs: Learning, name: str) -> None:
        self.right = runs.column(f"right {name}")
        self.guessable = runs.column(f"guessable {name}")
        self.majority = runs.column(f"majority {name}")
        easy = runs.column("easy")
        self.subsets = {"easy": easy, "hard": 1 - easy}
        self.parts = {**self.subsets, "majority": self.majority, "other": 1 - self.majority}

    def on(self, subset: str) -> Floats:
        """The right answers to easy or to hard facts; others are not looked at."""
        return np.where(self.subsets[subset] == 1, self.right, np.nan)


def numbers(runs: Learning, seed: int) -> dict[str, Estimate]:
    """All estimates by name."""
    facts = by_fact(runs.frame, seed)
    estimates = dict(_of_facts(runs, facts))
    answers = {name: Answers(runs, name) for name in runs.names}
    for name, of_run in answers.items():
        numbers = _asked(_of_run(runs, facts, name, of_run), runs.having(name))
        if (base := runs.base(name)) != name:
            gains = _gains(runs, facts, name, of_run, answers[base])
            numbers |= _asked(gains, runs.having(name, base))
        estimates |= {f"{key}.run.{name}": estimate for key, estimate in numbers.items()}
    return estimates


def _asked(named: Named, relations: Collection[str]) -> dict[str, Estimate]:
    """The estimates less those of relations that a run was not asked about."""
    kept = {"", *relations}
    return {key: value for key, value in named if key.partition(".relation.")[2] in kept}


def _of_facts(runs: Learning, facts: ByFact) -> Named:
    """What does not depend on the run: how many facts are easy, and what the majority would get."""
    easy, majority = (facts.resampled(runs.column(name)) for name in ("easy", "has_majority"))
    yield from _means(runs, "easy.share", easy, (FACTS, RELATION))
    yield from _means(runs, "majority.test", majority, (RELATIONS, RELATION))
    taught = [lesson for lesson in runs.lessons.values() if lesson.majority]
    shares = [lesson.train_share(lesson.majority) or 0.0 for lesson in taught]
    mean = _counted(float(np.mean(shares)), len(shares)) if shares else NOTHING
    yield f"majority.train.{RELATIONS}", mean
    for lesson, share in zip(taught, shares, strict=True):
        size = sum(lesson.trained.values())
        yield f"majority.train.relation.{lesson.relation.id}", _counted(share, size)


def _of_run(runs: Learning, facts: ByFact, name: str, of: Answers) -> Named:
    """How often a run is right, and how often with the commonest training object."""
    by_relation, right = (RELATIONS, RELATION), of.right
    for key, values, over in (
        ("accuracy", right, OVER),
        ("accuracy.uhn", np.where(of.guessable == 0, right, np.nan), (RELATIONS,)),
        ("majority.answered", of.majority, by_relation),
        ("majority.right", right * of.majority, by_relation),
        ("majority.other_right", right * (1 - of.majority), by_relation),
        ("easy.accuracy", of.on("easy"), (RELATIONS, FACTS, RELATION)),
        ("hard.accuracy", of.on("hard"), (RELATIONS, FACTS, RELATION)),
    ):
        yield from _means(runs, key, facts.resampled(values), over, name)
    for part in ("majority", "easy"):
        share = ratio(facts, right * of.parts[part], right, f"{part}:{name}")
        yield f"{part}.share_of_right", share


def _gains(runs: Learning, facts: ByFact, name: str, run: Answers, base: Answers) -> Named:
    """What a run gains, on which facts, and the parts of the mean over facts that add up to it."""
    gain = facts.resampled(run.right, base.right)
    yield from _means(runs, "gain", gain, OVER, name, runs.base(name))
    p = p_value(gain.samples, facts.seed, f"gain.{name}")
    yield f"gain.{RELATIONS}", by_test(gain.mean_over_relations(), p)
    yield "gain.p_value", _counted(p, gain.mean_over_facts().n)
    for subset in SUBSETS:
        of_subset = facts.resampled(run.on(subset), base.on(subset))
        yield from _means(runs, f"{subset}.gain", of_subset, (RELATIONS, FACTS))
    for part in run.parts:
        after, before = (of.right * of.parts[part] for of in (run, base))
        yield from _means(runs, f"gain.part.{part}", facts.resampled(after, before), (FACTS,))
    yield from _shares_of_gain(facts, name, run, base)


def _shares_of_gain(facts: ByFact, name: str, run: Answers, base: Answers) -> Named:
    """How much of a gain is on easy and on hard facts; a share of what may be no gain says
    nothing."""
    decided = ~np.isnan(run.subsets["easy"])
    gain = facts.resampled(np.where(decided, run.right, np.nan), base.right)
    p = p_value(gain.samples, facts.seed, f"gain.facts.{name}", over="facts")
    clear, less = above_zero(gain.mean_over_facts(), p), run.right - base.right
    for subset in SUBSETS:
        # one stream for all parts, so that their intervals are of the same draws
        share = ratio(facts, less * run.subsets[subset], less, f"gain:{name}")
        yield f"gain.share.{subset}", share if clear else NOTHING


def _counted(value: float, n: int) -> Estimate:
    """A number that is counted, not estimated: it has no interval."""
    return Estimate(value=value, low=None, high=None, n=n)


def _means(runs: Learning, name: str, of: Resampled, over: Sequence[str], *asked: str) -> Named:
    """Means over relations, over facts, over relations of each type, of each relation that the run
    was asked about; all of them without a run."""
    if RELATIONS in over:
        yield f"{name}.{RELATIONS}", of.mean_over_relations()
    if FACTS in over:
        yield f"{name}.{FACTS}", of.mean_over_facts()
    for kind in KINDS if TYPE in over else ():
        of_kind = [id for id, lesson in runs.lessons.items() if lesson.relation.kind == kind]
        yield f"{name}.type.{kind}", of.mean_over_relations(of_kind)
    for id in runs.having(*asked) if RELATION in over else ():
        yield f"{name}.relation.{id}", of.relation(id)


def ratio(facts: ByFact, part: Floats, whole: Floats, name: str) -> Estimate:
    """What one thing is of another, summed over facts; n counts the facts of the whole."""
    both = np.column_stack([part, whole])
    there = ~np.isnan(both).any(axis=1)
    streams = [f"{name}:{id}" for id in facts.ids]
    owners, subjects = facts.relation[there], facts.subject[there]
    sums = sum(drawn_sums(both[there], owners, streams, facts.seed, subjects), np.zeros((1, 2)))
    if sums[0, 1] <= 0:
        return NOTHING
    n, value = int(np.abs(both[there, 1]).sum()), float(sums[0, 0] / sums[0, 1])
    kept = sums[sums[:, 1] > 0]
    drawn = kept[1:, 0] / kept[1:, 1] if len(kept) > 1 else np.array([value])
    if np.ptp(drawn) == 0 and 0 <= value <= 1:  # all or nothing: others may differ
        low, high = wilson(value * n, n)
        return Estimate(value=value, low=low, high=high, n=n)
    return around(value, drawn, n)


class Drawn(NamedTuple):
    """A fact as it is shown, in the words of the first run, with the answer of every run; ✓ marks
    a right one."""

    subset: str
    relation: str
    sentence: str
    answers: Mapping[str, str]


def drawn_facts(runs: Learning, seed: int) -> list[Drawn]:
    """So many easy and so many hard facts, drawn by the seed, of those that some run answers right
    and whose object is not the commonest training object."""
    from polars import any_horizontal, col

    some = any_horizontal(col(f"right {name}") for name in runs.names)
    worth = runs.frame.filter(some & ~col("has_majority").fill_null(False))
    rows = sorted(
        worth.iter_rows(named=True), key=lambda row: (draw_key(seed, row["fact"]), row["relation"])
    )
    return [
        _drawn(runs.methods, subset, row)
        for subset, easy in zip(SUBSETS, (True, False), strict=True)
        for row in [row for row in rows if row["easy"] is easy][:DRAWN]
    ]


def _drawn(methods: Sequence[Method], subset: str, row: Mapping[str, object]) -> Drawn:
    relation, names = str(row["relation"]), row["names"]
    asked = [method for method in methods if row[f"right {method.name}"] is not None]
    template = asked[0].template(relation)
    assert isinstance(names, list)
    return Drawn(
        subset=subset,
        relation=relation,
        sentence=template.replace("[X]", str(row["subject"])).replace("[Y]", names[0]),
        answers={
            m.name: f"{row[f'answer {m.name}']}{' ✓' * bool(row[f'right {m.name}'])}" for m in asked
        },
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
    often = [
        often
        for (id,), part in runs.frame.group_by("relation", maintain_order=True)
        for method in runs.methods
        if not method.counting
        for often in _too_often(runs, method, str(id), part, seed)
    ]
    return sorted(often, key=lambda o: (-((o.answered.value or 0.0) - o.test), o.run, o.relation))


def _too_often(
    runs: Learning, method: Method, relation: str, part: DataFrame, seed: int
) -> Iterator[Often]:
    lesson, answers = runs.lessons[relation], part[f"answer {method.name}"]
    for name, count in Counter(answers.drop_nulls()).most_common():
        has = part["names"].list.contains(name)
        share, test = count / len(part), float(has.sum()) / len(part)
        majority = name == lesson.majority
        if share <= NEARLY_ALWAYS if majority else share - test < TOO_OFTEN:
            continue
        given = (answers == name).cast(float).to_numpy()
        answered = by_fact(part, seed).resampled(given).relation(relation)
        if majority or (answered.low is not None and answered.low > test):
            yield Often(
                run=method.name,
                relation=relation,
                template=method.template(relation),
                object=name,
                majority=majority,
                answered=answered,
                train=lesson.train_share(name),
                test=test,
            )


def elicited(often: Sequence[Often], run: str) -> list[str]:
    """The relations in which a run's prompt elicits the commonest training object nearly always."""
    return [object.relation for object in often if object.run == run and object.majority]
