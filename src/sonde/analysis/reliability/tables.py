"""Tables of MONITOR over several runs. Knows what was found, nothing of how it is computed."""

from __future__ import annotations

from collections.abc import Iterable

from sonde.analysis.comparison.tables import relation_name
from sonde.analysis.reliability.accuracy import Equals, Linked
from sonde.analysis.reliability.facts import Seen, most_disputed, seen
from sonde.analysis.reliability.frames import FIRST, Ablation, Subset
from sonde.analysis.reliability.outcomes import Common, Measure
from sonde.core.reports import Cell, Column, Estimate, Table
from sonde.metrics.distance import SOLID
from sonde.stats.correlation import FEWEST

MOST_FACTS = 5
MOST_ROWS = 20_000
"""Rows of the table of all facts: a page of more is slow to open."""

Heads = tuple[tuple[str, Column], ...]
"""Columns, each with the name of its number."""

SCORES: Heads = (
    ("monitor", Column(title="MONITOR", kind="number", help="smaller is more reliable")),
    ("pfd", Column(title="PFD", kind="number", help="mean distance of other frames")),
    ("ird", Column(title="IRD", kind="number", help="mean distance after wrong names")),
    ("prompt_accuracy.avg", Column(title="accuracy", kind="percent", help="mean over prompts")),
)
ANCHORS: Heads = (
    ("anchor_rate", Column(title="valid", kind="percent", help="share of facts whose anchor is")),
    ("anchor_probability", Column(title="probability", kind="number", help="mean of valid ones")),
    ("solid_anchors", Column(title=f"> {SOLID:g}", kind="percent", help="share of valid ones")),
)
ACCURACIES: Heads = (
    ("prompt_accuracy.avg", Column(title="mean", kind="percent")),
    ("prompt_accuracy.max", Column(title="max", kind="percent", help="of the best prompt")),
    ("prompt_accuracy.min", Column(title="min", kind="percent", help="of the worst prompt")),
    ("prompt_accuracy.base", Column(title="base", kind="percent", help="of the base frame")),
    ("prompt_accuracy.stdev", Column(title="stdev", kind="percent", help="n − 1, over prompts")),
)


def overall_table(found: Common, made: dict[str, Measure]) -> Table:
    """A row per run, the most reliable first; runs without MONITOR last."""
    monitor = made["monitor"]
    rows: list[tuple[Cell, ...]] = []
    for i in by_monitor(monitor):
        run = found.runs[i]
        rows.append((run.name, run.lineage.size, *_numbers(made, SCORES, i),
                     len(monitor.measured(i)), prompts(found, i), run.seconds))  # fmt: skip
    return Table(
        id="reliability",
        title="MONITOR of the runs, the most reliable first",
        columns=(
            Column(title="run"),
            Column(title="parameters", kind="count", detail=True),
            *(column for _, column in SCORES),
            Column(title="relations", kind="count", help="in which MONITOR is measured"),
            Column(title="prompts", kind="count", help="anchor, frames, wrong names", detail=True),
            Column(title="seconds", kind="number", help="what the whole run took", detail=True),
        ),
        rows=tuple(rows),
        note=f"On the {len(found.subjects):,} facts that all runs were asked (relations: "
        f"{len(found.relations):,}). Means over relations, for MONITOR over those with a valid "
        "anchor; n counts the facts.",
    )


def anchors_table(found: Common, made: dict[str, Measure]) -> Table:
    """The anchors of each run: how many are valid, and how likely these are."""
    return _side_by_side(
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
    return _side_by_side(
        found,
        made,
        ACCURACIES,
        id="prompt-accuracy",
        title="Accuracy over prompts",
        note="Prompts: the frames with nothing told, and the base frame after each wrong name. Of "
        "all facts; each relation's best, worst and so on, then the mean over relations.",
    )


def _side_by_side(
    found: Common, made: dict[str, Measure], heads: Heads, *, id: str, title: str, note: str
) -> Table:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (found.names[i], *_numbers(made, heads, i)) for i in by_monitor(made["monitor"])
    )
    columns = (Column(title="run"), *(column for _, column in heads))
    return Table(id=id, title=title, columns=columns, rows=rows, note=note)


