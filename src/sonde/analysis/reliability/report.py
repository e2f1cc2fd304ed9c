"""What the report of several runs says of MONITOR, where all of them measured it.

Knows what was common, nothing of files or probes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sonde.analysis.reliability.compare import FIRST, Reliability, reliability
from sonde.analysis.reliability.figures import figures, scaling
from sonde.analysis.reliability.tables import FEW_RUNS, METRICS, tables
from sonde.analysis.runs import Compared, Reading, relation_name, smallest_and_largest, with_counts
from sonde.core.reports import Figure, Headline, Report
from sonde.core.words import in_points, listed, named, sided, written
from sonde.metrics.distance import MONITOR
from sonde.metrics.estimates import lead
from sonde.reporting.build.parts import left_out, shown
from sonde.reporting.catalogue import used

MOST_HEADLINES = 4
MOST_FINDINGS = 3
"""Pairs of equal base accuracy that are told in sentences; the table has all."""


def with_reliability(report: Report, runs: Sequence[Compared], reading: Reading) -> Report:
    """The report with everything about MONITOR in front, where every run measured it."""
    if any(run.monitored is None for run in runs):
        return report
    of = reliability(runs, reading)
    built = tuple(tables(of))
    drawn: tuple[Figure, ...] = shown(*figures(of))
    return replace(
        report,
        metrics=(*used(METRICS, of.estimates), *report.metrics),
        estimates={**of.estimates, **report.estimates},
        counts={**report.counts, **_counts(of)},
        headlines=(*_headlines(of), *report.headlines),
        tables=(*shown(*built), *report.tables),
        figures=(*drawn, *report.figures),
        findings=(*_findings(of), *report.findings),
        notes=(_note(of), *left_out(built), *report.notes),
    )


def _counts(of: Reliability) -> dict[str, int]:
    """Facts in common and left out, and what has no anchor."""
    relations = len(of.common.relations)
    counts = {"facts_in_common": len(of.common.subjects), "relations_in_common": relations}
    for run in of.names:
        counts[f"facts_left_out.run.{run}"] = of.common.left_out[run]
        counts[f"relations_without_anchors.run.{run}"] = relations - len(of.measured(run))
    return counts


def _headlines(of: Reliability) -> Iterator[Headline]:
    """MONITOR of the most reliable runs, and how it goes with accuracy where that can be told."""
    for name in of.order[:MOST_HEADLINES]:
        yield Headline(label=f"MONITOR, {name}", estimate=f"monitor.run.{name}", kind="number")
    if of.estimates["monitor_accuracy.pearson"].value is not None:
        label = "MONITOR and mean accuracy, Pearson's r over runs"
        yield Headline(label=label, estimate="monitor_accuracy.pearson", kind="number")


def _findings(of: Reliability) -> Iterator[str]:
    """Who is most reliable, what is missing, how MONITOR goes with accuracy, size and frames."""
    yield from _settings(of)
    yield _best(of)
    yield from _missing(of)
    yield _correlated(of)
    yield from _equal(of)
    yield from _grown(of)
    yield _fewer_frames(of)


def _settings(of: Reliability) -> Iterator[str]:
    """A warning where runs were not asked in the same way, with those that were."""
    groups: dict[str, list[str]] = {}
    for run in of.common.runs:
        groups.setdefault(run.setting, []).append(run.name)
    if len(groups) > 1:
        yield (
            "MONITOR is not comparable between all of these runs, which were asked in different "
            "ways or read by different rules. Asked alike: "
            f"{'; '.join(listed(names) for names in groups.values())}."
        )


def _best(of: Reliability) -> str:
    """Who has the lowest MONITOR, each two runs compared on the relations that both have."""
    monitor = {name: of.of_run(name, MONITOR) for name in of.order}
    values = {name: e.value for name, e in monitor.items() if e.value is not None}
    if not values:
        return "MONITOR was not measured: no run has a valid anchor."
    first = lead(values, of.p_value, lowest=True)
    best = next(iter(values)) if first is None else first.best
    number = written(monitor[best])
    if first is None:
        return f"{best} has MONITOR {number}; no other run has a valid anchor."
    claim = f"{best} has the lowest MONITOR, {number}."
    return named(claim, "Which run has the lowest MONITOR", f"{best}, {number},", first.tied)


def _missing(of: Reliability) -> Iterator[str]:
    relations = of.common.relations
    for name in of.names:
        measured = of.measured(name)
        gone = [relation_name(x) for r, x in enumerate(relations) if r not in measured]
        if gone and measured:
            yield (
                f"{name} has no valid anchor in {len(gone):,} of {len(relations):,} relations "
                f"({listed(gone)}): MONITOR is not measured there."
            )
        elif gone:
            yield f"{name} has no valid anchor at all: its MONITOR is not measured."


def _correlated(of: Reliability) -> str:
    r, p = (of.estimates[f"monitor_accuracy.{number}"] for number in ("pearson", "p"))
    if r.value is None or p.value is None:
        return f"Whether MONITOR goes with mean accuracy was not measured: {FEW_RUNS}"
    names = (f"monitor_accuracy.relation.{r.id}.pearson" for r in of.common.relations)
    values = [value for name in names if (value := of.estimates[name].value) is not None]
    below = sum(value < 0 for value in values)
    small = "< 0.001" if p.value < 0.001 else f"= {p.value:.3f}"
    return (
        f"MONITOR and mean accuracy have r = {written(r)} over {r.n} runs (p {small}); r is below "
        f"0 in {below} of {len(values)} relations."
    )


def _equal(of: Reliability) -> Iterator[str]:
    pairs = {pair: of.estimates["monitor.runs.{}.minus.{}".format(*pair)] for pair in of.equals}
    measured = {pair: monitor for pair, monitor in pairs.items() if monitor.value is not None}
    for (a, b), monitor in list(measured.items())[:MOST_FINDINGS]:
        word = sided(monitor, "higher", "lower", NEITHER, of.p_value(a, b))
        moved = of.difference("prompt_accuracy.stdev", a, b)
        spread = ""
        if moved.low is not None:
            side = sided(moved, "higher", "lower", "not distinguishable from the other")
            spread = f" The stdev of its accuracy over prompts is {side}: {in_points(moved)}."
        base = of.estimates[f"base_accuracy.runs.{a}.minus.{b}"]
        yield (
            f"Base accuracy does not tell {a} from {b}: {in_points(base)}. MONITOR of {a} is "
            f"{word}: {written(monitor)}.{spread}"
        )


NEITHER = "neither clearly lower nor higher"


def _grown(of: Reliability) -> Iterator[str]:
    for family, smallest, largest in smallest_and_largest(of.common.runs):
        apart = of.difference("monitor", largest, smallest)
        if apart.value is not None:
            word = sided(apart, "higher", "lower", NEITHER, of.p_value(largest, smallest))
            yield (
                f"In family {family} the largest model, {largest}, has a MONITOR that is {word} "
                f"than that of the smallest, {smallest}: {written(apart)}."
            )


def _fewer_frames(of: Reliability) -> str:
    frames = of.reading.frames
    if not of.subsets:
        return f"What fewer frames do was not measured: none has more than {frames}."
    rank, line, cells = (
        of.estimates[f"frames.{FIRST}.{end}"] for end in ("spearman", "pearson", "cells.pearson")
    )
    over = " cannot be compared over so few runs"
    if rank.value is not None and line.value is not None:
        over = f" orders runs with ρ = {written(rank)}, on a line with r = {written(line)}"
    if cells.value is not None:
        over += f"; over runs and relations r = {written(cells)}"
    return f"MONITOR from the first {frames} of up to {of.most} frames{over}."


def _note(of: Reliability) -> str:
    """Which facts were compared, and what intervals are over."""
    left = with_counts(of.common.left_out)
    gone = f" Left out: {left} facts." if left else " No fact was left out."
    alone = scaling(of) is None
    scale = " MONITOR against size was not measured: no family has two sizes, asked alike."
    return (
        f"MONITOR is compared on the {len(of.common.subjects):,} facts and "
        f"{len(of.common.relations):,} relations that all runs were asked.{gone} Each run has "
        "valid anchors of its own; two runs are compared over the relations in which both have "
        "some. Intervals are over subjects, drawn anew within relations for all runs at once."
        f"{scale if alone else ''}"
    )
