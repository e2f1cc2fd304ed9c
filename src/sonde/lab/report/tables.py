"""Tables of a lab's report. Knows the numbers of groups, nothing of how they are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sonde.core.reports import Cell, Estimate, Estimates, Metric, Table
from sonde.core.words import listed
from sonde.lab.evaluation.judging import Group
from sonde.lab.evaluation.measures import BASE, CAUSES, SUBSETS
from sonde.lab.evaluation.verdicts import ANY
from sonde.lab.report.trust import Choice, at_chance, choices, verdict
from sonde.lab.report.words import MARKED, M, any_note, key, marked, places, short, titled
from sonde.reporting.build.tables import Field, browse, by_place, side_by_side, table

MOST_STEPS = 6
"""Steps of the ladder that a terminal has room for."""

NARROW = 2
"""Causes beside which a terminal has room for more."""

Groups = Sequence[Group]

MAIN = (
    *(M[f"auroc.{truth}"] for truth in ("taught", "stored")),
    *(M[f"share.{id}"] for id in ("estimated", "less_taught", "less_stored")),
    *(M[f"false.{id}"].detail() for id in ("untaught", "rate.taught", "rate.stored")),
    *(M[f"recall.{truth}"].detail() for truth in ("taught", "stored")),
)
BY_MODEL = (
    *(M[f"auroc.{truth}"] for truth in ("taught", "stored")),
    *(M[f"share.{id}"] for id in ("estimated", "taught", "stored")),
    *(M["recall.taught"], M["false.untaught"]),
    M["unshown.less_chance"].named("unshown less chance"),
    M["ece.{truth}"].of(truth="taught").named("ECE taught"),
    M["cost.seconds"],
)


def tables(groups: Groups, estimates: Estimates) -> Iterator[Table | None]:
    """All of them, group by group; an estimate that was not made is taken as not measured."""
    yield _trust(groups)
    for make in (_main, _recall):
        for group in groups:
            yield make(group, groups, estimates)
    for make in (_discoveries, _learning, _unshown):
        for group in groups:
            # a terminal has seen enough by now
            yield replace(make(group, groups, estimates), browsable=True)
    yield _cost(groups)
    for group in groups:
        yield _calibration(group, groups, estimates)
    yield _models(groups)


def _trust(groups: Groups) -> Table:
    """Which estimator answers which question best."""
    names = {"auroc": "AUROC", "share": "off by", "false": "claims", "ece": "ECE"}
    units = {"auroc": "", "share": " points", "false": " % of them", "ece": " %"}

    def how_good(choice: Choice) -> str:
        part = choice.measure.partition(".")[0]
        return f"{names[part]} {_number(choice.estimate, units[part])}"

    fields: list[Field[tuple[Group, Choice]]] = [
        Field("models", lambda row: short(row[0], groups)),
        Field("question", lambda row: row[1].question),
        Field("first", lambda row: row[1].best, help="best only where nothing is tied with it"),
        Field("how good", lambda row: how_good(row[1]), help="with its 95 % interval"),
        Field("ties", lambda row: listed(row[1].ties, 2) or "none", help=TIES),
        Field("all ties", lambda row: ", ".join(row[1].ties) or "none", detail=True),
    ]
    return table(
        [(group, choice) for group in groups for choice in choices(group)],
        fields,
        id="trust",
        title="Which number to trust for which question",
        note="By score: the highest AUROC, and the lowest ECE of the score as a probability. By "
        "share: the estimate nearest to the true share. Shares and ECE: only of estimators whose "
        "AUROC is clearly above 0.5; others are near the truth by accident. Fewest: of those that "
        "find at least half as many taught facts as the one that finds most. No controls. Ties: "
        "not told apart by a paired test over worlds, corrected for the choice (Holm); in a single "
        "world, by intervals that overlap.",
    )


OF_FOUND = "share of facts found that are untaught"
TIES = "estimators that are not told from it"


def _main(group: Group, groups: Groups, estimates: Estimates) -> Table:
    """Every estimator against both truths."""
    taught, stored = (
        _number(group.of(f"share.{truth}", group.names[0]), " %") for truth in ("taught", "stored")
    )
    return by_place(
        estimates,
        places(group),
        MAIN,
        head="estimator",
        id=f"estimators-{key(group)}",
        title=f"{titled(group, groups)}: estimators against the truth",
        note=f"Of the facts asked {taught} are taught, {stored} are stored. {MARKED}",
    )


def _recall(group: Group, groups: Groups, estimates: Estimates) -> Table:
    """What is found, by how often the text states it."""
    shown = steps(group.ladder)
    by_step = [
        M["recall.exposure.{n}"]
        .of(n=step)
        .named(f"{step}×", f"facts that the text states {step} times" if step else "not taught")
        .detail(step not in shown)
        for step in group.ladder
    ]
    return by_place(
        estimates,
        places(group, [*group.names, *([ANY] if group.finders else [])]),
        [
            *by_step,
            M["recall.taught"].named("taught", "all taught facts").detail(),
            M["recall.stored"].named("stored", "all stored facts").detail(),
            M["recall.not_stored"].detail(),
        ],
        head="estimator",
        id=f"recall-{key(group)}",
        title=f"{titled(group, groups)}: facts found, by how often the text states them",
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
    shown = dict.fromkeys([0, 1, *(1 + i * (last - 1) // 4 for i in range(1, 5))])
    return tuple(ladder[i] for i in shown)


def _discoveries(group: Group, groups: Groups, estimates: Estimates) -> Table:
    """Untaught facts that are held to be known, by cause."""
    causes = [M[f"false.{cause}"] for cause in CAUSES if group.measured(f"false.{cause}")]
    of_found = M["false.rate.taught"].named("of found", OF_FOUND)
    return by_place(
        estimates,
        places(group),
        [
            M["false.untaught"].named("untaught", "of all untaught facts"),
            *causes,
            of_found.detail(len(causes) > NARROW),
            M["false.rate.stored"].detail(),
        ],
        head="estimator",
        id=f"false-{key(group)}",
        title=f"{titled(group, groups)}: false discoveries, by cause",
        note=f"Share of untaught facts held to be known. {MARKED}",
    )


Gain = tuple[str, str, str]
"""A method, the facts on which it is held against a control, and that control."""


def _learning(group: Group, groups: Groups, estimates: Estimates) -> Table:
    """What every method that learns gains over LAMA, beside its controls."""
    methods = [name for name in group.own if name in group.learners]
    owned = {control for name in group.own for control in group.controls_of(name)}
    alone = [name for name in group.names if name in group.controls and name not in owned]
    rows = [row for name in methods for row in _gains(group, name)]
    rows += [row for name in alone for row in _gains(group, name) if row[1] != "taught"]
    parts = (
        "guessable and not: of the untaught ones; never shown: relations that the text leaves out"
    )
    paired = f"share found less that of {BASE}, paired"

    def gain(row: Gain, name: str) -> Estimate:
        return group.of(f"gain.{row[1]}", name)

    fields: list[Field[Gain]] = [
        Field("method", lambda row: marked(group, row[0])),
        Field("facts", lambda row: SUBSETS[row[1]], help=parts),
        Field("gain", lambda row: gain(row, row[0]), "percent", paired),
        Field("control", lambda row: row[2].removeprefix(f"{row[0]}-") or "none"),
        Field("its gain", lambda row: gain(row, row[2]), "percent", "the same of the control"),
        Field("less control", lambda row: group.of(f"matched.{row[1]}", row[2]), "percent", LESS),
        Field("verdict", lambda row: verdict(group, row[2], row[1]), help=MATCHED),
    ]
    return table(
        rows,
        fields,
        id=f"learning-{key(group)}",
        title=f"{titled(group, groups)}: learning told from recall",
        note="A control on random weights knows no fact: what it finds of untaught facts is learnt "
        "from the facts it was trained on. Matched on untaught facts: so is the method's gain. On "
        f"taught facts a method should be above its control. {MARKED}",
    )


LESS = "method less control, paired"
MATCHED = "matched: the interval of the difference includes 0"


def _gains(group: Group, name: str) -> Iterator[Gain]:
    """Every subset beside the first control, and all untaught facts beside the others."""
    first, *others = group.controls_of(name) or ("",)
    for subset in SUBSETS:
        if group.of(f"gain.{subset}", name).value is not None:
            for control in (first, *(others if subset == "untaught" else ())):
                yield name, subset, control


def _unshown(group: Group, groups: Groups, estimates: Estimates) -> Table:
    """What is counted in relations never shown, beside the chance."""
    counts, chance, less = (M[f"unshown.{id}"] for id in ("counts", "chance", "less_chance"))
    rows = [name for name in group.names if group.of(less.id, name).value is not None]
    at = places(group, rows)
    names = dict(zip(at, rows, strict=True))
    includes = "whether the interval of the difference includes 0"
    return side_by_side(
        at,
        [
            counts,
            chance.without_interval(),
            less,
            Field("verdict", lambda row: at_chance(group, names[row]), help=includes),
        ],
        lambda row, metric: estimates[metric.at(at[row])],
        head="estimator",
        id=f"unshown-{key(group)}",
        title=f"{titled(group, groups)}: relations never shown, beside chance",
        note="Chance: what the same answers would count with the objects of other facts of the "
        "relation. Of twenty estimators at chance one is expected to miss it by luck. " + MARKED,
    )


def _calibration(group: Group, groups: Groups, estimates: Estimates) -> Table:
    """Scores read as probabilities."""
    shown = by_place(
        estimates,
        places(group),
        [
            M[f"{score}.{{truth}}"].of(truth=truth)
            for truth in ("taught", "stored")
            for score in ("gap", "ece", "brier")
        ],
        head="estimator",
        id=f"calibration-{key(group)}",
        title=f"{titled(group, groups)}: scores as probabilities of being known",
        note=MARKED,
    )
    return replace(shown, browsable=True)


def _cost(groups: Groups) -> Table:
    """What every estimator takes, by kind of model."""
    names = dict.fromkeys(name for group in groups for name in group.names)
    rows = {marked(next(g for g in groups if n in g.names), n): n for n in names}

    def cell(kind: str, place: int) -> Callable[[str], Cell]:
        return lambda row: _spent(groups, kind, rows[row])[place]

    fields: list[Field[str]] = []
    for kind in dict.fromkeys(group.kind for group in groups):
        fields += [
            Field(f"prompts, {kind}", cell(kind, 0), "number", "a fact, that were run for it"),
            Field(f"seconds, {kind}", cell(kind, 1), "number", "a thousand facts"),
            Field(f"facts, {kind}", cell(kind, 2), "count", "that it was asked, a model", True),
        ]
    return side_by_side(
        rows,
        fields,
        head="estimator",
        id="cost",
        title="What it takes: prompts a fact, and seconds a thousand facts",
        note=f"Over all worlds; training included where a method learns. {MARKED}",
    )


def _spent(groups: Groups, kind: str, name: str) -> tuple[Cell, Cell, Cell]:
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


def _models(groups: Groups) -> Table:
    """Every model by itself."""
    rows = [
        (group, name, (one.trial.world, one.trial.model))
        for group in groups
        for one in group.models
        for name in group.names
    ]

    def number(metric: Metric) -> Field[Row]:
        def cell(row: Row) -> float | None:
            return row[0].each.get((metric.id, row[1]), {}).get(row[2])

        return Field(metric.label, cell, metric.unit)

    fields: list[Field[Row]] = [
        Field("world", lambda row: row[2][0]),
        Field("model", lambda row: row[2][1]),
        Field("kind", lambda row: row[0].kind),
        Field("estimator", lambda row: row[1]),
        *map(number, BY_MODEL),
    ]
    return browse(rows, fields, id="models", title="Every model by itself")


Row = tuple[Group, str, tuple[str, str]]
"""An estimator of a group on a model, by its world and its name."""


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