def _numbers(made: dict[str, Measure], heads: Heads, run: int) -> list[Estimate]:
    return [made[name].mean(run) for name, _ in heads]


def by_monitor(monitor: Measure) -> list[int]:
    """The runs by MONITOR, those without one last."""
    found = [monitor.mean(i).value for i in range(monitor.rows.shape[1])]
    return sorted(range(len(found)), key=lambda i: (found[i] is None, found[i] or 0.0, i))


def prompts(found: Common, run: int) -> int:
    """How many prompts the run needed for the facts in common."""
    return sum(len(right) for right in found.known[run].right)


def correlation_table(found: Common, over: Linked, relations: list[Linked]) -> Table:
    """MONITOR and mean accuracy: how they go together, overall and in each relation."""
    rows: list[tuple[Cell, ...]] = [("overall", "mean over relations", over.r, over.p, over.points)]
    for relation, link in zip(found.relations, relations, strict=True):
        rows.append((relation.id, relation.label, link.r, link.p, link.points))
    return Table(
        id="monitor-accuracy",
        title="MONITOR against mean accuracy: correlation over runs",
        columns=(
            Column(title="relation"),
            Column(title="label"),
            Column(title="Pearson's r", kind="number", help="below 0: reliable runs are accurate"),
            Column(title="p", kind="number", help="two-sided, of no correlation over runs"),
            Column(title="runs", kind="count", help="in which MONITOR is measured"),
        ),
        rows=tuple(rows),
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
    runs = by_monitor(monitor)
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (relation.id, relation.label, *(monitor.cell(i, r) for i in runs))
        for r, relation in enumerate(found.relations)
    )
    heads = (Column(title=found.names[i], kind="number") for i in runs)
    return Table(
        id="monitor-relations",
        title="MONITOR of each run in each relation",
        columns=(Column(title="relation"), Column(title="label"), *heads),
        rows=rows,
        note="n counts the facts with a valid anchor. A dash: no fact has one.",
        browsable=True,
    )


def equals_table(found: Common, made: dict[str, Measure], pairs: list[Equals]) -> Table:
    """Pairs of runs that base accuracy does not tell apart, the lower MONITOR first."""
    monitor, stdev = made["monitor"], made["prompt_accuracy.stdev"]
    rows: list[tuple[Cell, ...]] = []
    for pair in pairs:
        cells: list[Cell] = []
        for i in (pair.first, pair.second):
            cells += [found.names[i], monitor.mean(i).value, stdev.mean(i).value]
        rows.append((*cells, pair.base, pair.monitor, pair.shared))
    sides = (("run", ""), ("other", "its "))
    return Table(
        id="equal-accuracy",
        title="Runs of equal base accuracy, the more reliable of two first",
        columns=(
            *(
                column
                for name, own in sides
                for column in (
                    Column(title=name),
                    Column(title=f"{own}MONITOR", kind="number"),
                    Column(title=f"{own}stdev", kind="percent", help="of accuracy over prompts"),
                )
            ),
            Column(title="Δ base", kind="percent", help="base accuracy, run less other, paired",
                   detail=True),
            Column(title="Δ MONITOR", kind="number", help="run less other, relations of both"),
            Column(title="Δ same facts", kind="number", help="from facts whose anchor is valid in "
                   "both alone", detail=True),
        ),
        rows=tuple(rows),
        note="Pairs whose paired difference of base accuracy is not told from 0; few facts leave "
        "many pairs untold."
        if rows
        else "None: every two runs differ clearly in base accuracy.",
    )  # fmt: skip


