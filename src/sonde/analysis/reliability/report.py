"""What the report of several runs says of MONITOR, where all of them measured it.

Knows what was found, nothing of files or probes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sonde.analysis.reliability import figures, tables
from sonde.analysis.reliability.accuracy import Equals, Linked, by_relation, equals, over_models
from sonde.analysis.reliability.frames import FIRST, Ablation, ablation
from sonde.analysis.reliability.outcomes import Common, Measure, common, measures, p_value
from sonde.analysis.reliability.tables import by_monitor, written
from sonde.analysis.runs import Compared, Reading, relation_name, smallest_and_largest
from sonde.core.reports import Estimate, Figure, Headline, Report, Table
from sonde.core.words import in_points, listed, named, sided
from sonde.metrics.leading import lead
from sonde.reporting.build.parts import left_out, shown

MOST_HEADLINES = 4
MOST_FINDINGS = 3
"""Pairs of equal base accuracy that are told in sentences; the table has all."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reliability:
    """Everything that is said of MONITOR over runs."""

    common: Common
    numbers: dict[str, Measure]
    over: Linked
    relations: list[Linked]
    equals: list[Equals]
    ablation: Ablation
    seed: int

    @property
    def monitor(self) -> Measure:
        """The number itself."""
        return self.numbers["monitor"]


def reliability(runs: Sequence[Compared], reading: Reading) -> Reliability:
    """Compare runs that all measured MONITOR."""
    found, seed = common(runs), reading.seed
    numbers = measures(found, seed)
    monitor, accuracy = numbers["monitor"], numbers["prompt_accuracy.avg"]
    return Reliability(
        common=found,
        numbers=numbers,
        over=over_models(monitor, accuracy),
        relations=by_relation(monitor, accuracy),
        equals=equals(found, numbers, seed),
        ablation=ablation(found, monitor, reading.frames, reading.subsets, seed),
        seed=seed,
    )


def with_reliability(report: Report, runs: Sequence[Compared], reading: Reading) -> Report:
    """The report with everything about MONITOR in front, where every run measured it."""
    if any(run.monitored is None for run in runs):
        return report
    found = reliability(runs, reading)
    made = made_tables(found)
    return replace(
        report,
        estimates={**estimates(found), **report.estimates},
        counts={**report.counts, **counts(found)},
        headlines=(*headlines(found), *report.headlines),
        tables=(*shown(made), *report.tables),
        figures=(*made_figures(found), *report.figures),
        findings=(*findings(found), *report.findings),
        notes=(*notes(found), *left_out(made), *report.notes),
    )


def estimates(found: Reliability) -> dict[str, Estimate]:
    """Every number under its stable name."""
    names = found.common.names
    made: dict[str, Estimate] = {}
    ids = [relation.id for relation in found.common.relations]
    for name, measure in found.numbers.items():
        made |= {f"{name}.run.{run}": measure.mean(i) for i, run in enumerate(names)}
    for r, id in enumerate(ids):
        made |= {
            f"monitor.relation.{id}.run.{run}": found.monitor.cell(i, r)
            for i, run in enumerate(names)
        }
    made |= _linked("monitor_accuracy", found.over)
    for id, link in zip(ids, found.relations, strict=True):
        made |= _linked(f"monitor_accuracy.relation.{id}", link)
    for pair in found.equals:
        ends = f"runs.{names[pair.first]}.minus.{names[pair.second]}"
        made |= {
            f"base_accuracy.{ends}": pair.base,
            f"monitor.{ends}": pair.monitor,
            f"monitor_same_facts.{ends}": pair.shared,
        }
    return made | _ablated(found)


def _linked(name: str, link: Linked) -> dict[str, Estimate]:
    p = Estimate(value=link.p, low=None, high=None, n=link.r.n)
    return {f"{name}.pearson": link.r, f"{name}.p": p}


def _ablated(found: Reliability) -> dict[str, Estimate]:
    made: dict[str, Estimate] = {}
    for subset in found.ablation.subsets:
        name = f"frames.{subset.name.replace(' ', '_')}"
        made |= _linked(name, subset.line) | _linked(f"{name}.cells", subset.line_in_cells)
        made |= {f"{name}.spearman": subset.rank.r}
        made |= {f"{name}.cells.spearman": subset.rank_in_cells.r}
        for i, run in enumerate(found.common.names):
            made[f"{name}.monitor.run.{run}"] = subset.monitor.mean(i)
            made[f"{name}.minus_all.run.{run}"] = subset.less[i]
    return made


