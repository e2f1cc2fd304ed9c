"""Tables of MONITOR over several runs. Knows what was common, nothing of how it is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter

import numpy as np

from sonde.analysis.reliability.compare import FIRST, Pair, Reliability
from sonde.analysis.reliability.measures import Common
from sonde.analysis.runs import relation_name
from sonde.core.reports import Cell, ColumnKind, Estimate, Metric, Table
from sonde.metrics.distance import ANCHOR, IRD, MONITOR, PFD, SOLID_ANCHORS
from sonde.reporting.build.tables import Field, browse, side_by_side, table
from sonde.stats.correlation import FEWEST

MOST_FACTS = 5
MOST_ROWS = 20_000
"""Rows of the table of all facts: a page of more is slow to open."""

ACCURACY = Metric("prompt_accuracy.avg", "mean", "percent", "mean over prompts")
STDEV = Metric("prompt_accuracy.stdev", "stdev", "percent", "n − 1, over prompts", better="lower")
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
    STDEV,
)
METRICS = (*SCORES[:3], *ANCHORS, *ACCURACIES)


def tables(of: Reliability) -> Iterator[Table]:
    """All of them; those without content are named in the notes."""
    runs = {run.name: run for run in of.common.runs}
    prompts = {
        name: sum(len(right) for right in run.right)
        for name, run in zip(of.names, of.common.monitored, strict=True)
    }
    yield side_by_side(
        of.order,
        [
            Field("parameters", lambda name: runs[name].lineage.size, "count", "", True),
            *SCORES,
            Field("relations", lambda name: len(of.measured(name)), "count", MEASURED),
            Field("prompts", lambda n: prompts[n], "count", "anchor, frames, wrong names", True),
            Field("seconds", lambda n: runs[n].seconds, "number", "what the whole run took", True),
        ],
        of.of_run,
        id="reliability",
        title="MONITOR of the runs, the most reliable first",
        note=f"On the {len(of.common.subjects):,} facts that all runs were asked (relations: "
        f"{len(of.common.relations):,}). Means over relations, for MONITOR over those with a valid "
        "anchor; n counts the facts.",
    )
    yield side_by_side(
        of.order,
        ANCHORS,
        of.of_run,
        id="anchors",
        title="Anchors: the answer after the right name",
        note="Means over relations. MONITOR is computed from valid anchors alone, so that of a run "
        "with few says little.",
    )
    yield side_by_side(
        of.order,
        ACCURACIES,
        of.of_run,
        id="prompt-accuracy",
        title="Accuracy over prompts",
        note="Prompts: the frames with nothing told, and the base frame after each wrong name. Of "
        "all facts; each relation's best, worst and so on, then the mean over relations.",
    )
    yield _correlations(of)
    yield _equal_accuracy(of)
    disputed, all_facts = _facts(of.common)
    yield disputed
    yield _fewer_frames(of)
    yield _subsets(of)
    yield all_facts


FEW_RUNS = f"a correlation needs {FEWEST} runs that have a MONITOR and differ in it."


def _correlations(of: Reliability) -> Table:
    """MONITOR and mean accuracy: how they go together, overall and in each relation."""
    rows = {"overall": ("mean over relations", "monitor_accuracy")}
    rows |= {r.id: (r.label, f"monitor_accuracy.relation.{r.id}") for r in of.common.relations}

    def pearson(row: str) -> Estimate:
        return of.estimates[f"{rows[row][1]}.pearson"]

    return side_by_side(
        rows,
        [
            Field("label", lambda row: rows[row][0]),
            Field("Pearson's r", pearson, "number", "below 0: reliable runs are accurate"),
            Field("p", lambda row: of.estimates[f"{rows[row][1]}.p"].value, "number", TWO_SIDED),
            Field("runs", lambda row: of.points[f"{rows[row][1]}.pearson"], "count", MEASURED),
        ],
        head="relation",
        id="monitor-accuracy",
        title="MONITOR against mean accuracy: correlation over runs",
        note=f"Not measured: {FEW_RUNS}"
        if pearson("overall").value is None
        else "A dash: not measured, because fewer than three runs have a MONITOR there, or they do "
        "not differ. Intervals are over facts; p is over runs.",
    )


MEASURED = "in which MONITOR is measured"
TWO_SIDED = "two-sided, of no correlation over runs"


def _equal_accuracy(of: Reliability) -> Table:
    """Pairs of runs that base accuracy does not tell apart, the lower MONITOR first."""

    def side(title: str, its: str, k: int) -> list[Field[Pair]]:
        return [
            Field(title, lambda pair: pair[k]),
            Field(f"{its}MONITOR", lambda pair: of.of_run(pair[k], MONITOR).value, "number"),
            Field(
                f"{its}stdev",
                lambda pair: of.of_run(pair[k], STDEV).value,
                "percent",
                "of accuracy over prompts",
            ),
        ]

    def less(number: str) -> Callable[[Pair], Estimate]:
        return lambda pair: of.estimates[f"{number}.runs.{pair[0]}.minus.{pair[1]}"]

    base = "base accuracy, run minus other, paired"
    same = "from facts whose anchor is valid in both alone"
    return table(
        of.equals,
        [
            *side("run", "", 0),
            *side("other", "its ", 1),
            Field("Δ base", less("base_accuracy"), "percent", base, True),
            Field("Δ MONITOR", less("monitor"), "number", "run minus other, relations of both"),
            Field("Δ same facts", less("monitor_same_facts"), "number", same, True),
        ],
        id="equal-accuracy",
        title="Runs of equal base accuracy, the more reliable of two first",
        note="Pairs whose paired difference of base accuracy is not distinguishable from 0; few "
        "facts leave many such pairs."
        if of.equals
        else "Not measured: every two runs differ clearly in base accuracy.",
    )


def most_disputed(common: Common, most: int = MOST_FACTS) -> list[int]:
    """The facts that runs disagree on most, of those whose anchor is valid in all: the largest less
    the smallest distance that MONITOR sums."""
    distances = np.stack([parts["whole"] for parts in common.parts])
    counted = np.stack([parts["counted"] for parts in common.parts]).all(axis=0)
    spread = np.ptp(distances, axis=0)
    return sorted(np.flatnonzero(counted).tolist(), key=lambda c: (-spread[c], c))[:most]


def _facts(common: Common) -> Iterator[Table]:
    """The facts that runs disagree on most, one row per run; then every fact, to be searched."""
    disputed, runs = most_disputed(common), range(len(common.runs))
    fields = [
        Field[tuple[Cell, ...]](title, itemgetter(k), kind, help, kind == "text" and k > 3)
        for k, (title, kind, help) in enumerate(FACT)
    ]
    yield table(
        [fact_row(common, c, i) for c in disputed for i in runs],
        fields,
        id="disputed-facts",
        title="Facts that the runs disagree on most",
        note="Of the facts that count in all runs those whose distance from the anchor (the root "
        "that MONITOR sums) differs most between runs."
        if disputed
        else "Not measured: no fact has a valid anchor in all runs.",
    )
    most = max(1, MOST_ROWS // len(runs))
    facts = range(len(common.subjects))
    left = len(facts) - most
    yield browse(
        [fact_row(common, c, i) for c in facts[:most] for i in runs],
        fields,
        id="facts",
        title="Every fact with its probabilities in each run",
        note=f"The first {most:,} facts; {left:,} more are left out." if left > 0 else "",
    )


FACT: tuple[tuple[str, ColumnKind, str], ...] = (
    ("relation", "text", ""),
    ("subject", "text", ""),
    ("object", "text", ""),
    ("run", "text", ""),
    ("valid", "text", "whether its anchor is"),
    ("anchor", "number", "probability after the right name"),
    ("frames", "number", "mean over frames with nothing told"),
    ("lowest", "number", "of the worst frame"),
    ("in frame", "text", ""),
    ("misled", "number", "mean over wrong names"),
    ("lowest", "number", "of the worst wrong name"),
    ("after", "text", ""),
)
"""What a run gave for a fact; probabilities are means over the object's tokens."""


