"""Tables of MONITOR. Knows estimates and outcomes, nothing of prompts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sonde.core.fingerprints import draw_key
from sonde.core.reports import Cell, Column, Estimate, Table
from sonde.metrics.distance import RULES, SOLID
from sonde.metrics.grid import Floats
from sonde.probes.monitor.ask import Shape
from sonde.probes.monitor.numbers import GROUPS
from sonde.probes.monitor.tally import Outcomes

Estimates = Mapping[str, Estimate]

OVER = "mean_over_relations"
SHOWN = 50_000

RELIABILITY = (
    ("monitor", Column(title="MONITOR", kind="number", help="smaller is more reliable")),
    ("pfd", Column(title="PFD", kind="number", help="mean distance of other frames' answers")),
    ("ird", Column(title="IRD", kind="number", help="mean distance after wrong names")),
    (
        "anchor_probability",
        Column(title="anchor", kind="number", help="mean probability of valid anchors"),
    ),
    (
        "solid_anchors",
        Column(
            title=f"> {SOLID:g}",
            kind="percent",
            help=f"valid anchors above {SOLID:g}",
            detail=True,
        ),
    ),
)
ACCURACIES = (
    ("avg", Column(title="avg", kind="percent", help="mean over prompts")),
    ("majority", Column(title="majority", kind="percent", help="always the commonest object")),
    ("max", Column(title="max", kind="percent", help="of the best prompt")),
    ("min", Column(title="min", kind="percent", help="of the worst prompt")),
    ("base", Column(title="base", kind="percent", help="of the base frame", detail=True)),
    ("stdev", Column(title="stdev", kind="percent", help="over prompts", detail=True)),
)
"""What the tables of relations show, by the name of the estimate."""


def tables(estimates: Estimates, outcomes: Outcomes, shape: Shape) -> tuple[Table, ...]:
    """All of them, the widest view first."""
    return (
        _relations(estimates, outcomes),
        _by_prompt(estimates, outcomes),
        _accuracies(estimates, outcomes),
        _anchors(estimates),
        _cost(outcomes, shape),
        _frames(outcomes),
        _facts(outcomes),
    )


def _relations(estimates: Estimates, outcomes: Outcomes) -> Table:
    known = outcomes.monitored
    counted = known.counted()
    rows: list[tuple[Cell, ...]] = []
    for number, relation in enumerate(known.relations):
        own = known.relation == number
        wrong = [len(known.wrong[c]) for c in np.flatnonzero(own).tolist()]
        rows.append(
            (
                f"{relation.id} {relation.label}",
                *(estimates[f"{name}.relation.{relation.id}"] for name, _ in RELIABILITY),
                int((own & counted).sum()),
                int(own.sum()),
                len(known.frames[number]),
                float(np.mean(wrong)) if wrong else None,
            )
        )
    return Table(
        id="by-relation",
        title="Reliability by relation",
        columns=(
            Column(title="relation"),
            *(column for _, column in RELIABILITY),
            Column(title="anchors", kind="count", help="facts that MONITOR is computed from"),
            Column(title="facts", kind="count"),
            Column(title="R", kind="count", help="frames", detail=True),
            Column(title="M", kind="number", help="wrong names of a fact, mean", detail=True),
        ),
        rows=tuple(rows),
    )


def _by_prompt(estimates: Estimates, outcomes: Outcomes) -> Table:
    known = outcomes.monitored
    return Table(
        id="accuracy-by-relation",
        title="Accuracy over prompts by relation",
        columns=(
            Column(title="relation"),
            *(column for _, column in ACCURACIES),
        ),
        rows=tuple(
            (
                f"{r.id} {r.label}",
                *(estimates[f"accuracy.all.{name}.relation.{r.id}"] for name, _ in ACCURACIES),
            )
            for r in known.relations
        ),
        note="Over all facts; prompts are all frames, and the base frame after every wrong name.",
    )


def _accuracies(estimates: Estimates, outcomes: Outcomes) -> Table:
    known = outcomes.monitored
    facts = {"all": len(known.facts), "valid": int(known.valid[known.rule].sum())}
    words = {"all": "all", "valid": "valid"}
    parts = [("accuracy", "")]
    if f"full.all.avg.{OVER}" in estimates:
        parts.append(("full", ", full"))
    shown = ("avg", "max", "min", "base", "stdev", "majority")
    return Table(
        id="accuracy-over-prompts",
        title="Accuracy over prompts, mean over relations",
        columns=(
            Column(title="facts", help="all, or those with a valid anchor"),
            *(Column(title=name, kind="percent") for name in shown),
            Column(title="n", kind="count"),
        ),
        rows=tuple(
            (
                f"{words[group]}{what}",
                *(estimates[f"{part}.{group}.{name}.{OVER}"] for name in shown),
                facts[group],
            )
            for part, what in parts
            for group in GROUPS
        ),
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
    return Table(
        id="anchors",
        title="Facts with a valid anchor, by rule",
        columns=(
            Column(title="rule"),
            Column(title="valid where"),
            Column(title="share of facts", kind="percent", help="mean over relations"),
        ),
        rows=tuple((r, words[r], estimates[f"anchor_rate.{r}.{OVER}"]) for r in RULES),
    )


def _cost(outcomes: Outcomes, shape: Shape) -> Table:
    """Prompts as counted, characters and tokens as they came."""
    known = outcomes.monitored
    sizes = [(len(f), len(w)) for f, w in zip(known.framed, known.wrong, strict=True)]
    own = sum(1 + r + m for r, m in sizes)
    grid = sum(r * (1 + m) for r, m in sizes)
    read, written = outcomes.read, outcomes.written
    ways: list[tuple[Cell, ...]] = [
        (
            "MONITOR: R + 1 + M probabilities, the anchor written",
            own,
            read.get("monitor", 0),
            written.get("monitor", 0),
        ),
        (
            "accuracy over its prompts: R + M answers written",
            own - len(sizes),
            read.get("accuracy", 0),
            written.get("accuracy", 0),
        ),
    ]
    if shape.full:
        ways.append(
            (
                "accuracy over the full grid: R × (1 + M) answers written",
                grid,
                read.get("accuracy", 0) + read.get("grid", 0),
                written.get("accuracy", 0) + written.get("grid", 0),
            )
        )
    else:
        ways.append(("full grid, R × (1 + M), not asked", grid, None, None))
    return Table(
        id="cost",
        title="What it costs",
        columns=(
            Column(title="way"),
            Column(title="prompts", kind="count"),
            Column(title="characters read", kind="count", help="before shared beginnings"),
            Column(title="tokens written", kind="count"),
        ),
        rows=tuple(ways),
        note="The full grid asks every frame with nothing told and after every wrong name; set "
        "full to ask it, and compare the seconds of the two runs with 'sonde analyse'.",
    )


def _frames(outcomes: Outcomes) -> Table:
    """How every frame did: the first of each relation is its base frame."""
    known = outcomes.monitored
    counted = known.counted()
    rows: list[tuple[Cell, ...]] = []
    for number, relation in enumerate(known.relations):
        places = np.flatnonzero(known.relation == number)
        valid = [c for c in places.tolist() if counted[c]]
        for j, template in enumerate(known.frames[number]):
            right = np.array([known.right[c][1 + j] for c in places.tolist()])
            rows.append(
                (
                    f"{relation.id} {relation.label}",
                    template.text.replace("[Y].", "").strip(),
                    float(right.mean()),
                    _mean([known.framed[c][j] for c in valid]),
                    _mean([np.abs(known.framed[c][j] - known.anchor[c]) for c in valid]),
                )
            )
    return Table(
        id="frames",
        title="Frames",
        columns=(
            Column(title="relation"),
            Column(title="frame"),
            Column(title="accuracy", kind="percent", help="over all facts"),
            Column(title="probability", kind="number", help="of the object; valid anchors"),
            Column(title="distance", kind="number", help="from the anchor; valid anchors"),
        ),
        rows=tuple(rows),
        browsable=True,
    )


def _mean(rows: list[Floats]) -> float | None:
    return float(np.mean([row.mean() for row in rows])) if rows else None


def _facts(outcomes: Outcomes) -> Table:
    known = outcomes.monitored
    places = _drawn(outcomes)
    pfd, ird, anchors = known.pfd(), known.ird(), known.anchors()
    counted, valid = known.counted(), known.valid[known.rule]
    rows: list[tuple[Cell, ...]] = []
    for c in places:
        fact, relation = known.facts[c], known.relations[int(known.relation[c])]
        frames = len(known.framed[c])
        misled = known.misled[c]
        rows.append(
            (
                f"{relation.id} {relation.label}",
                fact.subject.name,
                fact.objects[0].name,
                known.said[c][0],
                float(anchors[c]),
                float(known.framed[c].mean()),
                float(misled.mean()) if len(misled) else None,
                float(pfd[c]),
                float(ird[c]) if len(misled) else None,
                known.said[c][1],
                f"{int(known.right[c][1 : 1 + frames].sum())} of {frames}",
                f"{int(known.right[c][1 + frames :].sum())} of {len(misled)}",
                "counted" if counted[c] else "no wrong name" if valid[c] else "no anchor",
            )
        )
    left = "" if len(places) == len(known.facts) else f"{len(places):,} of {len(known.facts):,}."
    return Table(
        id="facts",
        title="Facts",
        columns=(
            Column(title="relation"),
            Column(title="subject"),
            Column(title="right"),
            Column(title="said after it", help="the answer after the right name"),
            Column(title="anchor", kind="number", help="probability after the right name"),
            Column(title="frames", kind="number", help="mean probability over the frames"),
            Column(title="misled", kind="number", help="mean probability after wrong names"),
            Column(title="PFD", kind="number"),
            Column(title="IRD", kind="number"),
            Column(title="said", help="the answer to the base frame"),
            Column(title="right in frames"),
            Column(title="right though misled"),
            Column(title="in MONITOR"),
        ),
        rows=tuple(rows),
        note=left,
        browsable=True,
    )


def _drawn(outcomes: Outcomes) -> list[int]:
    """The facts to show: all, or as many as can be shown."""
    known = outcomes.monitored
    places = range(len(known.facts))
    if len(places) <= SHOWN:
        return list(places)
    keys = [draw_key(known.seed, fact.id) for fact in known.facts]
    return sorted(sorted(places, key=lambda c: (keys[c], c))[:SHOWN])
