"""Tables and figures of MONITOR. Knows estimates and outcomes, nothing of prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from sonde.core.facts import Relation, Template
from sonde.core.reports import (
    Cell,
    Curve,
    Curves,
    Estimate,
    Estimates,
    Figure,
    Metric,
    Strip,
    Table,
)
from sonde.metrics.distance import ANCHOR, IRD, MONITOR, PFD, RULES, SOLID, SOLID_ANCHORS, Rule
from sonde.metrics.estimates import RELATIONS
from sonde.metrics.judged import Bools, Floats
from sonde.former.monitor.judge import Outcomes
from sonde.former.monitor.numbers import (
    ANCHOR_RATE,
    AVG,
    BASE,
    GROUPS,
    MAJORITY,
    MAX,
    MIN,
    STDEV,
    accuracy_tables,
    of_all,
)
from sonde.reporting.build.figures import Dot, distribution, dots_by_relation, strip
from sonde.reporting.build.tables import (
    RELATION_IN_ONE,
    Field,
    browse,
    by_relation,
    drawn,
    listing,
    table,
    titled,
)

SHOWN, POINTS = 50_000, 2_000
"""The most facts in the table of them, and dots in their figure."""

VALID_WHERE: Mapping[Rule, str] = {
    "exact": "the answer written after the right name is that name",
    "prefix": "the answer written after the right name begins with that name",
    "any": "the answer to some prompt is the right name",
}


def tables(estimates: Estimates, outcomes: Outcomes) -> Iterator[Table]:
    """All of them, the widest view first."""
    yield _relations(estimates, outcomes)
    yield _by_prompt(estimates, outcomes)
    yield _accuracies(estimates, outcomes)
    yield _anchors(estimates)
    yield _cost(outcomes)
    yield _frames(outcomes)
    yield _facts(outcomes)


def _relations(estimates: Estimates, outcomes: Outcomes) -> Table:
    known, counted = outcomes.monitored, outcomes.monitored.counted()
    frames = {r.id: len(own) for r, own in zip(known.relations, known.frames, strict=True)}
    facts = {r.id: np.flatnonzero(known.relation == i) for i, r in enumerate(known.relations)}

    def anchors(relation: Relation) -> int:
        return int(counted[facts[relation.id]].sum())

    def mean_wrong(relation: Relation) -> float | None:
        names = [len(known.wrong[c]) for c in facts[relation.id]]
        return float(np.mean(names)) if names else None

    return by_relation(
        estimates,
        known.relations,
        [
            *(MONITOR, PFD, IRD, ANCHOR, SOLID_ANCHORS.detail()),
            Field("anchors", anchors, "count", "facts that MONITOR is computed from"),
            Field("facts", lambda r: len(facts[r.id]), "count"),
            Field("R", lambda r: frames[r.id], "count", "frames", True),
            Field("M", mean_wrong, "number", "wrong names of a fact, mean", True),
        ],
        title="Reliability by relation",
        head=RELATION_IN_ONE,
    )


def _by_prompt(estimates: Estimates, outcomes: Outcomes) -> Table:
    metrics = (AVG, MAJORITY, MAX, MIN, BASE.detail(), STDEV.detail())
    return by_relation(
        estimates,
        outcomes.monitored.relations,
        [of_all(metric) for metric in metrics],
        id="accuracy-by-relation",
        title="Accuracy over prompts by relation",
        note="Over all facts; prompts are all frames, and the base frame after every wrong name.",
        head=RELATION_IN_ONE,
    )


def _accuracies(estimates: Estimates, outcomes: Outcomes) -> Table:
    known = outcomes.monitored
    facts = {"all": len(known.facts), "valid": int(known.valid[known.rule].sum())}
    rows = [(part, group) for part in accuracy_tables(outcomes) for group in GROUPS]

    def look(row: tuple[str, str], metric: Metric) -> Estimate:
        part, group = row
        return estimates[metric.of(part=part, group=group).at(RELATIONS)]

    return table(
        rows,
        [
            Field(
                "facts",
                lambda row: f"{row[1]}, full" if row[0] == "full" else row[1],
                help="all, or those with a valid anchor",
            ),
            *(AVG, MAX, MIN, BASE, STDEV, MAJORITY),
            Field("n", lambda row: facts[row[1]], "count"),
        ],
        look,
        id="accuracy-over-prompts",
        title="Accuracy over prompts, mean over relations",
        note="Over all facts, and over those with a valid anchor. Prompts are all frames, and the "
        "base frame after every wrong name; in full every frame also after every wrong name. max "
        "and min are of the best and the worst prompt of each relation, stdev is over its prompts; "
        "then the mean over relations.",
    )


def _anchors(estimates: Estimates) -> Table:
    return listing(
        estimates,
        [ANCHOR_RATE.of(rule=rule).named(rule, VALID_WHERE[rule]) for rule in RULES],
        RELATIONS,
        head="rule",
        value="share of facts",
        id="anchors",
        title="Facts with a valid anchor, by rule",
        note="Means over relations.",
    )


def _cost(outcomes: Outcomes) -> Table:
    """Prompts as counted, characters and tokens as they came."""
    known = outcomes.monitored
    sizes = [(len(f), len(w)) for f, w in zip(known.framed, known.wrong, strict=True)]
    few = sum(1 + r + m for r, m in sizes)
    grid = sum(r * (1 + m) for r, m in sizes)

    def row(way: str, prompts: int, *parts: str) -> tuple[Cell, ...]:
        costs = [outcomes.cost.get(part, (0, 0)) for part in parts]
        return way, prompts, *(map(sum, zip(*costs, strict=True)) if parts else (None, None))

    rows = [
        row("MONITOR: R + 1 + M probabilities, the anchor written", few, "monitor"),
        row("accuracy over its prompts: R + M answers written", few - len(sizes), "accuracy"),
        row("accuracy over the full grid: R × (1 + M) answers written", grid, "accuracy", "grid")
        if outcomes.full
        else row("full grid, R × (1 + M), not asked", grid),
    ]
    fields: list[Field[tuple[Cell, ...]]] = [
        Field("way", lambda row: row[0]),
        Field("prompts", lambda row: row[1], "count"),
        Field("characters read", lambda row: row[2], "count", "before shared beginnings"),
        Field("tokens written", lambda row: row[3], "count"),
    ]
    return table(
        rows,
        fields,
        id="cost",
        title="What it costs",
        note="The full grid asks every frame with nothing told and after every wrong name; set "
        "full to ask it, and compare the seconds of the two runs with 'sonde compare'.",
    )


def _frames(outcomes: Outcomes) -> Table:
    """How every frame did: the first of each relation is its base frame."""
    known, counted = outcomes.monitored, outcomes.monitored.counted()
    frames = [(i, j) for i, templates in enumerate(known.frames) for j in range(len(templates))]
    facts = [np.flatnonzero(known.relation == i) for i in range(len(known.relations))]
    valid = [[(known.anchor[c], known.framed[c]) for c in own if counted[c]] for own in facts]
    likely = [_mean([framed[j].mean() for _, framed in valid[i]]) for i, j in frames]
    apart = [_mean([np.abs(f[j] - anchor).mean() for anchor, f in valid[i]]) for i, j in frames]
    fields: list[Field[int]] = [
        Field("relation", [titled(known.relations[i]) for i, _ in frames]),
        Field("frame", [_asked(known.frames[i][j]) for i, j in frames]),
        Field(
            "accuracy",
            [_mean(outcomes.right[facts[i], 1 + j] == 1) for i, j in frames],
            "percent",
            "over all facts",
        ),
        Field("probability", likely, "number", "of the object; valid anchors"),
        Field("distance", apart, "number", "from the anchor; valid anchors"),
    ]
    return browse(range(len(frames)), fields, id="frames", title="Frames")


def _mean(values: Sequence[float] | Floats | Bools) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _asked(template: Template) -> str:
    return template.text.replace("[Y].", "").strip()


def _facts(outcomes: Outcomes) -> Table:
    known = outcomes.monitored
    counted, valid = known.counted(), known.valid[known.rule]
    framed, misled = ([_mean(p) for p in each] for each in (known.framed, known.misled))
    sides = [(right, 1 + len(f)) for right, f in zip(known.right, known.framed, strict=True)]
    counts = [
        "counted" if counts else "no wrong name" if anchored else "no anchor"
        for counts, anchored in zip(counted, valid, strict=True)
    ]
    fields: list[Field[int]] = [
        Field("relation", [titled(known.relations[number]) for number in known.relation]),
        Field("subject", [fact.subject.name for fact in known.facts]),
        Field("right", [fact.objects[0].name for fact in known.facts]),
        Field("said after it", [s[0] for s in known.said], help="the answer after the right name"),
        Field("anchor", known.anchors(), "number", "probability after the right name"),
        Field("frames", framed, "number", "mean probability over the frames"),
        Field("misled", misled, "number", "mean probability after wrong names"),
        Field("PFD", known.pfd(), "number"),
        Field("IRD", known.ird(), "number"),
        Field("said", [said[1] for said in known.said], help="the answer to the base frame"),
        Field("right in frames", [_hits(right[1:border]) for right, border in sides]),
        Field("right though misled", [_hits(right[border:]) for right, border in sides]),
        Field("in MONITOR", counts),
    ]
    kept = drawn([fact.id for fact in known.facts], known.seed, SHOWN)
    return browse(kept, fields, id="facts", title="Facts", total=len(known.facts))


def _hits(right: Bools) -> str:
    return f"{int(right.sum())} of {len(right)}"


def figures(estimates: Estimates, outcomes: Outcomes) -> Iterator[Figure]:
    """Relations, facts, prompts, anchors."""
    known = outcomes.monitored
    yield dots_by_relation(
        estimates,
        known.relations,
        {metric.label: metric for metric in (MONITOR, PFD, IRD)},
        id="monitor-by-relation",
        title="MONITOR of every relation, with its two parts",
        axis="smaller is more reliable",
        note="Whiskers are 95 % intervals. PFD and IRD are distances of probabilities; "
        "MONITOR divides by that of the anchors.",
    )
    yield _distances(outcomes)
    yield _prompt_accuracies(outcomes)
    yield distribution(
        known.anchors()[known.valid[known.rule]],
        id="anchor-probability",
        title="How likely the valid anchors are",
        unit="number",
        axis="probability of the object after its own name",
        marks={"solid": SOLID},
    )


def _distances(outcomes: Outcomes) -> Curves:
    known = outcomes.monitored
    places = np.flatnonzero(known.counted())
    step = max(1, -(-len(places) // POINTS))
    pfd, ird = known.pfd()[places[::step]], known.ird()[places[::step]]
    some = f" Every {step}th fact is drawn." if step > 1 else ""
    return Curves(
        id="framing-against-interference",
        title="What moves each fact: other frames or wrong names",
        kind="number",
        x_axis="PFD, distance of other frames",
        y_axis="IRD, distance after wrong names",
        curves=(Curve(name="fact", x=tuple(pfd.tolist()), y=tuple(ird.tolist()), joined=False),),
        diagonal=True,
        note=f"One dot a fact with a valid anchor; near the corner nothing moves it.{some}",
    )


def _prompt_accuracies(outcomes: Outcomes) -> Strip:
    """Accuracy of every prompt: the frames, and the base frame after each wrong name."""
    known, right = outcomes.monitored, accuracy_tables(outcomes)["accuracy"]

    def dots(number: int) -> list[Dot]:
        of_relation = right[known.relation == number]
        rates = np.nanmean(of_relation[:, ~np.isnan(of_relation).all(axis=0)], axis=0).tolist()
        frames = [(_asked(template), "frame") for template in known.frames[number]]
        wrong = [(f"wrong name {n + 1}", "after a wrong name") for n in range(len(rates))]
        return [(rate, *name) for rate, name in zip(rates, (*frames, *wrong), strict=False)]

    return strip(
        ((titled(relation), dots(number)) for number, relation in enumerate(known.relations)),
        id="accuracy-by-prompt",
        title="Accuracy with every prompt",
        axis="accuracy over all facts of the relation",
        note="One dot a prompt: frames with nothing told, and the base frame after wrong names.",
    )
