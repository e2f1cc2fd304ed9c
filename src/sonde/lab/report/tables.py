"""Tables of a lab's report. Knows the numbers of groups, nothing of how they are computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sonde.core.reports import Cell, Estimate, Estimates, Table
from sonde.core.words import listed
from sonde.lab.evaluation.judging import ANY, CONTROL, LEARNS, Group
from sonde.lab.evaluation.measures import BASE, CAUSES, SUBSETS, TRUTHS, M
from sonde.lab.report.findings import Choice, at_chance, choices, verdict
from sonde.reports.legacy import Field, Fields, table

MOST_STEPS = 6
"""Steps of the ladder that a terminal has room for."""

NARROW = 2
"""Causes beside which a terminal has room for more."""

MARKED = (
    f"{LEARNS.strip()}: learns from other facts. {CONTROL.strip()}: a control, which estimators "
    "are held against."
)

Groups = Sequence[Group]

MAIN = (
    *(M[f"auroc.{truth}"] for truth in TRUTHS),
    *(M[f"share.{id}"] for id in ("estimated", "less_taught", "less_stored")),
    *(M[f"false.{id}"].detail() for id in ("untaught", "rate.taught", "rate.stored")),
    *(M[f"recall.{truth}"].detail() for truth in TRUTHS),
)
CALIBRATION = tuple(
    M[f"{score}.{{truth}}"].of(truth=truth) for truth in TRUTHS for score in ("gap", "ece", "brier")
)
COST = (
    M["cost.prompts_per_fact"].without_interval(),
    M["cost.seconds_per_1000_facts"].without_interval(),
    M["cost.facts"].without_interval().detail(),
)
BY_MODEL = (
    *(M[f"auroc.{truth}"] for truth in TRUTHS),
    *(M[f"share.{id}"] for id in ("estimated", "taught", "stored")),
    *(M["recall.taught"], M["false.untaught"]),
    M["unshown.less_chance"].named("unshown less chance"),
    M["ece.{truth}"].of(truth="taught").named("ECE taught"),
    M["cost.seconds"],
)


def tables(groups: Groups, estimates: Estimates) -> Iterator[Table | None]:
    """All of them, group by group; an estimate that was not made is taken as not measured."""
    yield _trust(groups)
    for make in (_main, _recall, _discoveries, _learning, _unshown):
        for group in groups:
            built = make(group, estimates)
            # a terminal has seen enough after the first two
            yield built if make in (_main, _recall) else replace(built, browsable=True)
    for group in groups:
        note = "A mean over the worlds; training included where a method learns."
        yield _by_estimator(group, estimates, "cost", "what it takes", COST, note)
    for group in groups:
        title = "scores as probabilities of being known"
        scores = _by_estimator(group, estimates, "calibration", title, CALIBRATION)
        yield replace(scores, browsable=True)
    yield _models(groups)


def _by_estimator(
    group: Group,
    estimates: Estimates,
    id: str,
    title: str,
    fields: Fields[str],
    note: str = "",
    names: Sequence[str] | None = None,
) -> Table:
    """A row for each estimator of a group, or for some."""
    places = group.places(names)
    return table(
        places,
        [Field[str]("estimator", str), *fields],
        lambda row, metric: estimates[metric.at(places[row])],
        id=f"{id}-{group.key}",
        title=f"{group.title}: {title}",
        note=f"{note} {MARKED}".lstrip(),
    )


def _trust(groups: Groups) -> Table:
    """Which estimator answers which question best."""
    names = {"auroc": "AUROC", "share": "off by", "false": "claims", "ece": "ECE"}
    units = {"auroc": "", "share": " points", "false": " % of them", "ece": " %"}

    def row(group: Group, choice: Choice) -> dict[str, str]:
        part = choice.measure.partition(".")[0]
        return {
            "models": group.kind if group.alone else f"{group.kind}, {group.worlds}",
            "question": choice.question,
            "first": choice.best,
            "how good": f"{names[part]} {_number(choice.estimate, units[part])}",
            "ties": listed(choice.ties, 2) or "none",
            "all ties": ", ".join(choice.ties) or "none",
        }

    fields: Fields[dict[str, str]] = [
        *("models", "question"),
        Field("first", help="best only where nothing is tied with it"),
        Field("how good", help="with its 95 % interval"),
        Field("ties", help="estimators that are not distinguishable from it"),
        Field("all ties", detail=True),
    ]
    return table(
        [row(group, choice) for group in groups for choice in choices(group)],
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


def _main(group: Group, estimates: Estimates) -> Table:
    """Every estimator against both truths."""
    taught, stored = (_number(group.of(f"share.{truth}", group.names[0]), " %") for truth in TRUTHS)
    note = f"Of the facts asked {taught} are taught, {stored} are stored."
    title = "estimators against the truth"
    return _by_estimator(group, estimates, "estimators", title, MAIN, note)


def _recall(group: Group, estimates: Estimates) -> Table:
    """What is found, by how often the text states it."""
    shown = steps(group.ladder)
    by_step = [
        M["recall.exposure.{n}"]
        .of(n=step)
        .named(f"{step}×", f"facts that the text states {step} times" if step else "not taught")
        .detail(step not in shown)
        for step in group.ladder
    ]
    fields = [
        *by_step,
        *(M[f"recall.{truth}"].named(truth, f"all {truth} facts").detail() for truth in TRUTHS),
        M["recall.not_stored"].detail(),
    ]
    note = f"0×: untaught facts of relations that the text states others of. {any_note(group)}"
    names = [*group.names, *([ANY] if group.finders else [])]
    title = "facts found, by how often the text states them"
    return _by_estimator(group, estimates, "recall", title, fields, note, names)


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


def _discoveries(group: Group, estimates: Estimates) -> Table:
    """Untaught facts that are held to be known, by cause."""
    causes = [M[f"false.{cause}"] for cause in CAUSES if group.measured(f"false.{cause}")]
    of_found = M["false.rate.taught"].named("of found", "share of facts found that are untaught")
    fields = [
        M["false.untaught"].named("untaught", "of all untaught facts"),
        *causes,
        of_found.detail(len(causes) > NARROW),
        M["false.rate.stored"].detail(),
    ]
    note = "Share of untaught facts held to be known."
    return _by_estimator(group, estimates, "false", "false discoveries, by cause", fields, note)


def _learning(group: Group, _: Estimates) -> Table:
    """What every method that learns gains over LAMA, beside its controls."""
    owned = {control for name in group.estimators for control in group.controls_of(name)}
    learnt = [name for name in group.names if name not in group.plain and name not in owned]
    parts = (
        "guessable and not: of the untaught ones; never shown: relations that the text leaves out"
    )
    fields: Fields[dict[str, Cell]] = [
        "method",
        Field("facts", help=parts),
        Field("gain", kind="percent", help=f"share found less that of {BASE}, paired"),
        "control",
        Field("its gain", kind="percent", help="the same of the control"),
        Field("less control", kind="percent", help="method less control, paired"),
        Field("verdict", help="matched: the interval of the difference includes 0"),
    ]
    return table(
        [row for name in learnt for row in _gains(group, name)],
        fields,
        id=f"learning-{group.key}",
        title=f"{group.title}: learning told from recall",
        note="A control on random weights knows no fact: what it finds of untaught facts is learnt "
        "from the facts it was trained on. Matched on untaught facts: so is the method's gain. On "
        f"taught facts a method should be above its control. {MARKED}",
    )


def _gains(group: Group, name: str) -> Iterator[dict[str, Cell]]:
    """Every subset beside the first control, and all untaught facts beside the others; a control of
    no method is not looked at on taught facts."""
    first, *others = group.controls_of(name) or ("",)
    for subset, part in SUBSETS.items():
        gain = group.of(f"gain.{subset}", name)
        if gain.value is None or (subset == "taught" and name in group.controls):
            continue
        for control in (first, *(others if subset == "untaught" else ())):
            yield {
                "method": group.marked(name),
                "facts": part.words,
                "gain": gain,
                "control": control.removeprefix(f"{name}-") or "none",
                "its gain": group.of(f"gain.{subset}", control),
                "less control": group.of(f"matched.{subset}", control),
                "verdict": verdict(group, control, subset),
            }


def _unshown(group: Group, estimates: Estimates) -> Table:
    """What is counted in relations never shown, beside the chance."""
    counts, chance, less = (M[f"unshown.{id}"] for id in ("counts", "chance", "less_chance"))
    names = [name for name in group.names if group.of(less.id, name).value is not None]
    verdicts = {group.marked(name): at_chance(group, name) for name in names}
    includes = "whether the interval of the difference includes 0"
    at = Field("verdict", verdicts.__getitem__, help=includes)
    note = (
        "Chance: what the same answers would count with the objects of other facts of the "
        "relation. Of twenty estimators at chance one is expected to miss it by luck."
    )
    fields: Fields[str] = [counts, chance.without_interval(), less, at]
    title = "relations never shown, beside chance"
    return _by_estimator(group, estimates, "unshown", title, fields, note, names)


def _models(groups: Groups) -> Table:
    """Every model by itself."""
    rows = [
        {
            "world": trial.world,
            "model": trial.model,
            "kind": trial.kind,
            "estimator": name,
            **{
                metric.label: group.each.get((metric.id, name), {}).get((trial.world, trial.model))
                for metric in BY_MODEL
            },
        }
        for group in groups
        for trial in group.trials
        for name in group.names
    ]
    fields: list[Field[dict[str, str | float | None]] | str] = [
        *("world", "model", "kind", "estimator"),
        *(Field(metric.label, kind=metric.unit) for metric in BY_MODEL),
    ]
    return table(rows, fields, id="models", title="Every model by itself", browsable=True)


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
