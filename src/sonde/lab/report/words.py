"""How groups, estimators and numbers are named in a lab's report."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.core.reports import Estimate
from sonde.lab.evaluation.judging import Group
from sonde.lab.evaluation.verdicts import ANY

LEARNS, CONTROL = "*", "†"
UNBROKEN = "\N{NO-BREAK SPACE}"

MARKED = (
    f"{LEARNS}: learns from other facts. {CONTROL}: a control, which estimators are held against."
)


def sorts(groups: Sequence[Group]) -> tuple[str, ...]:
    """The sorts of worlds, in their order."""
    return tuple(dict.fromkeys(group.worlds for group in groups))


def titled(group: Group, groups: Sequence[Group]) -> str:
    """The name of a group; the sort of its worlds is told where there are several."""
    several = f", {group.worlds} worlds" if len(sorts(groups)) > 1 else ""
    return f"{group.kind.capitalize()} models{several}"


def short(group: Group, groups: Sequence[Group]) -> str:
    """The name of a group in a narrow column."""
    return f"{group.kind}, {group.worlds}" if len(sorts(groups)) > 1 else group.kind


def key(group: Group) -> str:
    """The id of a group."""
    return f"{group.kind}-{group.worlds}"


def stable(group: Group, measure: str, name: str) -> str:
    """The name of an estimate: what is measured, the models, the worlds, the estimator."""
    return f"{measure}.{group.kind}.{group.worlds}.{_id(name)}"


def marked(group: Group, name: str) -> str:
    """An estimator's name, with a mark where it learns or is a control."""
    if name in group.controls:
        return f"{name}{UNBROKEN}{CONTROL}"
    return f"{name}{UNBROKEN}{LEARNS}" if name in group.learners else name


def places(group: Group, names: Sequence[str] | None = None) -> dict[str, str]:
    """How tables and figures call estimators, and how the names of their estimates end."""
    end = f"{group.kind}.{group.worlds}"
    return {marked(group, n): f"{end}.{_id(n)}" for n in (group.names if names is None else names)}


def _id(name: str) -> str:
    return "any" if name == ANY else name


def any_note(group: Group) -> str:
    """Which estimators count for what at least one finds."""
    if not group.finders:
        return ""
    left = [name for name in group.plain if name not in group.finders]
    hold = "holds" if len(left) == 1 else "hold"
    why = (
        f" (not {', '.join(left)}, which {hold} over a quarter of the untaught facts that cannot "
        "be guessed to be known)"
        if left
        else ""
    )
    return f"At least one: of {', '.join(group.finders)}{why}."


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
