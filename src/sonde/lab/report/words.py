"""How groups, estimators and numbers are named in a lab's report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonde.core.reports import Better, Estimate, Metric, Unit
from sonde.lab.evaluation.judging import Group
from sonde.lab.evaluation.measures import SUBSETS
from sonde.lab.evaluation.verdicts import ANY

LEARNS, CONTROL = "*", "†"
UNBROKEN = "\N{NO-BREAK SPACE}"

MARKED = (
    f"{LEARNS}: learns from other facts. {CONTROL}: a control, which estimators are held against."
)


ROWS: tuple[tuple[str, str, Unit, Better, str], ...] = (
    ("auroc.taught", "AUROC taught", "number", "higher", "how often a taught fact scores above an "
     "untaught one: 1 is perfect, 0.5 useless"),
    ("auroc.stored", "AUROC stored", "number", "higher", "the same for facts that the model gives "
     "back in a text it was taught them in"),
    ("share.estimated", "says known", "percent", "", "its estimate of the share known"),
    ("share.taught", "taught", "percent", "", "share of the facts asked that the text states"),
    ("share.stored", "stored", "percent", "", "share of the facts asked that the model gives back"),
    ("share.less_taught", "less taught", "percent", "nearer 0", "its estimate less the share "
     "taught, of the same facts; above 0 it flatters"),
    ("share.less_stored", "less stored", "percent", "nearer 0", "its estimate less the share "
     "stored"),
    ("recall.taught", "taught found", "percent", "higher", "share of taught facts it holds to be "
     "known"),
    ("recall.stored", "stored found", "percent", "higher", "share of stored facts it holds to be "
     "known"),
    ("recall.not_stored", "taught, not stored", "percent", "", "share of taught facts that are not "
     "stored that it holds to be known"),
    ("recall.exposure.{n}", "{n}×", "percent", "", "share of facts that the text states {n} times "
     "that it holds to be known"),
    ("false.untaught", "untaught found", "percent", "lower", "share of untaught facts that it "
     "holds to be known"),
    ("false.cue", "by name", "percent", "lower", "of untaught facts guessable from the name"),
    ("false.majority", "commonest", "percent", "lower", "of untaught facts guessable as the "
     "commonest object"),
    ("false.not_guessable", "not guessable", "percent", "lower", "of untaught facts not guessable"),
    ("false.unshown", "unshown", "percent", "lower", "of untaught facts in relations never shown"),
    ("false.rate.taught", "false of found", "percent", "lower", "share of the facts it holds to be "
     "known that are untaught"),
    ("false.rate.stored", "not stored of found", "percent", "lower", "share of the facts it holds "
     "to be known that are not stored"),
    ("unshown.counts", "counts", "percent", "", "its estimate of the share known, in relations "
     "never shown"),
    ("unshown.chance", "chance", "percent", "", "the same with the objects of other facts"),
    ("unshown.less_chance", "less chance", "percent", "nearer 0", "the difference, paired"),
    ("gap.{truth}", "gap, {truth}", "percent", "nearer 0", "mean score less the share {truth}"),
    ("ece.{truth}", "ECE, {truth}", "percent", "lower", "mean absolute gap over ten bins of equal "
     "size; {truth}"),
    ("brier.{truth}", "Brier, {truth}", "number", "lower", "mean squared distance of the score "
     "from 0 or 1; {truth}"),
    ("gain.{subset}", "gain, {subset}", "percent", "", "of what learns, share found less that of "
     "lama, paired"),
    ("matched.{subset}", "less control, {subset}", "percent", "", "of a control, what its method "
     "finds less what it finds itself, paired"),
    ("cost.seconds", "seconds", "number", "lower", "that it took"),
)  # fmt: skip
METRICS = tuple(
    Metric(id, label, unit, sentence, better=better) for id, label, unit, better, sentence in ROWS
)
"""Numbers of an estimator; their names end with the kind of model, the worlds, the estimator."""

M = {metric.id: metric for metric in METRICS}


def metrics(groups: Sequence[Group]) -> Iterator[Metric]:
    """The metrics of a report, with what stands in for the words in braces."""
    steps = {step for group in groups for step in group.ladder}
    for metric in METRICS:
        if "{n}" in metric.id:
            yield from (metric.of(n=step) for step in sorted(steps))
        elif "{truth}" in metric.id:
            yield from (metric.of(truth=truth) for truth in ("taught", "stored"))
        elif "{subset}" in metric.id:
            yield from (metric.of(subset=subset) for subset in SUBSETS)
        else:
            yield metric


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