def fact_row(common: Common, fact: int, number: int) -> tuple[Cell, ...]:
    """The cells of a fact in a run, by their numbers."""
    run = common.monitored[number]
    relation, asked, wrong = int(run.relation[fact]), run.facts[fact], run.wrong[fact]
    framed, misled = (of[fact].mean(axis=1) for of in (run.framed, run.misled))
    after_wrong: tuple[Cell, ...] = (None, None, None)
    if wrong:
        worst = wrong[int(misled.argmin())] or None
        after_wrong = (float(misled.mean()), float(misled.min()), worst)
    return (
        relation_name(run.relations[relation]),
        asked.subject.name,
        asked.objects[0].name,
        common.names[number],
        "yes" if run.valid[run.rule][fact] else "no",
        float(run.anchor[fact].mean()),
        float(framed.mean()),
        float(framed.min()),
        run.frames[relation][int(framed.argmin())].text,
        *after_wrong,
    )


def _fewer_frames(of: Reliability) -> Table:
    """MONITOR of each run from all frames and from the first few."""
    frames, first = of.reading.frames, f"frames.{FIRST}"

    def look(name: str, number: str) -> Estimate:
        return of.estimates[f"{number}.run.{name}"]

    def draws(name: str) -> list[float]:
        means = (look(name, f"{s}.monitor").value for s in of.subsets if s != first)
        return [value for value in means if value is not None]

    return side_by_side(
        of.names if of.subsets else (),
        [
            Field("all frames", lambda n: look(n, "monitor"), "number"),
            Field(f"first {frames}", lambda n: look(n, f"{first}.monitor"), "number"),
            Field("difference", lambda n: look(n, f"{first}.minus_all"), "number", PAIRED),
            Field("lowest draw", lambda n: min(draws(n), default=None), "number", RANDOM, True),
            Field("highest draw", lambda n: max(draws(n), default=None), "number", "", True),
        ],
        id="frames",
        title=f"MONITOR from {frames} frames and from all",
        note="Anchors and wrong names stay the same; relations with no more frames keep all."
        if of.subsets
        else NO_ABLATION.format(frames),
    )


