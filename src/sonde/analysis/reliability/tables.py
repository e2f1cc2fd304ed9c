"""Tables of MONITOR over several runs. Knows what was found, nothing of how it is computed."""

from __future__ import annotations

from collections.abc import Iterable

from sonde.analysis.reliability.accuracy import Equals, Linked
from sonde.analysis.reliability.facts import Seen, most_disputed, seen
from sonde.analysis.reliability.frames import FIRST, Ablation, Subset
from sonde.analysis.reliability.outcomes import Common, Measure
from sonde.analysis.runs import relation_name
from sonde.core.facts import Relation
from sonde.core.reports import Estimate, Metric, Table
from sonde.metrics.distance import ANCHOR, IRD, MONITOR, PFD, SOLID_ANCHORS
from sonde.reporting.build.tables import RELATION, Field, Fields, across, browse, table
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


def overall_table(found: Common, made: dict[str, Measure]) -> Table:
    """A row per run, the most reliable first; runs without MONITOR last."""
    monitor, runs = made["monitor"], found.runs
    return _by_run(
        found,
        made,
        [
            Field("parameters", lambda i: runs[i].lineage.size, "count", "", True),
            *SCORES,
            Field(
                "relations",
                lambda i: len(monitor.measured(i)),
                "count",
                "in which MONITOR is measured",
            ),
            Field(
                "prompts", lambda i: prompts(found, i), "count", "anchor, frames, wrong names", True
            ),
            Field("seconds", lambda i: runs[i].seconds, "number", "what the whole run took", True),
        ],
        id="reliability",
        title="MONITOR of the runs, the most reliable first",
        note=f"On the {len(found.subjects):,} facts that all runs were asked (relations: "
        f"{len(found.relations):,}). Means over relations, for MONITOR over those with a valid "
        "anchor; n counts the facts.",
    )


def anchors_table(found: Common, made: dict[str, Measure]) -> Table:
    """The anchors of each run: how many are valid, and how likely these are."""
    return _by_run(
        found,
        made,
        ANCHORS,
        id="anchors",
        title="Anchors: the answer after the right name",
        note="Means over relations. MONITOR is computed from valid anchors alone, so that of a run "
        "with few says little.",
    )


def accuracies_table(found: Common, made: dict[str, Measure]) -> Table:
    """The accuracy over prompts of each run."""
    return _by_run(
        found,
        made,
        ACCURACIES,
        id="prompt-accuracy",
        title="Accuracy over prompts",
        note="Prompts: the frames with nothing told, and the base frame after each wrong name. Of "
        "all facts; each relation's best, worst and so on, then the mean over relations.",
    )


def _by_run(
    found: Common, made: dict[str, Measure], fields: Fields[int], *, id: str, title: str, note: str
) -> Table:
    return table(
        by_monitor(made["monitor"]),
        [Field("run", lambda i: found.names[i]), *fields],
        lambda i, metric: made[metric.id].mean(i),
        id=id,
        title=title,
        note=note,
    )


def by_monitor(monitor: Measure) -> list[int]:
    """The runs by MONITOR, those without one last."""
    found = [monitor.mean(i).value for i in range(monitor.rows.shape[1])]
    return sorted(range(len(found)), key=lambda i: (found[i] is None, found[i] or 0.0, i))


def prompts(found: Common, run: int) -> int:
    """How many prompts the run needed for the facts in common."""
    return sum(len(right) for right in found.known[run].right)


def correlation_table(found: Common, over: Linked, relations: list[Linked]) -> Table:
    """MONITOR and mean accuracy: how they go together, overall and in each relation."""
    rows = [
        ("overall", "mean over relations", over),
        *((r.id, r.label, link) for r, link in zip(found.relations, relations, strict=True)),
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
        note=few_runs(over)
        or "A dash: not measured, because fewer than three runs have a MONITOR there, or they do "
        "not differ. Intervals are over facts; p is over runs.",
    )


def few_runs(over: Linked) -> str:
    """Word of too few runs; nothing where there are enough."""
    if over.r.value is not None:
        return ""
    return f"Not measured: a correlation needs {FEWEST} runs that have a MONITOR and differ in it."


def matrix_table(found: Common, monitor: Measure) -> Table:
    """MONITOR of each run in each relation, with the facts behind it; to be searched."""
    runs = {found.names[i]: i for i in by_monitor(monitor)}
    places = {relation.id: r for r, relation in enumerate(found.relations)}

    def cell(relation: Relation, name: str) -> Estimate:
        return monitor.cell(runs[name], places[relation.id])

    return browse(
        found.relations,
        [*RELATION, *across(runs, cell, "number")],
        id="monitor-relations",
        title="MONITOR of each run in each relation",
        note="n counts the facts with a valid anchor. A dash: no fact has one.",
    )


def equals_table(found: Common, made: dict[str, Measure], pairs: list[Equals]) -> Table:
    """Pairs of runs that base accuracy does not tell apart, the lower MONITOR first."""
    monitor, stdev = made["monitor"], made["prompt_accuracy.stdev"]

    def side(title: str, own: str, which: str) -> list[Field[Equals]]:
        def run(pair: Equals) -> int:
            place: int = getattr(pair, which)
            return place

        return [
            Field(title, lambda pair: found.names[run(pair)]),
            Field(f"{own}MONITOR", lambda pair: monitor.mean(run(pair)).value, "number"),
            Field(
                f"{own}stdev",
                lambda pair: stdev.mean(run(pair)).value,
                "percent",
                "of accuracy over prompts",
            ),
        ]

    same = "from facts whose anchor is valid in both alone"
    fields: list[Field[Equals]] = [
        *side("run", "", "first"),
        *side("other", "its ", "second"),
        Field("Δ base", lambda p: p.base, "percent", "base accuracy, run less other, paired", True),
        Field("Δ MONITOR", lambda p: p.monitor, "number", "run less other, relations of both"),
        Field("Δ same facts", lambda p: p.shared, "number", same, True),
    ]
    return table(
        pairs,
        fields,
        id="equal-accuracy",
        title="Runs of equal base accuracy, the more reliable of two first",
        note="Pairs whose paired difference of base accuracy is not told from 0; few facts leave "
        "many pairs untold."
        if pairs
        else "Not measured: every two runs differ clearly in base accuracy.",
    )


