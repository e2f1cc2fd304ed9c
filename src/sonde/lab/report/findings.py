"""What a lab's numbers say to somebody who must choose an estimator: which one answers a question
best, and sentences about it. Knows the numbers of groups, not how they are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from operator import neg

import numpy as np
from numpy.typing import NDArray

from sonde.core.reports import Estimate
from sonde.core.words import in_points, named, written
from sonde.evaluation.stats import LEVEL, holm_corrected
from sonde.lab.evaluation.judging import ANY, Group
from sonde.lab.evaluation.measures import BASE, ROUNDING, TRUTHS, includes_none

ENOUGH = 0.5
"""Of the best recall: an estimator that finds less is no answer to which one errs least."""

USELESS = 0.5
"""The AUROC of a score that tells nothing: one that may have it is right by accident alone."""

Badness = Callable[[float], float]
"""How bad an answer to a question a number is: falling or rising on either side of 0."""

highest: Badness = neg
lowest: Badness = float
nearest: Badness = abs


def farthest(value: float) -> float:
    """The farther from 0 the better."""
    return -abs(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The estimator that answers a question best, of how many, and those that may be as good."""

    question: str
    measure: str
    best: str
    estimate: Estimate
    ties: tuple[str, ...]
    of: int


def choices(group: Group) -> tuple[Choice, ...]:
    """The questions that a group can answer, each with its choice; controls are none."""
    finding, every = _finding(group), group.estimators
    taught, stored = (_telling(group, truth) for truth in TRUTHS)
    asked: tuple[tuple[str, str, Sequence[str], Badness], ...] = (
        ("Was this fact in the text?", "auroc.taught", every, highest),
        ("Can the model give it back?", "auroc.stored", every, highest),
        ("How many facts were in the text?", "share.less_taught", taught, nearest),
        ("How many can it give back?", "share.less_stored", stored, nearest),
        ("Which claims fewest not in the text?", "false.untaught", finding, lowest),
        ("How likely was this fact in the text?", "ece.taught", taught, lowest),
        ("How likely can the model give it back?", "ece.stored", stored, lowest),
    )
    made = (best_of(group, measure, names, badness, q) for q, measure, names, badness in asked)
    return tuple(choice for choice in made if choice is not None)


def chosen(group: Group, measure: str) -> Choice | None:
    """The choice by one measure."""
    return next((choice for choice in choices(group) if choice.measure == measure), None)


def best_of(
    group: Group, measure: str, names: Sequence[str], badness: Badness, question: str = ""
) -> Choice | None:
    """The estimator of the least badness, and those that are not distinguishable from it.

    Two are told apart by a paired test over the worlds, corrected for how many there are to choose
    from; in a single world by intervals that do not overlap.
    """
    values = {name: group.of(measure, name).value for name in names}
    bad = {name: badness(value) for name, value in values.items() if value is not None}
    if not bad:
        return None
    best = min(bad, key=lambda name: bad[name])
    others = [name for name in bad if name != best]
    tests = [
        1.0 if bad[name] == bad[best] else _p(group, measure, badness, best, name)
        for name in others
    ]
    # with many to choose from, one is first by chance
    ties = [name for name, p in zip(others, holm_corrected(tests), strict=True) if p >= LEVEL]
    return Choice(
        question=question,
        measure=measure,
        best=best,
        estimate=group.of(measure, best),
        ties=tuple(ties),
        of=len(bad),
    )


def _p(group: Group, measure: str, badness: Badness, *names: str) -> float:
    one, other = (_by_world(group, measure, name, badness) for name in names)
    shared = [world for world in one if world in other]
    if len(shared) > 1:
        return student(np.array([one[world] - other[world] for world in shared]))
    (low, high), (least, most) = (_ends(group.of(measure, name), badness) for name in names)
    return 0.0 if high < least or most < low else 1.0


def student(differences: NDArray[np.float64]) -> float:
    """p of Student's test of a mean difference over at least two repeats, such as worlds.

    Repeats that all differ by the same have no spread: then the sign test's.

    >>> round(student(np.array([0.1, 0.2, 0.3])), 3), student(np.array([0.5, 0.5]))
    (0.074, 0.5)
    """
    from scipy.special import stdtr

    count, mean = len(differences), abs(float(differences.mean()))
    error = float(differences.std(ddof=1)) / sqrt(count)
    if error <= ROUNDING:
        return 1.0 if mean <= ROUNDING else min(1.0, 2 * 0.5**count)
    return 2 * float(stdtr(count - 1, -mean / error))


def _by_world(group: Group, measure: str, name: str, badness: Badness) -> dict[str, float]:
    """How bad an estimator is in each world, its models taken together."""
    values: dict[str, list[float]] = {}
    for (world, _), value in group.each.get((measure, name), {}).items():
        values.setdefault(world, []).append(value)
    return {world: badness(sum(models) / len(models)) for world, models in values.items()}


