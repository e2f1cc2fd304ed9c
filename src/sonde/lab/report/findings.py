"""What a lab's numbers say, in sentences for somebody who must choose an estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sonde.core.reports import Estimate
from sonde.core.words import in_points, named, written
from sonde.lab.evaluation.judging import Group
from sonde.lab.evaluation.measures import BASE, includes_none
from sonde.lab.evaluation.trials import ANY
from sonde.lab.report.choices import (
    Choice,
    at_chance,
    best_of,
    chosen,
    farthest,
    highest,
    lowest,
    verdict,
)

TRUTHS = ("stored", "taught")

Clauses = Callable[[Group], Iterator[str]]


def findings(groups: Sequence[Group]) -> tuple[str, ...]:
    """Sentences by topic, causal models before masked ones; sorts of worlds in one sentence."""
    topics: tuple[Clauses, ...] = (_telling, _shares, _false, _learning, _unshown, _ladder)
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


def _telling(group: Group) -> Iterator[str]:
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
    said, stored, taught = (
        percent(group.of(f"share.{of}", most.best), ends=False) for of in ("estimated", *TRUTHS)
    )
    word = "flatters most" if (most.estimate.value or 0.0) > 0 else "says the most"
    how = f"says {said} of the facts are known, where {stored} are stored and {taught} were taught"
    yield _named(most, f"{most.best} {word}: it {how}", f"which estimator {word}", f"which {how}")
    for truth in TRUTHS:
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
    found = group.of(f"recall.exposure.{top.exposure}", ANY)
    if not top.facts or found.value is None:
        return
    if len(group.finders) > 1:
        some = f"at least one of {len(group.finders)} estimators finds {percent(found)}"
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
    own = group.of(f"gain.{subset}", control)
    if own.low is not None and own.low > 0:
        return "matched by random weights, so learnt and not recalled"
    return "not distinguishable from what random weights gain"


def times(step: int) -> str:
    """How often a text states a fact.

    >>> times(1), times(50)
    ('once', '50 times')
    """
    return "once" if step == 1 else f"{step} times"


def percent(estimate: Estimate, *, ends: bool = True) -> str:
    """A share, with its interval unless it has none or none is wanted.

    >>> percent(Estimate(value=0.914, low=0.9, high=0.93, n=3))
    '91.4 % (90.0 to 93.0)'
    """
    if estimate.value is None:
        return "not measured"
    if not ends or estimate.low is None or estimate.high is None:
        return f"{100 * estimate.value:.1f} %"
    return f"{100 * estimate.value:.1f} % ({100 * estimate.low:.1f} to {100 * estimate.high:.1f})"