def counts(found: Reliability) -> dict[str, int]:
    """Facts in common and left out, and what has no anchor."""
    relations = len(found.common.relations)
    made = {"facts_in_common": len(found.common.subjects), "relations_in_common": relations}
    for i, run in enumerate(found.common.names):
        made[f"facts_left_out.run.{run}"] = found.common.left_out[i]
        without = relations - len(found.monitor.measured(i))
        made[f"relations_without_anchors.run.{run}"] = without
    return made


def headlines(found: Reliability) -> tuple[Headline, ...]:
    """MONITOR of the most reliable runs, and how it goes with accuracy where that can be told."""
    names = found.common.names
    made = [
        Headline(label=f"MONITOR, {names[i]}", estimate=f"monitor.run.{names[i]}", kind="number")
        for i in by_monitor(found.monitor)[:MOST_HEADLINES]
    ]
    if found.over.r.value is not None:
        name = "monitor_accuracy.pearson"
        label = "MONITOR and mean accuracy, Pearson's r over runs"
        made.append(Headline(label=label, estimate=name, kind="number"))
    return tuple(made)


def made_tables(found: Reliability) -> tuple[Table, ...]:
    """Everything in rows."""
    base = found.common
    return (
        tables.overall_table(base, found.numbers),
        tables.anchors_table(base, found.numbers),
        tables.accuracies_table(base, found.numbers),
        tables.correlation_table(base, found.over, found.relations),
        tables.equals_table(base, found.numbers, found.equals),
        tables.facts_table(base),
        tables.ablation_table(base, found.ablation),
        tables.subsets_table(found.ablation),
        tables.matrix_table(base, found.monitor),
        tables.all_facts_table(base),
    )


def made_figures(found: Reliability) -> tuple[Figure, ...]:
    """Everything that can be drawn."""
    base, monitor = found.common, found.monitor
    return shown(
        (
            figures.accuracy_scatter(base, found.numbers),
            figures.matrix_map(base, monitor),
            figures.moved_boxes(base),
            figures.prompt_boxes(base, found.numbers["prompt_accuracy.stdev"]),
            figures.anchor_bars(base),
            figures.scaling_curves(base, monitor),
            figures.ablation_scatter(base, found.ablation),
        )
    )


def findings(found: Reliability) -> list[str]:
    """Who is most reliable, what is missing, how MONITOR goes with accuracy, size and frames."""
    return [
        *_settings(found),
        *_best(found),
        *_missing(found),
        _correlated(found),
        *_equal(found),
        *_grown(found),
        *_fewer_frames(found),
    ]


def _settings(found: Reliability) -> list[str]:
    """A warning where runs were not asked in the same way, with those that were."""
    groups: dict[str, list[str]] = {}
    for run in found.common.runs:
        groups.setdefault(run.setting, []).append(run.name)
    if len(groups) < 2:
        return []
    together = "; ".join(listed(names) for names in groups.values())
    return [
        "MONITOR is not comparable between all of these runs, which were asked in different ways "
        f"or read by different rules. Asked alike: {together}."
    ]


def _best(found: Reliability) -> list[str]:
    """Who has the lowest MONITOR, each two runs compared on the relations that both have."""
    monitor, names = found.monitor, found.common.names
    there = {names[i]: i for i in by_monitor(monitor) if monitor.mean(i).value is not None}
    if not there:
        return ["MONITOR was not measured: no run has a valid anchor."]
    values = {name: monitor.mean(i).value or 0.0 for name, i in there.items()}

    def test(one: str, other: str) -> float:
        return p_value(found.common, monitor, there[one], there[other], found.seed)

    first = lead(values, test, lowest=True)
    best = next(iter(there)) if first is None else first.best
    measured = written(monitor.mean(there[best]))
    if first is None:
        return [f"{best} has MONITOR {measured}; no other run has a valid anchor."]
    claim = f"{best} has the lowest MONITOR, {measured}."
    question = "Which run has the lowest MONITOR"
    return [named(claim, question, f"{best}, {measured},", first.tied)]


