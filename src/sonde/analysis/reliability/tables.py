"""Tables of MONITOR over several runs. Knows what was common, nothing of how it is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from sonde.analysis.reliability.compare import FIRST, Equals, Linked, Reliability, Subset
from sonde.analysis.reliability.outcomes import Common
from sonde.analysis.runs import relation_name
from sonde.core.facts import Relation
from sonde.core.reports import Cell, Estimate, Metric, Table
from sonde.metrics.distance import ANCHOR, IRD, MONITOR, PFD, SOLID_ANCHORS
from sonde.metrics.grid import Floats
from sonde.reporting.build.tables import (
    RELATION,
    Field,
    across,
    browse,
    side_by_side,
    table,
)
from sonde.stats.correlation import FEWEST

MOST_FACTS = 5
MOST_ROWS = 20_000
"""Rows of the table of all facts: a page of more is slow to open."""

ACCURACY = Metric("prompt_accuracy.avg", "mean", "percent", "mean over prompts")
SCORES = (MONITOR, PFD, IRD, ACCURACY.named("accuracy"))
ANCHORS = (
    Metric("anchor_rate", "valid", "percent", "share of facts whose anchor is"),
    ANCHOR.named("probability", "mean of valid ones"),
    SOLID_ANCHORS.named(SOLID_ANCHORS.label, "share of valid ones"),
)
ACCURACIES = (
    ACCURACY,
    Metric("prompt_accuracy.max", "max", "percent", "of the best prompt"),
    Metric("prompt_accuracy.min", "min", "percent", "of the worst prompt"),
    Metric("prompt_accuracy.base", "base", "percent", "of the base frame"),
    Metric("prompt_accuracy.stdev", "stdev", "percent", "n − 1, over prompts", better="lower"),
)
METRICS = (*SCORES[:3], *ANCHORS, *ACCURACIES)


def tables(of: Reliability) -> Iterator[Table]:
    """All of them; those without content are named in the notes."""
    at = {of.names[i]: i for i in of.order}
    runs = {name: of.common.runs[i] for name, i in at.items()}

    def look(name: str, metric: Metric) -> Estimate:
        return of.numbers[metric.id].mean(at[name])

    def relations(name: str) -> int:
        return len(of.monitor.measured(at[name]))

    def prompts(name: str) -> int:
        return sum(len(right) for right in of.common.monitored[at[name]].right)

    yield side_by_side(
        at,
        [
            Field("parameters", lambda name: runs[name].lineage.size, "count", "", True),
            *SCORES,
            Field("relations", relations, "count", "in which MONITOR is measured"),
            Field("prompts", prompts, "count", "anchor, frames, wrong names", True),
            Field("seconds", lambda n: runs[n].seconds, "number", "what the whole run took", True),
        ],
        look,
        id="reliability",
        title="MONITOR of the runs, the most reliable first",
        note=f"On the {len(of.common.subjects):,} facts that all runs were asked (relations: "
        f"{len(of.common.relations):,}). Means over relations, for MONITOR over those with a valid "
        "anchor; n counts the facts.",
    )
    yield side_by_side(
        at,
        ANCHORS,
        look,
        id="anchors",
        title="Anchors: the answer after the right name",
        note="Means over relations. MONITOR is computed from valid anchors alone, so that of a run "
        "with few says little.",
    )
    yield side_by_side(
        at,
        ACCURACIES,
        look,
        id="prompt-accuracy",
        title="Accuracy over prompts",
        note="Prompts: the frames with nothing told, and the base frame after each wrong name. Of "
        "all facts; each relation's best, worst and so on, then the mean over relations.",
    )
    yield _correlations(of)
    yield _equal_accuracy(of)
    yield _disputed(of.common)
    yield _fewer_frames(of)
    yield _subsets(of)
    yield _matrix(of)
    yield _all_facts(of.common)


def _correlations(of: Reliability) -> Table:
    """MONITOR and mean accuracy: how they go together, overall and in each relation."""
    rows = [
        ("overall", "mean over relations", of.over),
        *((r.id, r.label, x) for r, x in zip(of.common.relations, of.relations, strict=True)),
    ]
    fields: list[Field[tuple[str, str, Linked]]] = [
        Field("relation", lambda row: row[0]),
        Field("label", lambda row: row[1]),
        Field("Pearson's r", lambda row: row[2].r, "number", "below 0: reliable runs are accurate"),
        Field("p", lambda row: row[2].p, "number", "two-sided, of no correlation over runs"),
        Field("runs", lambda row: row[2].points, "count", "in which MONITOR is measured"),
    ]
    return table(
        rows,
        fields,
        id="monitor-accuracy",
        title="MONITOR against mean accuracy: correlation over runs",
        note=f"Not measured: {FEW_RUNS}"
        if of.over.r.value is None
        else "A dash: not measured, because fewer than three runs have a MONITOR there, or they do "
        "not differ. Intervals are over facts; p is over runs.",
    )


FEW_RUNS = f"a correlation needs {FEWEST} runs that have a MONITOR and differ in it."


def _matrix(of: Reliability) -> Table:
    """MONITOR of each run in each relation, with the facts behind it; to be searched."""
    runs = {of.names[i]: i for i in of.order}
    places = {relation.id: r for r, relation in enumerate(of.common.relations)}

    def cell(relation: Relation, name: str) -> Estimate:
        return of.monitor.cell(runs[name], places[relation.id])

    return browse(
        of.common.relations,
        [*RELATION, *across(runs, cell, "number")],
        id="monitor-relations",
        title="MONITOR of each run in each relation",
        note="n counts the facts with a valid anchor. A dash: no fact has one.",
    )


def _equal_accuracy(of: Reliability) -> Table:
    """Pairs of runs that base accuracy does not tell apart, the lower MONITOR first."""
    stdev, spread = of.numbers["prompt_accuracy.stdev"], "of accuracy over prompts"

    def side(title: str, its: str, run: Callable[[Equals], int]) -> list[Field[Equals]]:
        return [
            Field(title, lambda pair: of.names[run(pair)]),
            Field(f"{its}MONITOR", lambda pair: of.monitor.mean(run(pair)).value, "number"),
            Field(f"{its}stdev", lambda pair: stdev.mean(run(pair)).value, "percent", spread),
        ]

    same = "from facts whose anchor is valid in both alone"
    fields: list[Field[Equals]] = [
        *side("run", "", lambda pair: pair.first),
        *side("other", "its ", lambda pair: pair.second),
        Field("Δ base", lambda p: p.base, "percent", "base accuracy, run less other, paired", True),
        Field("Δ MONITOR", lambda p: p.monitor, "number", "run less other, relations of both"),
        Field("Δ same facts", lambda p: p.shared, "number", same, True),
    ]
    return table(
        of.equals,
        fields,
        id="equal-accuracy",
        title="Runs of equal base accuracy, the more reliable of two first",
        note="Pairs whose paired difference of base accuracy is not told from 0; few facts leave "
        "many pairs untold."
        if of.equals
        else "Not measured: every two runs differ clearly in base accuracy.",
    )


def most_disputed(common: Common, most: int = MOST_FACTS) -> list[int]:
    """The facts that runs disagree on most, of those whose anchor is valid in all: the largest less
    the smallest distance that MONITOR sums."""
    distances = np.stack([parts.whole for parts in common.parts])
    counted = np.stack([parts.counted for parts in common.parts]).all(axis=0)
    spread = np.ptp(distances, axis=0)
    return sorted(np.flatnonzero(counted).tolist(), key=lambda c: (-spread[c], c))[:most]


def _disputed(common: Common) -> Table:
    """The facts that runs disagree on most, one row per run."""
    facts = most_disputed(common)
    return table(
        [(c, i) for c in facts for i in range(len(common.runs))],
        fact_fields(common),
        id="disputed-facts",
        title="Facts that the runs disagree on most",
        note="Of the facts that count in all runs those whose distance from the anchor (the root "
        "that MONITOR sums) differs most between runs."
        if facts
        else "Not measured: no fact has a valid anchor in all runs.",
    )


def _all_facts(common: Common) -> Table:
    """Every fact in every run, to be searched."""
    most = max(1, MOST_ROWS // len(common.runs))
    facts = range(len(common.subjects))
    left = len(facts) - most
    return browse(
        [(c, i) for c in facts[:most] for i in range(len(common.runs))],
        fact_fields(common),
        id="facts",
        title="Every fact with its probabilities in each run",
        note=f"The first {most:,} facts; {left:,} more are left out." if left > 0 else "",
    )


Seen = tuple[int, int]
"""A fact in a run."""


def fact_fields(common: Common) -> list[Field[Seen]]:
    """What a run gave for a fact; probabilities are means over the object's tokens."""
    facts, relations, owners = common.monitored[0].facts, common.relations, common.owners

    def probability(title: str, of: Callable[[Seen], float | None], help: str) -> Field[Seen]:
        return Field(title, of, "number", help)

    def framed(seen: Seen) -> Floats:
        return np.asarray(common.monitored[seen[1]].framed[seen[0]].mean(axis=1))

    def misled(seen: Seen) -> Floats:
        return np.asarray(common.monitored[seen[1]].misled[seen[0]].mean(axis=1))

    def lowest(values: Floats) -> float | None:
        return float(values.min()) if len(values) else None

    def mean(values: Floats) -> float | None:
        return float(values.mean()) if len(values) else None

    def frame(seen: Seen) -> Cell:
        frames = common.monitored[seen[1]].frames[int(owners[seen[0]])]
        return frames[int(framed(seen).argmin())].text

    def name(seen: Seen) -> Cell:
        wrong = common.monitored[seen[1]].wrong[seen[0]]
        return wrong[int(misled(seen).argmin())] or None if wrong else None

    def valid(seen: Seen) -> str:
        run = common.monitored[seen[1]]
        return "yes" if run.valid[run.rule][seen[0]] else "no"

    def anchor(seen: Seen) -> float:
        return float(common.monitored[seen[1]].anchor[seen[0]].mean())

    return [
        Field("relation", lambda seen: relation_name(relations[owners[seen[0]]])),
        Field("subject", lambda seen: facts[seen[0]].subject.name),
        Field("object", lambda seen: facts[seen[0]].objects[0].name),
        Field("run", lambda seen: common.names[seen[1]]),
        Field("valid", valid, "text", "whether its anchor is", True),
        probability("anchor", anchor, "probability after the right name"),
        probability("frames", lambda s: mean(framed(s)), "mean over frames with nothing told"),
        probability("lowest", lambda s: lowest(framed(s)), "of the worst frame"),
        Field("in frame", frame, detail=True),
        probability("misled", lambda s: mean(misled(s)), "mean over wrong names"),
        probability("lowest", lambda s: lowest(misled(s)), "of the worst wrong name"),
        Field("after", name, detail=True),
    ]


