"""What the report of several runs says of MONITOR, where all of them measured it.

Knows what was common, nothing of files or probes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sonde.analysis.reliability.compare import Reliability, reliability
from sonde.analysis.reliability.figures import figures, scaling
from sonde.analysis.reliability.outcomes import p_value
from sonde.analysis.reliability.tables import FEW_RUNS, METRICS, tables
from sonde.analysis.runs import (
    Compared,
    Reading,
    relation_name,
    smallest_and_largest,
    with_counts,
)
from sonde.core.reports import Headline, Report
from sonde.core.words import in_points, listed, named, sided, written
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
    estimates, built = of.estimates, tuple(tables(of))
    return replace(
        report,
        metrics=(*used(METRICS, estimates), *report.metrics),
        estimates={**estimates, **report.estimates},
        counts={**report.counts, **_counts(of)},
        headlines=(*_headlines(of), *report.headlines),
        tables=(*shown(built), *report.tables),
        figures=(*figures(of), *report.figures),
        findings=(*_findings(of), *report.findings),
        notes=(_note(of), *left_out(built), *report.notes),
    )


def _counts(of: Reliability) -> dict[str, int]:
    """Facts in common and left out, and what has no anchor."""
    relations = len(of.common.relations)
    counts = {"facts_in_common": len(of.common.subjects), "relations_in_common": relations}
    for i, run in enumerate(of.names):
        counts[f"facts_left_out.run.{run}"] = of.common.left_out[i]
        without = relations - len(of.monitor.measured(i))
        counts[f"relations_without_anchors.run.{run}"] = without
    return counts


def _headlines(of: Reliability) -> Iterator[Headline]:
    """MONITOR of the most reliable runs, and how it goes with accuracy where that can be told."""
    for name in [of.names[i] for i in of.order][:MOST_HEADLINES]:
        yield Headline(label=f"MONITOR, {name}", estimate=f"monitor.run.{name}", kind="number")
    if of.over.r.value is not None:
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


def _p(of: Reliability, one: int, other: int) -> float:
    return p_value(of.common, of.monitor, one, other, of.seed)


def _best(of: Reliability) -> str:
    """Who has the lowest MONITOR, each two runs compared on the relations that both have."""
    measured = {of.names[i]: i for i in of.order if of.monitor.mean(i).value is not None}
    if not measured:
        return "MONITOR was not measured: no run has a valid anchor."
    values = {name: of.monitor.mean(i).value or 0.0 for name, i in measured.items()}
    first = lead(values, lambda a, b: _p(of, measured[a], measured[b]), lowest=True)
    best = next(iter(measured)) if first is None else first.best
    number = written(of.monitor.mean(measured[best]))
    if first is None:
        return f"{best} has MONITOR {number}; no other run has a valid anchor."
    claim = f"{best} has the lowest MONITOR, {number}."
    return named(claim, "Which run has the lowest MONITOR", f"{best}, {number},", first.tied)


def _missing(of: Reliability) -> Iterator[str]:
    relations = of.common.relations
    for i, name in enumerate(of.names):
        measured = set(of.monitor.measured(i).tolist())
        gone = [relation_name(x) for r, x in enumerate(relations) if r not in measured]
        if gone and measured:
            yield (
                f"{name} has no valid anchor in {len(gone):,} of {len(relations):,} relations "
                f"({listed(gone)}): MONITOR is not measured there."
            )
        elif gone:
            yield f"{name} has no valid anchor at all: its MONITOR is not measured."


def _correlated(of: Reliability) -> str:
    r, p = of.over.r, of.over.p
    if r.value is None or p is None:
        return f"Whether MONITOR goes with mean accuracy was not measured: {FEW_RUNS}"
    values = [link.r.value for link in of.relations if link.r.value is not None]
    below = sum(value < 0 for value in values)
    small = "< 0.001" if p < 0.001 else f"= {p:.3f}"
    return (
        f"MONITOR and mean accuracy have r = {written(r)} over {r.n} runs (p {small}); r is below "
        f"0 in {below} of {len(values)} relations."
    )


def _equal(of: Reliability) -> Iterator[str]:
    stdev = of.numbers["prompt_accuracy.stdev"]
    for pair in [e for e in of.equals if e.monitor.value is not None][:MOST_FINDINGS]:
        a, b = of.names[pair.first], of.names[pair.second]
        p = _p(of, pair.first, pair.second)
        word = sided(pair.monitor, "higher", "lower", "neither clearly lower nor higher", p)
        moved = stdev.difference(pair.first, pair.second)
        spread = ""
        if moved.low is not None:
            side = sided(moved, "higher", "lower", "not told from the other")
            spread = f" The stdev of its accuracy over prompts is {side}: {in_points(moved)}."
        yield (
            f"Base accuracy does not tell {a} from {b}: {in_points(pair.base)}. MONITOR of {a} is "
            f"{word}: {written(pair.monitor)}.{spread}"
        )


def _grown(of: Reliability) -> Iterator[str]:
    for kin in smallest_and_largest(of.common.runs):
        apart = of.monitor.difference(kin.other, kin.lesser)
        if apart.value is not None:
            p = _p(of, kin.other, kin.lesser)
            word = sided(apart, "higher", "lower", "neither clearly lower nor higher", p)
            yield (
                f"In family {kin.family} the largest model, {of.names[kin.other]}, has a MONITOR "
                f"that is {word} than that of the smallest, {of.names[kin.lesser]}: "
                f"{written(apart)}."
            )


def _fewer_frames(of: Reliability) -> str:
    ablation, first = of.ablation, of.ablation.first
    if first is None:
        return f"What fewer frames do was not measured: none has more than {ablation.frames}."
    rank, line, cells = first.rank.r, first.line.r, first.line_in_cells.r
    over = " cannot be compared over so few runs"
    if rank.value is not None and line.value is not None:
        over = f" orders runs with ρ = {written(rank)}, on a line with r = {written(line)}"
    if cells.value is not None:
        over += f"; over runs and relations r = {written(cells)}"
    return f"MONITOR from the first {ablation.frames} of up to {ablation.most} frames{over}."


def _note(of: Reliability) -> str:
    """Which facts were compared, and what intervals are over."""
    left = with_counts(of.names, of.common.left_out)
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