PAIRED = "first less all, paired"
RANDOM = "of random frames"
NO_ABLATION = "Not measured: no relation has more than {} frames."


def _subsets(of: Reliability) -> Table:
    """Whether MONITOR orders runs as that from all frames does, for every choice of frames."""
    frames, first = of.reading.frames, f"frames.{FIRST}"

    def number(end: str) -> Callable[[str], Estimate]:
        return lambda subset: of.estimates[f"{subset}.{end}"]

    def called(subset: str) -> str:
        return f"first {frames}" if subset == first else subset.partition(".")[2].replace("_", " ")

    return table(
        of.subsets,
        [
            Field("frames", called),
            Field("Spearman's ρ", number("spearman"), "number", "over runs: the same order"),
            Field("Pearson's r", number("pearson"), "number", "over runs: on one line"),
            Field("p", lambda subset: number("p")(subset).value, "number", "of r over runs", True),
            Field("runs", lambda subset: of.points[f"{subset}.pearson"], "count", "", True),
            Field("ρ of cells", number("cells.spearman"), "number", "over runs and relations"),
            Field("r of cells", number("cells.pearson"), "number", "over runs and relations"),
            Field("cells", lambda subset: of.points[f"{subset}.cells.pearson"], "count"),
        ],
        id="frame-subsets",
        title=f"Whether {frames} frames order runs as all frames do",
        note="A draw takes as many frames of each relation by the seed. A dash: not measured, "
        f"because fewer than {FEWEST} points have a MONITOR, or they do not differ."
        if of.subsets
        else NO_ABLATION.format(frames),
    )