def _fewer_frames(of: Reliability) -> Table:
    """MONITOR of each run from all frames and from the first few."""
    ablation, first = of.ablation, of.ablation.first
    at = {name: i for i, name in enumerate(of.names)} if first else {}

    def draws(name: str) -> list[float]:
        means = (s.monitor.mean(at[name]).value for s in ablation.subsets if s is not first)
        return [value for value in means if value is not None]

    fields: list[Field[str]] = []
    if first:
        few, less = first.monitor, first.less
        fields = [
            Field("all frames", lambda n: ablation.full.mean(at[n]), "number"),
            Field(f"first {ablation.frames}", lambda n: few.mean(at[n]), "number"),
            Field("difference", lambda n: less[at[n]], "number", "first less all, paired"),
            Field("lowest draw", lambda n: min(draws(n), default=None), "number", RANDOM, True),
            Field("highest draw", lambda n: max(draws(n), default=None), "number", "", True),
        ]
    return side_by_side(
        at,
        fields,
        id="frames",
        title=f"MONITOR from {ablation.frames} frames and from all",
        note="Anchors and wrong names stay the same; relations with no more frames keep all."
        if first
        else NO_ABLATION.format(ablation.frames),
    )


RANDOM = "of random frames"
NO_ABLATION = "Not measured: no relation has more than {} frames."