def _ends(estimate: Estimate, badness: Badness) -> tuple[float, float]:
    """The least and the most badness within an interval."""
    low, high = estimate.ends
    bad = [badness(x) for x in (low, high, *([0.0] if low <= 0 <= high else []))]
    return min(bad), max(bad)


def _telling(group: Group, truth: str) -> tuple[str, ...]:
    """The estimators whose scores tell known facts from others at all."""
    lows = {name: group.of(f"auroc.{truth}", name).low for name in group.estimators}
    return tuple(name for name, low in lows.items() if low is not None and low > USELESS)


def _finding(group: Group) -> tuple[str, ...]:
    recalls = {name: group.of("recall.taught", name).value or 0.0 for name in group.estimators}
    least = ENOUGH * max(recalls.values(), default=0.0)
    return tuple(name for name, recall in recalls.items() if recall >= least)


def at_chance(group: Group, name: str) -> str:
    """Whether an estimator stands at chance in relations never shown."""
    return _beside(group.of("unshown.less_chance", name), "at chance", "chance")


def verdict(group: Group, control: str, subset: str) -> str:
    """Whether a control finds as much as its method."""
    if not control:
        return "no control"
    return _beside(group.of(f"matched.{subset}", control), "matched", "control")


def _beside(difference: Estimate, neither: str, what: str) -> str:
    if difference.value is None or difference.low is None:
        return "not measured"
    if includes_none(difference):
        return neither
    return f"{'above' if difference.value > 0 else 'below'} {what}"


Clauses = Callable[[Group], Iterator[str]]


def findings(groups: Sequence[Group]) -> tuple[str, ...]:
    """Sentences by topic, causal models before masked ones; sorts of worlds in one sentence."""
    topics: tuple[Clauses, ...] = (_ranking, _shares, _false, _learning, _unshown, _ladder)
    kinds = dict.fromkeys(group.kind for group in groups)
    said = [
        _sentence(kind, topic, [group for group in groups if group.kind == kind])
        for topic in topics
        for kind in kinds
    ]
    return tuple(filter(None, said))


def _sentence(kind: str, topic: Clauses, groups: Sequence[Group]) -> str:
    """What is said of every group, or nothing; all parts but the first begin with a capital."""
    parts: list[str] = []
    for group in groups:
        if clauses := "; ".join(topic(group)):
            part = clauses if group.alone else f"in {group.worlds} worlds, {clauses}"
            parts.append(part[0].upper() + part[1:] if parts else part)
    return f"{kind.capitalize()} models: {'. '.join(parts)}." if parts else ""


def _ranking(group: Group) -> Iterator[str]:
    for truth, what in (
        ("taught", "taught facts are told from untaught ones"),
        ("stored", "stored facts are told from the rest"),
    ):
        choice = chosen(group, f"auroc.{truth}")
        if choice is None:
            continue
        base = group.of(f"auroc.{truth}", BASE)
        beside = f" ({BASE}: {written(base, '.2f')})" if choice.best != BASE and base.value else ""
        how = f"AUROC {written(choice.estimate, '.2f')}"
        claim = f"{what} best by {choice.best}, {how}"
        yield _named(choice, claim, f"by which estimator {what} best", how) + beside


def _named(choice: Choice, claim: str, question: str, how: str) -> str:
    """A claim about an estimator, or that it cannot be told which it is true of."""
    said = named(claim, question, f"{choice.best}, {how},", choice.ties, most=3)
    return said.removesuffix(".")


def _shares(group: Group) -> Iterator[str]:
    most = best_of(group, "share.less_stored", group.estimators, highest)
    if most is None:
        return
    said, taught, stored = (
        f"{100 * (group.of(f'share.{of}', most.best).value or 0.0):.1f} %"
        for of in ("estimated", *TRUTHS)
    )
    word = "flatters most" if (most.estimate.value or 0.0) > 0 else "says the most"
    how = f"says {said} of the facts are known, where {stored} are stored and {taught} were taught"
    yield _named(most, f"{most.best} {word}: it {how}", f"which estimator {word}", f"which {how}")
    for truth in reversed(TRUTHS):
        choice = chosen(group, f"share.less_{truth}")
        if choice is None:
            continue
        off, which = in_points(choice.estimate), f"the share {truth}"
        claim = f"nearest to {which} is {choice.best}, {off}"
        if choice.of == 1:
            claim = f"only {choice.best} tells facts apart, and is off {which} by {off}"
        yield _named(choice, claim, f"which estimator comes nearest to {which}", off)