def facts_table(found: Common) -> Table:
    """The facts that runs disagree on most, one row per run."""
    chosen = most_disputed(found, MOST_FACTS)
    return table(
        _seen(found, chosen),
        _fact_fields(found),
        id="disputed-facts",
        title="Facts that the runs disagree on most",
        note="Of the facts that count in all runs those whose distance from the anchor (the root "
        "that MONITOR sums) differs most between runs."
        if chosen
        else "Not measured: no fact has a valid anchor in all runs.",
    )


def all_facts_table(found: Common) -> Table:
    """Every fact in every run, to be searched."""
    most = max(1, MOST_ROWS // len(found.runs))
    facts = range(len(found.subjects))
    left = len(facts) - most
    return browse(
        _seen(found, facts[:most]),
        _fact_fields(found),
        id="facts",
        title="Every fact with its probabilities in each run",
        note=f"The first {most:,} facts; {left:,} more are left out." if left > 0 else "",
    )


def _seen(found: Common, facts: Iterable[int]) -> list[Seen]:
    return [seen(found, c, i) for c in facts for i in range(len(found.runs))]


def _fact_fields(found: Common) -> list[Field[Seen]]:
    return [
        Field("relation", lambda fact: relation_name(fact.relation)),
        Field("subject", lambda fact: fact.fact.subject.name),
        Field("object", lambda fact: fact.fact.objects[0].name),
        Field("run", lambda fact: found.names[fact.run]),
        Field("valid", lambda f: "yes" if f.valid else "no", "text", "whether its anchor is", True),
        Field("anchor", lambda fact: fact.anchor, "number", "probability after the right name"),
        Field("frames", lambda fact: fact.framed, "number", "mean over frames with nothing told"),
        Field("lowest", lambda fact: fact.lowest_framed, "number", "of the worst frame"),
        Field("in frame", lambda fact: fact.frame, detail=True),
        Field("misled", lambda fact: fact.misled, "number", "mean over wrong names"),
        Field("lowest", lambda fact: fact.lowest_misled, "number", "of the worst wrong name"),
        Field("after", lambda fact: fact.name or None, detail=True),
    ]


def ablation_table(found: Common, made: Ablation) -> Table:
    """MONITOR of each run from all frames and from the first few."""
    first = next((s for s in made.subsets if s.name == FIRST), None)
    return table(
        range(len(found.runs)) if first else (),
        _ablation_fields(found, made, first) if first else [],
        id="frames",
        title=f"MONITOR from {made.frames} frames and from all",
        note="Anchors and wrong names stay the same; relations with no more frames keep all."
        if first
        else no_ablation(made),
    )


def _ablation_fields(found: Common, made: Ablation, first: Subset) -> list[Field[int]]:
    def draws(run: int) -> list[float]:
        means = (s.monitor.mean(run).value for s in made.subsets if s is not first)
        return [value for value in means if value is not None]

    return [
        Field("run", lambda i: found.names[i]),
        Field("all frames", lambda i: made.full.mean(i), "number"),
        Field(f"first {made.frames}", lambda i: first.monitor.mean(i), "number"),
        Field("difference", lambda i: first.less[i], "number", "first less all, paired"),
        Field(
            "lowest draw", lambda i: min(draws(i), default=None), "number", "of random frames", True
        ),
        Field("highest draw", lambda i: max(draws(i), default=None), "number", "", True),
    ]


def no_ablation(made: Ablation) -> str:
    """Why there is nothing to compare."""
    return f"Not measured: no relation has more than {made.frames} frames."


def subsets_table(made: Ablation) -> Table:
    """How MONITOR from some frames goes with MONITOR from all, for every choice of frames."""
    fields: list[Field[Subset]] = [
        Field("frames", lambda s: f"first {made.frames}" if s.name == FIRST else s.name),
        Field("Spearman's ρ", lambda s: s.rank.r, "number", "over runs: the same order"),
        Field("Pearson's r", lambda s: s.line.r, "number", "over runs: on one line"),
        Field("p", lambda s: s.line.p, "number", "of r over runs", True),
        Field("runs", lambda s: s.line.points, "count", "", True),
        Field("ρ of cells", lambda s: s.rank_in_cells.r, "number", "over runs and relations"),
        Field("r of cells", lambda s: s.line_in_cells.r, "number", "over runs and relations"),
        Field("cells", lambda s: s.line_in_cells.points, "count"),
    ]
    return table(
        made.subsets,
        fields,
        id="frame-subsets",
        title=f"Whether {made.frames} frames order runs as all frames do",
        note="A draw takes as many frames of each relation by the seed. A dash: not measured, "
        f"because fewer than {FEWEST} points have a MONITOR, or they do not differ."
        if made.subsets
        else no_ablation(made),
    )


def written(estimate: Estimate) -> str:
    """A number with its interval in a sentence.

    >>> written(Estimate(value=0.5, low=0.4, high=0.61, n=9))
    '0.500 (0.400 to 0.610)'
    """
    if estimate.value is None:
        return "not measured"
    said = f"{estimate.value:.3f}"
    if estimate.low is not None and estimate.high is not None:
        said += f" ({estimate.low:.3f} to {estimate.high:.3f})"
    return said.replace("-", "−")