def _subsets(of: Reliability) -> Table:
    """How MONITOR from some frames goes with MONITOR from all, for every choice of frames."""
    ablation = of.ablation
    fields: list[Field[Subset]] = [
        Field("frames", lambda s: f"first {ablation.frames}" if s.name == FIRST else s.name),
        Field("Spearman's ρ", lambda s: s.rank.r, "number", "over runs: the same order"),
        Field("Pearson's r", lambda s: s.line.r, "number", "over runs: on one line"),
        Field("p", lambda s: s.line.p, "number", "of r over runs", True),
        Field("runs", lambda s: s.line.points, "count", "", True),
        Field("ρ of cells", lambda s: s.rank_in_cells.r, "number", "over runs and relations"),
        Field("r of cells", lambda s: s.line_in_cells.r, "number", "over runs and relations"),
        Field("cells", lambda s: s.line_in_cells.points, "count"),
    ]
    return table(
        ablation.subsets,
        fields,
        id="frame-subsets",
        title=f"Whether {ablation.frames} frames order runs as all frames do",
        note="A draw takes as many frames of each relation by the seed. A dash: not measured, "
        f"because fewer than {FEWEST} points have a MONITOR, or they do not differ."
        if ablation.subsets
        else NO_ABLATION.format(ablation.frames),
    )
