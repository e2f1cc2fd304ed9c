"""What a lab's numbers say, in sentences for somebody who must choose an estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sonde.core.words import in_points
from sonde.lab._report_learning import learning_findings
from sonde.lab._report_tables import at_chance
from sonde.lab._report_trust import Choice, chosen
from sonde.lab._report_words import percent, sorts, times, told
from sonde.lab.asked import ANY
from sonde.lab.judging import Group
from sonde.lab.judging_learning import BASE

TRUTHS = ("stored", "taught")

Clauses = Callable[[Group], Iterator[str]]


def findings(groups: Sequence[Group]) -> tuple[str, ...]:
    """Sentences by topic, causal models before masked ones; sorts of worlds in one sentence."""
    made = []
    for topic in (_telling, _shares, _false, learning_findings, _unshown, _ladder):
        for kind in dict.fromkeys(group.kind for group in groups):
            own = [group for group in groups if group.kind == kind]
            made += list(_sentence(kind, own, topic, tell=len(sorts(groups)) > 1))
    return tuple(made)


def _sentence(kind: str, groups: Sequence[Group], topic: Clauses, *, tell: bool) -> Iterator[str]:
    parts = []
    for group in groups:
        clauses = "; ".join(topic(group))
        if clauses:
            parts.append(f"in {group.worlds} worlds, {clauses}" if tell else clauses)
    if parts:
        yield f"{kind.capitalize()} models: {'. '.join(_upper(parts))}."


def _upper(parts: Sequence[str]) -> Iterator[str]:
    """All sentences but the first begin with a capital letter."""
    for i, part in enumerate(parts):
        yield part[0].upper() + part[1:] if i else part


def _telling(group: Group) -> Iterator[str]:
    for truth, what in (
        ("taught", "taught facts are told from untaught ones"),
        ("stored", "stored facts from the rest"),
    ):
        choice = chosen(group, f"auroc.{truth}")
        if choice is None:
            continue
        base = group.of(f"auroc.{truth}", BASE)
        beside = f" ({BASE}: {told(base)})" if choice.best != BASE and base.value else ""
        yield f"{what} best by {choice.best}, AUROC {told(choice.estimate)}{_ties(choice)}{beside}"


def _ties(choice: Choice) -> str:
    if len(choice.ties) < 2:
        return f", tied with {choice.ties[0]}" if choice.ties else ""
    return f", tied with {len(choice.ties)} others"


def _shares(group: Group) -> Iterator[str]:
    off = {name: group.of("share.less_stored", name) for name in group.own}
    known = {name: e for name, e in off.items() if e.value is not None}
    if not known:
        return
    most = max(known, key=lambda name: known[name].value or 0.0)
    said, stored, taught = (
        percent(group.of(f"share.{of}", most), ends=False) for of in ("estimated", *TRUTHS)
    )
    word = "flatters most" if (known[most].value or 0.0) > 0 else "says the most"
    yield (
        f"{most} {word}: it says {said} of the facts are known, where {stored} are stored and "
        f"{taught} were taught"
    )
    nearest = [chosen(group, f"share.less_{truth}") for truth in TRUTHS]
    for choice, truth in zip(nearest, TRUTHS, strict=True):
        if choice is not None:
            how = f"{in_points(choice.estimate)}{_ties(choice)}"
            yield f"nearest to the share {truth} is {choice.best}, {how}"


def _false(group: Group) -> Iterator[str]:
    for measure, which in (
        ("false.guessable", "untaught facts that can be guessed"),
        ("false.not_guessable", "untaught facts that cannot be guessed"),
    ):
        rates = {n: group.of(measure, n) for n in group.own}
        known = {n: e for n, e in rates.items() if e.value is not None}
        if known:
            worst = max(known, key=lambda n: known[n].value or 0.0)
            least = min(known, key=lambda n: known[n].value or 0.0)
            yield (
                f"of {which} {worst} takes the most for known, {percent(known[worst])}, and "
                f"{least} the fewest, {percent(known[least])}"
            )


def _unshown(group: Group) -> Iterator[str]:
    words = {name: at_chance(group, name) for name in group.names}
    judged = {name: word for name, word in words.items() if word != "not measured"}
    if not judged:
        return
    off = {name: group.of("unshown.less_chance", name) for name in judged}
    apart = [name for name, word in judged.items() if word != "at chance"]
    inside = len(judged) - len(apart)
    text = f"{inside} of {len(judged)} estimators and controls are at chance"
    if apart:
        far = max(apart, key=lambda name: abs(off[name].value or 0.0))
        which = "farthest from it is" if len(apart) > 1 else "not"
        text += f", {which} {far} with {in_points(off[far])}"
    yield f"of relations that the text never shows {text}"


def _ladder(group: Group) -> Iterator[str]:
    """What the best single estimator finds at the first and the last step, and all of them."""
    taught = [step for step in group.ladder if step]
    for step in dict.fromkeys((*taught[:1], *taught[-1:])):
        found = {n: group.of(f"recall.exposure.{step}", n) for n in group.finders}
        known = {n: e for n, e in found.items() if e.value is not None}
        if known:
            best = max(known, key=lambda n: known[n].value or 0.0)
            yield f"of facts read {times(step)} {best} finds the most, {percent(known[best])}"
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