def _false(group: Group) -> Iterator[str]:
    for measure, which in (
        ("false.guessable", "untaught facts that can be guessed"),
        ("false.not_guessable", "untaught facts that cannot be guessed"),
    ):
        for word, badness in (("the most", highest), ("the fewest", lowest)):
            choice = best_of(group, measure, group.estimators, badness)
            if choice is not None and choice.of > 1:
                share, claims = percent(choice.estimate), f"takes {word} for known"
                claim = f"of {which} {choice.best} {claims}, {share}"
                yield _named(choice, claim, f"of {which} which estimator {claims}", share)


def _unshown(group: Group) -> Iterator[str]:
    words = {name: at_chance(group, name) for name in group.names}
    judged = {name: word for name, word in words.items() if word != "not measured"}
    if not judged:
        return
    apart = [name for name, word in judged.items() if word != "at chance"]
    text = f"{len(judged) - len(apart)} of {len(judged)} estimators and controls are at chance"
    far = best_of(group, "unshown.less_chance", apart, farthest)
    if far is not None:
        off, which = in_points(far.estimate), "farthest from it is" if far.of > 1 else "not"
        claim = f"{which} {far.best} with {off}"
        text += f", {_named(far, claim, 'which is farthest from it', off)}"
    yield f"of relations that the text never shows {text}"


def _ladder(group: Group) -> Iterator[str]:
    """What the best single estimator finds at the first and the last step, and all of them."""
    taught = [step for step in group.ladder if step]
    for step in dict.fromkeys((*taught[:1], *taught[-1:])):
        choice = best_of(group, f"recall.exposure.{step}", group.finders, highest)
        if choice is not None:
            which, share = f"of facts read {times(step)}", percent(choice.estimate)
            claim = f"{which} {choice.best} finds {'the most, ' if choice.of > 1 else ''}{share}"
            yield _named(choice, claim, f"{which} which estimator finds the most", share)
    yield from _top(group)


def _top(group: Group) -> Iterator[str]:
    top = group.top
    share = group.of(f"recall.exposure.{top.exposure}", ANY)
    if not top.facts or share.value is None:
        return
    if len(group.finders) > 1:
        some = f"at least one of {len(group.finders)} estimators finds {percent(share)}"
        yield f"of those read {times(top.exposure)} {some}"
    if top.unfound:
        yield (
            f"of the {top.unfound:,} of {top.facts:,} that none finds {top.unfound - top.stored:,} "
            f"are not stored either, {top.learnt:,} are found by a method that learns"
        )


def _learning(group: Group) -> Iterator[str]:
    """Whether gains on untaught facts are matched by a control on random weights."""
    subset = "guessable" if group.measured("gain.guessable") else "untaught"
    which = "untaught facts that can be guessed" if subset == "guessable" else "untaught facts"
    for place, where in ((subset, f"on {which}"), ("unshown", "in relations never shown")):
        pairs = [
            (name, control)
            for name in group.estimators
            if name in group.learners
            and (control := next(iter(group.controls_of(name)), ""))
            and group.of(f"matched.{place}", control).value is not None
        ]
        if pairs:
            yield f"{where} {_gained(group, pairs, place)}"


def _gained(group: Group, pairs: Sequence[tuple[str, str]], subset: str) -> str:
    """What some methods gain over LAMA, each beside its control, and which gain nothing."""
    told, none = [], []
    for name, control in pairs:
        gain, difference = group.of(f"gain.{subset}", name), group.of(f"matched.{subset}", control)
        if gain.value is None or includes_none(gain):
            none.append(name)
        else:
            told.append(
                f"{name} gains {in_points(gain)} over {BASE}, {_meaning(group, control, subset)} "
                f"(method less control: {in_points(difference)})"
            )
    if none:
        names = " and ".join(filter(None, (", ".join(none[:-1]), none[-1])))
        verb = "gains" if len(none) == 1 else "gain"
        told.append(f"{names} {verb} nothing over {BASE} that is distinguishable from 0")
    return "; ".join(told)


def _meaning(group: Group, control: str, subset: str) -> str:
    """What a control says about the gain of its method."""
    word = verdict(group, control, subset)
    if word != "matched":
        return f"{word.removesuffix(' control')} what random weights gain"
    gain = group.of(f"gain.{subset}", control)
    if gain.low is not None and gain.low > 0:
        return "matched by random weights, so learnt and not recalled"
    return "not distinguishable from what random weights gain"


def times(step: int) -> str:
    """How often a text states a fact.

    >>> times(1), times(50)
    ('once', '50 times')
    """
    return "once" if step == 1 else f"{step} times"


def percent(estimate: Estimate) -> str:
    """A share, with its interval unless it has none.

    >>> percent(Estimate(value=0.914, low=0.9, high=0.93, n=3))
    '91.4 % (90.0 to 93.0)'
    """
    value, low, high = (f"{100 * x:.1f}" for x in (estimate.value or 0.0, *estimate.ends))
    return f"{value} %" if estimate.low is None else f"{value} % ({low} to {high})"