def _missing(found: Reliability) -> list[str]:
    said = []
    relations = found.common.relations
    for i, name in enumerate(found.common.names):
        there = set(found.monitor.measured(i).tolist())
        gone = [relation_name(x) for r, x in enumerate(relations) if r not in there]
        if gone and there:
            said.append(
                f"{name} has no valid anchor in {len(gone):,} of {len(relations):,} relations "
                f"({listed(gone)}): MONITOR is not measured there."
            )
        elif gone:
            said.append(f"{name} has no valid anchor at all: its MONITOR is not measured.")
    return said


def _correlated(found: Reliability) -> str:
    r, p = found.over.r, found.over.p
    if r.value is None or p is None:
        few = tables.few_runs(found.over).removeprefix("Not measured: ")
        return f"Whether MONITOR goes with mean accuracy was not measured: {few}"
    there = [one.r.value for one in found.relations if one.r.value is not None]
    below = sum(value < 0 for value in there)
    small = "< 0.001" if p < 0.001 else f"= {p:.3f}"
    return (
        f"MONITOR and mean accuracy have r = {written(r)} over {r.n} runs (p {small}); r is below "
        f"0 in {below} of {len(there)} relations."
    )


def _equal(found: Reliability) -> list[str]:
    names, stdev = found.common.names, found.numbers["prompt_accuracy.stdev"]
    said = []
    for pair in [e for e in found.equals if e.monitor.value is not None][:MOST_FINDINGS]:
        a, b = names[pair.first], names[pair.second]
        p = p_value(found.common, found.monitor, pair.first, pair.second, found.seed)
        word = sided(pair.monitor, "higher", "lower", "neither clearly lower nor higher", p)
        moved = stdev.difference(pair.first, pair.second)
        told = (
            f"Base accuracy does not tell {a} from {b}: {in_points(pair.base)}. MONITOR of {a} is "
            f"{word}: {written(pair.monitor)}."
        )
        if moved.low is not None:
            side = sided(moved, "higher", "lower", "not told from the other")
            told += f" The stdev of its accuracy over prompts is {side}: {in_points(moved)}."
        said.append(told)
    return said


def _grown(found: Reliability) -> list[str]:
    names, said = found.common.names, []
    for kin in smallest_and_largest(found.common.runs):
        apart = found.monitor.difference(kin.other, kin.lesser)
        if apart.value is not None:
            p = p_value(found.common, found.monitor, kin.other, kin.lesser, found.seed)
            word = sided(apart, "higher", "lower", "neither clearly lower nor higher", p)
            said.append(
                f"In family {kin.family} the largest model, {names[kin.other]}, has a MONITOR that "
                f"is {word} than that of the smallest, {names[kin.lesser]}: {written(apart)}."
            )
    return said


def _fewer_frames(found: Reliability) -> list[str]:
    made = found.ablation
    first = next((s for s in made.subsets if s.name == FIRST), None)
    if first is None:
        return [f"What fewer frames do was not measured: none has more than {made.frames}."]
    rank, line, cells = first.rank.r, first.line.r, first.line_in_cells.r
    said = f"MONITOR from the first {made.frames} of up to {made.most} frames"
    if rank.value is not None and line.value is not None:
        said += f" orders runs with ρ = {written(rank)}, on a line with r = {written(line)}"
    else:
        said += " cannot be compared over so few runs"
    over = "" if cells.value is None else f"; over runs and relations r = {written(cells)}"
    return [f"{said}{over}."]


def notes(found: Reliability) -> tuple[str, ...]:
    """Which facts were compared, and what intervals are over."""
    left = [
        f"{name} {count:,}"
        for name, count in zip(found.common.names, found.common.left_out, strict=True)
        if count
    ]
    gone = f" Left out: {', '.join(left)} facts." if left else " No fact was left out."
    alone = not figures.scaling_curves(found.common, found.monitor).curves
    scale = " MONITOR against size was not measured: no family has two sizes, asked alike."
    return (
        f"MONITOR is compared on the {len(found.common.subjects):,} facts and "
        f"{len(found.common.relations):,} relations that all runs were asked.{gone} Each run has "
        "valid anchors of its own; two runs are compared over the relations in which both have "
        "some. Intervals are over subjects, drawn anew within relations for all runs at once."
        f"{scale if alone else ''}",
    )