def facts_table(found: Common) -> Table:
    """The facts that runs disagree on most, one row per run."""
    chosen = most_disputed(found, MOST_FACTS)
    return Table(
        id="disputed-facts",
        title="Facts that the runs disagree on most",
        columns=_fact_columns(),
        rows=_fact_rows(found, chosen),
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
    return Table(
        id="facts",
        title="Every fact with its probabilities in each run",
        columns=_fact_columns(),
        rows=_fact_rows(found, facts[:most]),
        note=f"The first {most:,} facts; {left:,} more are left out." if left > 0 else "",
        browsable=True,
    )


def _fact_columns() -> tuple[Column, ...]:
    return (
        Column(title="relation"),
        Column(title="subject"),
        Column(title="object"),
        Column(title="run"),
        Column(title="valid", help="whether its anchor is", detail=True),
        Column(title="anchor", kind="number", help="probability after the right name"),
        Column(title="frames", kind="number", help="mean over frames with nothing told"),
        Column(title="lowest", kind="number", help="of the worst frame"),
        Column(title="in frame", detail=True),
        Column(title="misled", kind="number", help="mean over wrong names"),
        Column(title="lowest", kind="number", help="of the worst wrong name"),
        Column(title="after", detail=True),
    )


def _fact_rows(found: Common, facts: Iterable[int]) -> tuple[tuple[Cell, ...], ...]:
    runs = range(len(found.runs))
    return tuple(_fact_row(found, seen(found, c, i)) for c in facts for i in runs)


def _fact_row(found: Common, one: Seen) -> tuple[Cell, ...]:
    return (
        relation_name(one.relation),
        one.fact.subject.name,
        one.fact.objects[0].name,
        found.names[one.run],
        "yes" if one.valid else "no",
        one.anchor,
        one.framed,
        one.lowest_framed,
        one.frame,
        one.misled,
        one.lowest_misled,
        one.name or None,
    )


def ablation_table(found: Common, made: Ablation) -> Table:
    """MONITOR of each run from all frames and from the first few."""
    first = next((s for s in made.subsets if s.name == FIRST), None)
    rows = tuple(_ablation_row(found, made, first, i) for i in range(len(found.runs)) if first)
    return Table(
        id="frames",
        title=f"MONITOR from {made.frames} frames and from all",
        columns=(
            Column(title="run"),
            Column(title="all frames", kind="number"),
            Column(title=f"first {made.frames}", kind="number"),
            Column(title="difference", kind="number", help="first less all, paired"),
            Column(title="lowest draw", kind="number", help="of random frames", detail=True),
            Column(title="highest draw", kind="number", detail=True),
        ),
        rows=rows,
        note="Anchors and wrong names stay the same; relations with no more frames keep all."
        if rows
        else no_ablation(made),
    )


def _ablation_row(
    found: Common, made: Ablation, first: Subset, run: int
) -> tuple[Cell, ...]:  # fmt: skip
    drawn = [s.monitor.mean(run).value for s in made.subsets if s is not first]
    known = [value for value in drawn if value is not None]
    ends: tuple[Cell, Cell] = (min(known), max(known)) if known else (None, None)
    full = made.full.mean(run)
    return (found.names[run], full, first.monitor.mean(run), first.less[run], *ends)


def no_ablation(made: Ablation) -> str:
    """Why there is nothing to compare."""
    return f"Not measured: no relation has more than {made.frames} frames."


def subsets_table(made: Ablation) -> Table:
    """How MONITOR from some frames goes with MONITOR from all, for every choice of frames."""
    rows = tuple(
        (f"first {made.frames}" if s.name == FIRST else s.name, s.rank.r, s.line.r, s.line.p,
         s.line.points, s.rank_in_cells.r, s.line_in_cells.r, s.line_in_cells.points)
        for s in made.subsets
    )  # fmt: skip
    return Table(
        id="frame-subsets",
        title=f"Whether {made.frames} frames order runs as all frames do",
        columns=(
            Column(title="frames"),
            Column(title="Spearman's ρ", kind="number", help="over runs: the same order"),
            Column(title="Pearson's r", kind="number", help="over runs: on one line"),
            Column(title="p", kind="number", help="of r over runs", detail=True),
            Column(title="runs", kind="count", detail=True),
            Column(title="ρ of cells", kind="number", help="over runs and relations"),
            Column(title="r of cells", kind="number", help="over runs and relations"),
            Column(title="cells", kind="count"),
        ),
        rows=rows,
        note="A draw takes as many frames of each relation by the seed. A dash: not measured, "
        f"because fewer than {FEWEST} points have a MONITOR, or they do not differ."
        if rows
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
