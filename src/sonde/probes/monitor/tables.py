"""Tables and figures of MONITOR. Knows estimates and outcomes, nothing of prompts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sonde.core.facts import Relation
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
from sonde.metrics.distance import ANCHOR, IRD, MONITOR, PFD, RULES, SOLID, SOLID_ANCHORS
from sonde.metrics.grid import Floats
from sonde.probes.monitor.ask import Settings
from sonde.probes.monitor.judge import Outcomes
from sonde.probes.monitor.metrics import ANCHOR_RATE, AVG, BASE, MAJORITY, MAX, MIN, STDEV, of_all
from sonde.probes.monitor.numbers import GROUPS, table_of
from sonde.reporting.build.figures import Dot, distribution, dots_by_relation, strip
from sonde.reporting.build.parts import shown
from sonde.reporting.build.tables import (
    RELATION_IN_ONE,
    Field,
    browse,
    by_relation,
    drawn,
    table,
    titled,
)
from sonde.reporting.catalogue import RELATIONS

SHOWN, POINTS = 50_000, 2_000
"""The most facts in the table of them, and dots in their figure."""


def tables(estimates: Estimates, outcomes: Outcomes, settings: Settings) -> tuple[Table, ...]:
    """All of them, the widest view first."""
    return shown(
        (
            _relations(estimates, outcomes),
            _by_prompt(estimates, outcomes),
            _accuracies(estimates, outcomes),
            _anchors(estimates),
            _cost(outcomes, settings),
            _frames(outcomes),
            _facts(outcomes),
        )
    )


def _relations(estimates: Estimates, outcomes: Outcomes) -> Table:
    known = outcomes.monitored
    count = len(known.relations)
    numbers = {relation.id: number for number, relation in enumerate(known.relations)}
    facts = np.bincount(known.relation, minlength=count)
    anchors = np.bincount(known.relation[known.counted()], minlength=count)
    wrong = np.bincount(known.relation, [len(w) for w in known.wrong], minlength=count)

    def mean_wrong(relation: Relation) -> float | None:
        number = numbers[relation.id]
        return float(wrong[number] / facts[number]) if facts[number] else None

    frames = [len(own) for own in known.frames]
    return by_relation(
        estimates,
        known.relations,
        [
            *(MONITOR, PFD, IRD, ANCHOR, SOLID_ANCHORS.detail()),
            Field(
                "anchors",
                lambda r: int(anchors[numbers[r.id]]),
                "count",
                "facts that MONITOR is computed from",
            ),
            Field("facts", lambda r: int(facts[numbers[r.id]]), "count"),
            Field("R", lambda r: frames[numbers[r.id]], "count", "frames", True),
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
    full = AVG.of(part="full", group="all").at(RELATIONS) in estimates
    rows = [(part, group) for part in ("accuracy", "full")[: 1 + full] for group in GROUPS]

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
    words = {
        "exact": "the answer after the right name is that name",
        "prefix": "it begins with that name",
        "any": "the answer to some prompt is that name",
    }
    fields: list[Field[str]] = [
        Field("rule", lambda rule: rule),
        Field("valid where", lambda rule: words[rule]),
        Field(
            "share of facts",
            lambda rule: estimates[ANCHOR_RATE.of(rule=rule).at(RELATIONS)],
            "percent",
            "mean over relations",
        ),
    ]
    return table(RULES, fields, id="anchors", title="Facts with a valid anchor, by rule")


def _cost(outcomes: Outcomes, settings: Settings) -> Table:
    """Prompts as counted, characters and tokens as they came."""
    known = outcomes.monitored
    sizes = [(len(f), len(w)) for f, w in zip(known.framed, known.wrong, strict=True)]
    own = sum(1 + r + m for r, m in sizes)
    grid = sum(r * (1 + m) for r, m in sizes)

    def way(words: str, prompts: int, *parts: str) -> dict[str, Cell]:
        read, written = (
            sum(sums.get(part, 0) for part in parts) if parts else None
            for sums in (outcomes.read, outcomes.written)
        )
        counts = {"prompts": prompts, "characters read": read, "tokens written": written}
        return {"way": words, **counts}

    rows = [
        way("MONITOR: R + 1 + M probabilities, the anchor written", own, "monitor"),
        way("accuracy over its prompts: R + M answers written", own - len(sizes), "accuracy"),
        way("accuracy over the full grid: R × (1 + M) answers written", grid, "accuracy", "grid")
        if settings.full
        else way("full grid, R × (1 + M), not asked", grid),
    ]
    fields: list[Field[dict[str, Cell]] | str] = [
        "way",
        Field("prompts", kind="count"),
        Field("characters read", kind="count", help="before shared beginnings"),
        Field("tokens written", kind="count"),
    ]
    return table(
        rows,
        fields,
        id="cost",
        title="What it costs",
        note="The full grid asks every frame with nothing told and after every wrong name; set "
        "full to ask it, and compare the seconds of the two runs with 'sonde analyse'.",
    )


def _frames(outcomes: Outcomes) -> Table:
    """How every frame did: the first of each relation is its base frame."""
    known = outcomes.monitored
    facts = [np.flatnonzero(known.relation == i).tolist() for i in range(len(known.relations))]
    counted = known.counted()
    valid = [[c for c in places if counted[c]] for places in facts]

    def right(i: int, j: int) -> float:
        return float(np.mean([known.right[c][1 + j] for c in facts[i]]))

    def distance(i: int, j: int) -> float | None:
        return _mean([np.abs(known.framed[c][j] - known.anchor[c]) for c in valid[i]])

    fields: list[Field[tuple[int, int]]] = [
        Field("relation", lambda f: titled(known.relations[f[0]])),
        Field("frame", lambda f: known.frames[f[0]][f[1]].text.replace("[Y].", "").strip()),
        Field("accuracy", lambda f: right(*f), "percent", "over all facts"),
        Field(
            "probability",
            lambda f: _mean([known.framed[c][f[1]] for c in valid[f[0]]]),
            "number",
            "of the object; valid anchors",
        ),
        Field("distance", lambda f: distance(*f), "number", "from the anchor; valid anchors"),
    ]
    frames = [(i, j) for i, own in enumerate(known.frames) for j in range(len(own))]
    return browse(frames, fields, id="frames", title="Frames")


def _mean(rows: list[Floats]) -> float | None:
    return float(np.mean([row.mean() for row in rows])) if rows else None


def _facts(outcomes: Outcomes) -> Table:
    known = outcomes.monitored
    pfd, ird, anchors = known.pfd(), known.ird(), known.anchors()
    counted, valid = known.counted(), known.valid[known.rule]

    def hits(c: int, misled: bool) -> str:
        border = 1 + len(known.framed[c])
        right = known.right[c][border:] if misled else known.right[c][1:border]
        return f"{int(right.sum())} of {len(right)}"

    fields: list[Field[int]] = [
        Field("relation", lambda c: titled(known.relations[int(known.relation[c])])),
        Field("subject", lambda c: known.facts[c].subject.name),
        Field("right", lambda c: known.facts[c].objects[0].name),
        Field("said after it", lambda c: known.said[c][0], help="the answer after the right name"),
        Field("anchor", lambda c: float(anchors[c]), "number", "probability after the right name"),
        Field(
            "frames",
            lambda c: float(known.framed[c].mean()),
            "number",
            "mean probability over the frames",
        ),
        Field(
            "misled",
            lambda c: float(known.misled[c].mean()) if len(known.misled[c]) else None,
            "number",
            "mean probability after wrong names",
        ),
        Field("PFD", lambda c: float(pfd[c]), "number"),
        Field("IRD", lambda c: float(ird[c]) if len(known.misled[c]) else None, "number"),
        Field("said", lambda c: known.said[c][1], help="the answer to the base frame"),
        Field("right in frames", lambda c: hits(c, misled=False)),
        Field("right though misled", lambda c: hits(c, misled=True)),
        Field(
            "in MONITOR",
            lambda c: "counted" if counted[c] else "no wrong name" if valid[c] else "no anchor",
        ),
    ]
    kept = drawn([fact.id for fact in known.facts], known.seed, SHOWN)
    return browse(kept, fields, id="facts", title="Facts", total=len(known.facts))


def figures(estimates: Estimates, outcomes: Outcomes) -> tuple[Figure, ...]:
    """Those figures that have something to show."""
    known = outcomes.monitored
    return shown(
        (
            dots_by_relation(
                estimates,
                known.relations,
                {metric.label: metric for metric in (MONITOR, PFD, IRD)},
                id="monitor-by-relation",
                title="MONITOR of every relation, with its two parts",
                axis="smaller is more reliable",
                note="Whiskers are 95 % intervals. PFD and IRD are distances of probabilities; "
                "MONITOR divides by that of the anchors.",
            ),
            _distances(outcomes),
            _prompt_accuracies(outcomes),
            distribution(
                known.anchors()[known.valid[known.rule]],
                id="anchor-probability",
                title="How likely the valid anchors are",
                unit="number",
                axis="probability of the object after its own name",
                marks={"solid": SOLID},
            ),
        )
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
    known = outcomes.monitored
    return strip(
        ((titled(r), list(_dots(outcomes, i))) for i, r in enumerate(known.relations)),
        id="accuracy-by-prompt",
        title="Accuracy with every prompt",
        axis="accuracy over all facts of the relation",
        note="One dot a prompt: frames with nothing told, and the base frame after wrong names.",
    )


def _dots(outcomes: Outcomes, relation: int) -> Iterator[Dot]:
    known = outcomes.monitored
    everyone = np.ones(len(known.facts), dtype=np.bool_)
    rates = np.nanmean(table_of(outcomes, relation, everyone), axis=0).tolist()
    frames = known.frames[relation]
    for rate, template in zip(rates, frames, strict=False):
        yield rate, template.text.replace("[Y].", "").strip(), "frame"
    for number, rate in enumerate(rates[len(frames) :], 1):
        yield rate, f"wrong name {number}", "after a wrong name"
