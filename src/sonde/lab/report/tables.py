"""Tables of a lab's report. Knows the numbers of groups, nothing of how they are computed."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.core.reports import Cell, Column, ColumnKind, Estimate, Table
from sonde.core.words import listed
from sonde.lab.evaluation.asked import ANY
from sonde.lab.evaluation.judging import Group
from sonde.lab.evaluation.measures import CAUSES, includes
from sonde.lab.report.trust import choices
from sonde.lab.report.words import MARKED, key, marked, short, titled

MOST_STEPS = 6
"""Steps of the ladder that a terminal has room for."""

NARROW = 2
"""Causes beside which a terminal has room for more."""

Groups = Sequence[Group]

_MAIN: tuple[tuple[str, str, ColumnKind, str, bool], ...] = (
    ("auroc.taught", "AUROC taught", "number", "how often a taught fact scores above an untaught "
     "one: 1 is perfect, 0.5 useless", False),
    ("auroc.stored", "AUROC stored", "number", "the same for facts that the model gives back in a "
     "text it was taught them in", False),
    ("share.estimated", "says known", "percent", "its estimate of the share known", False),
    ("share.less_taught", "less taught", "percent", "its estimate less the share taught, of the "
     "same facts; above 0 it flatters", False),
    ("share.less_stored", "less stored", "percent", "its estimate less the share stored", False),
    ("false.untaught", "untaught found", "percent", "share of untaught facts that it holds to be "
     "known", True),
    ("false.rate.taught", "false of found", "percent", "share of the facts it holds to be known "
     "that are untaught", True),
    ("false.rate.stored", "not stored of found", "percent", "share of the facts it holds to be "
     "known that are not stored", True),
    ("recall.taught", "taught found", "percent", "share of taught facts it holds to be known",
     True),
    ("recall.stored", "stored found", "percent", "share of stored facts it holds to be known",
     True),
)  # fmt: skip

_SCORES: tuple[tuple[str, str, ColumnKind, str], ...] = (
    ("gap", "gap", "percent", "mean score less the share {}"),
    ("ece", "ECE", "percent", "mean absolute gap over ten bins of equal size; {}"),
    ("brier", "Brier", "number", "mean squared distance of the score from 0 or 1; {}"),
)


def trust_table(groups: Groups) -> Table:
    """Which estimator answers which question best."""
    names = {"auroc": "AUROC", "share": "off by", "false": "claims", "ece": "ECE"}
    units = {"auroc": "", "share": " points", "false": " % of them", "ece": " %"}
    rows: list[tuple[Cell, ...]] = []
    for group in groups:
        for choice in choices(group):
            part = choice.measure.partition(".")[0]
            shown = _number(choice.estimate, units[part])
            few, ties = (listed(choice.ties, most) or "none" for most in (2, len(choice.ties)))
            rows.append((short(group, groups), choice.question, choice.best,
                         f"{names[part]} {shown}", few, ties))  # fmt: skip
    return Table(
        id="trust",
        title="Which number to trust for which question",
        columns=(
            Column(title="models"),
            Column(title="question"),
            Column(title="first", help="best only where nothing is tied with it"),
            Column(title="how good", help="with its 95 % interval"),
            Column(title="ties", help="estimators that are not told from it"),
            Column(title="all ties", detail=True),
        ),
        rows=tuple(rows),
        note="By score: the highest AUROC, and the lowest ECE of the score as a probability. By "
        "share: the estimate nearest to the true share. Shares and ECE: only of estimators whose "
        "AUROC is clearly above 0.5; others are near the truth by accident. Fewest: of those that "
        "find at least half as many taught facts as the one that finds most. No controls. Ties: "
        "not told apart by a paired test over worlds, corrected for the choice (Holm); in a single "
        "world, by intervals that overlap.",
    )


def main_table(group: Group, groups: Groups) -> Table:
    """Every estimator against both truths."""
    columns = (
        Column(title="estimator"),
        *(Column(title=t, kind=k, help=h, detail=detail) for _, t, k, h, detail in _MAIN),
    )
    rows = tuple(_row(group, name, [measure for measure, *_ in _MAIN]) for name in group.names)
    return Table(
        id=f"estimators-{key(group)}",
        title=f"{titled(group, groups)}: estimators against the truth",
        columns=columns,
        rows=rows,
        note=f"{_true_shares(group)} {MARKED}",
    )


def recall_table(group: Group, groups: Groups) -> Table:
    """What is found, by how often the text states it."""
    shown = steps(group.ladder)
    columns = (
        Column(title="estimator"),
        *(
            Column(
                title=f"{step}×",
                kind="percent",
                help="not taught" if not step else f"facts that the text states {step} times",
                detail=step not in shown,
            )
            for step in group.ladder
        ),
        Column(title="taught", kind="percent", help="all taught facts", detail=True),
        Column(title="stored", kind="percent", help="all stored facts", detail=True),
        Column(title="taught, not stored", kind="percent", detail=True),
    )
    measures = [
        *(f"recall.exposure.{step}" for step in group.ladder),
        *("recall.taught", "recall.stored", "recall.not_stored"),
    ]
    rows = [
        _row(group, name, measures) for name in (*group.names, *([ANY] if group.finders else []))
    ]
    return Table(
        id=f"recall-{key(group)}",
        title=f"{titled(group, groups)}: facts found, by how often the text states them",
        columns=columns,
        rows=tuple(rows),
        note="0×: untaught facts of relations that the text states others of. "
        f"{any_note(group)} {MARKED}",
    )


def steps(ladder: Sequence[int]) -> tuple[int, ...]:
    """The steps that a narrow page shows: the ends, and others evenly between.

    >>> steps((0, 1, 2, 5, 10, 20, 50, 100, 200))
    (0, 1, 2, 10, 50, 200)
    """
    if len(ladder) <= MOST_STEPS:
        return tuple(ladder)
    last = len(ladder) - 1
    places = dict.fromkeys([0, 1, *(1 + i * (last - 1) // 4 for i in range(1, 5))])
    return tuple(ladder[i] for i in places)


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


def discoveries_table(group: Group, groups: Groups) -> Table:
    """Untaught facts that are held to be known, by cause."""
    causes = [cause for cause in CAUSES if group.measured(f"false.{cause}")]
    heads = {"cue": "by name", "majority": "commonest", "not_guessable": "not guessable",
             "unshown": "unshown"}  # fmt: skip
    columns = (
        Column(title="estimator"),
        Column(title="untaught", kind="percent", help="of all untaught facts"),
        *(
            Column(title=heads[cause], kind="percent", help=f"of untaught facts {CAUSES[cause]}")
            for cause in causes
        ),
        Column(
            title="of found",
            kind="percent",
            help="share of facts found that are untaught",
            detail=len(causes) > NARROW,
        ),
        Column(title="not stored of found", kind="percent", detail=True),
    )
    measures = ["false.untaught", *(f"false.{cause}" for cause in causes)]
    measures += ["false.rate.taught", "false.rate.stored"]
    rows = tuple(_row(group, name, measures) for name in group.names)
    return Table(
        id=f"false-{key(group)}",
        title=f"{titled(group, groups)}: false discoveries, by cause",
        columns=columns,
        rows=rows,
        note=f"Share of untaught facts held to be known. {MARKED}",
    )


def unshown_table(group: Group, groups: Groups) -> Table | None:
    """What is counted in relations never shown, beside the chance."""
    names = [n for n in group.names if group.of("unshown.less_chance", n).value is not None]
    if not names:
        return None
    return Table(
        id=f"unshown-{key(group)}",
        title=f"{titled(group, groups)}: relations never shown, beside chance",
        columns=(
            Column(title="estimator"),
            Column(title="counts", kind="percent", help="its estimate of the share known"),
            Column(title="chance", kind="percent", help="with the objects of other facts"),
            Column(title="less chance", kind="percent", help="the difference, paired"),
            Column(title="verdict", help="whether the interval of the difference includes 0"),
        ),
        rows=tuple(
            (
                marked(group, n),
                group.of("unshown.counts", n),
                group.of("unshown.chance", n).value,
                group.of("unshown.less_chance", n),
                at_chance(group, n),
            )
            for n in names
        ),
        note="Chance: what the same answers would count with the objects of other facts of the "
        "relation. Of twenty estimators at chance one is expected to miss it by luck. " + MARKED,
    )


def at_chance(group: Group, name: str) -> str:
    """Whether an estimator stands at chance in relations never shown."""
    return _sided(
        group.of("unshown.less_chance", name), "at chance", "above chance", "below chance"
    )


def calibration_table(group: Group, groups: Groups) -> Table:
    """Scores read as probabilities."""
    shown = [(truth, *score) for truth in ("taught", "stored") for score in _SCORES]
    return Table(
        id=f"calibration-{key(group)}",
        title=f"{titled(group, groups)}: scores as probabilities of being known",
        columns=(
            Column(title="estimator"),
            *(
                Column(title=f"{title}, {truth}", kind=kind, help=help.format(truth))
                for truth, _, title, kind, help in shown
            ),
        ),
        rows=tuple(
            _row(group, name, [f"{part}.{truth}" for truth, part, *_ in shown])
            for name in group.names
        ),
        note=MARKED,
        browsable=True,
    )


def cost_table(groups: Groups) -> Table:
    """What every estimator takes, by kind of model."""
    kinds = list(dict.fromkeys(group.kind for group in groups))
    names = dict.fromkeys(name for group in groups for name in group.names)
    columns = [Column(title="estimator")]
    for kind in kinds:
        columns += [
            Column(title=f"prompts, {kind}", kind="number", help="a fact, that were run for it"),
            Column(title=f"seconds, {kind}", kind="number", help="a thousand facts"),
            Column(title=f"facts, {kind}", kind="count", help="that it was asked, a model",
                   detail=True),
        ]  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        own = [cell for kind in kinds for cell in _cost(groups, kind, name)]
        first = next(group for group in groups if name in group.names)
        rows.append((marked(first, name), *own))
    return Table(
        id="cost",
        title="What it takes: prompts a fact, and seconds a thousand facts",
        columns=tuple(columns),
        rows=tuple(rows),
        note=f"Over all worlds; training included where a method learns. {MARKED}",
    )


def worlds_table(groups: Groups) -> Table:
    """Every model by itself."""
    measures: tuple[tuple[str, str, ColumnKind], ...] = (
        ("auroc.taught", "AUROC taught", "number"),
        ("auroc.stored", "AUROC stored", "number"),
        ("share.estimated", "says known", "percent"),
        ("share.taught", "taught", "percent"),
        ("share.stored", "stored", "percent"),
        ("recall.taught", "taught found", "percent"),
        ("false.untaught", "untaught found", "percent"),
        ("unshown.less_chance", "unshown less chance", "percent"),
        ("ece.taught", "ECE taught", "percent"),
        ("cost.seconds", "seconds", "number"),
    )
    rows: list[tuple[Cell, ...]] = []
    for group in groups:
        for one in group.models:
            for name in group.names:
                at = (one.trial.world, one.trial.model)
                own = (group.each.get((m, name), {}).get(at) for m, *_ in measures)
                rows.append((*at, group.kind, name, *own))
    return Table(
        id="models",
        title="Every model by itself",
        columns=(
            *(Column(title=title) for title in ("world", "model", "kind", "estimator")),
            *(Column(title=title, kind=kind) for _, title, kind in measures),
        ),
        rows=tuple(rows),
        browsable=True,
    )


def _row(group: Group, name: str, measures: Sequence[str]) -> tuple[Cell, ...]:
    """An estimator with some of its numbers."""
    return marked(group, name), *(group.of(measure, name) for measure in measures)


def _true_shares(group: Group) -> str:
    taught, stored = (group.of(f"share.{t}", group.names[0]) for t in ("taught", "stored"))
    told = (_number(e, " %") for e in (taught, stored))
    return "Of the facts asked {} are taught, {} are stored.".format(*told)


def _cost(groups: Groups, kind: str, name: str) -> tuple[Cell, Cell, Cell]:
    own = [
        one.asked[name].verdicts
        for group in groups
        if group.kind == kind
        for one in group.models
        if name in one.asked
    ]
    facts = sum(len(v.facts) for v in own)
    if not facts:
        return None, None, None
    prompts, seconds = sum(v.prompts for v in own), sum(v.seconds for v in own)
    return prompts / facts, 1000 * seconds / facts, round(facts / len(own))


def _sided(difference: Estimate, neither: str, above: str, below: str) -> str:
    if difference.value is None or difference.low is None:
        return "not measured"
    if includes(difference):
        return neither
    return above if difference.value > 0 else below


def _number(estimate: Estimate, unit: str) -> str:
    """A number and its interval on one line; one that has a unit is in hundredths."""
    if estimate.value is None:
        return "not measured"
    scale, digits = (100, 1) if unit else (1, 3)
    shown = [
        f"{scale * x:.{digits}f}".replace("-", "−")
        for x in (estimate.value, estimate.low, estimate.high)
        if x is not None
    ]
    ends = f" [{shown[1]}, {shown[2]}]" if len(shown) == 3 else ""
    return f"{shown[0]}{unit}{ends}"
