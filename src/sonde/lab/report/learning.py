"""Learning told from recall, as a table and in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonde.core.reports import Cell, Column, Table
from sonde.core.words import in_points
from sonde.lab.evaluation.judging import Group
from sonde.lab.evaluation.measures import BASE, SUBSETS, includes
from sonde.lab.report.words import MARKED, key, marked, titled


def learning_table(group: Group, groups: Sequence[Group]) -> Table | None:
    """What every method that learns gains over LAMA, beside its controls."""
    rows = [row for name in group.own if name in group.learners for row in _rows(group, name)]
    owned = {c for name in group.own for c in group.controls_of(name)}
    for control in (c for c in group.names if c in group.controls and c not in owned):
        rows += [row for row in _rows(group, control) if row[1] != SUBSETS["taught"]]
    if not rows:
        return None
    return Table(
        id=f"learning-{key(group)}",
        title=f"{titled(group, groups)}: learning told from recall",
        columns=(
            Column(title="method"),
            Column(
                title="facts",
                help="guessable and not: of the untaught ones; never shown: relations that the "
                "text leaves out",
            ),
            Column(title="gain", kind="percent", help=f"share found less that of {BASE}, paired"),
            Column(title="control"),
            Column(title="its gain", kind="percent", help="the same of the control"),
            Column(title="less control", kind="percent", help="method less control, paired"),
            Column(title="verdict", help="matched: the interval of the difference includes 0"),
        ),
        rows=tuple(rows),
        note="A control on random weights knows no fact: what it finds of untaught facts is learnt "
        "from the facts it was trained on. Matched on untaught facts: so is the method's gain. On "
        f"taught facts a method should be above its control. {MARKED}",
    )


def verdict(group: Group, control: str, subset: str) -> str:
    """Whether a control finds as much as its method."""
    difference = group.of(f"matched.{subset}", control)
    if difference.value is None or difference.low is None:
        return "not measured" if control else "no control"
    if includes(difference):
        return "matched"
    return "above control" if difference.value > 0 else "below control"


def learning_findings(group: Group) -> Iterator[str]:
    """Whether gains on untaught facts are matched by a control on random weights."""
    subset = "guessable" if group.measured("gain.guessable") else "untaught"
    which = "untaught facts that can be guessed" if subset == "guessable" else "untaught facts"
    for place, where in ((subset, f"on {which}"), ("unshown", "in relations never shown")):
        pairs = [
            (name, control)
            for name in group.own
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
        if gain.value is None or includes(gain):
            none.append(name)
        else:
            told.append(
                f"{name} gains {in_points(gain)} over {BASE}, {_meaning(group, control, subset)} "
                f"(method less control: {in_points(difference)})"
            )
    if none:
        names = " and ".join(filter(None, (", ".join(none[:-1]), none[-1])))
        verb = "gains" if len(none) == 1 else "gain"
        told.append(f"{names} {verb} nothing over {BASE} that is told from 0")
    return "; ".join(told)


def _meaning(group: Group, control: str, subset: str) -> str:
    """What a control says about the gain of its method."""
    word = verdict(group, control, subset)
    if word != "matched":
        return f"{word.removesuffix(' control')} what random weights gain"
    own = group.of(f"gain.{subset}", control)
    if own.low is not None and own.low > 0:
        return "matched by random weights, so learnt and not recalled"
    return "not told from what random weights gain"


def _rows(group: Group, name: str) -> Iterator[tuple[Cell, ...]]:
    """Every subset beside the first control, and all untaught facts beside the others."""
    first, *others = group.controls_of(name) or ("",)
    for subset, label in SUBSETS.items():
        for control in (first, *(others if subset == "untaught" else ())):
            gain = group.of(f"gain.{subset}", name)
            if gain.value is None:
                continue
            yield (
                marked(group, name),
                label,
                gain,
                control.removeprefix(f"{name}-") or "none",
                group.of(f"gain.{subset}", control),
                group.of(f"matched.{subset}", control),
                verdict(group, control, subset),
            )
