"""The report of a lab: every estimator of what a model knows, held against what it was taught.

Knows trials alone, nothing of files, training or models.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from sonde.core.errors import UsageError
from sonde.core.reports import Estimate, Headline, Report
from sonde.lab.evaluation.judging import Group, judge
from sonde.lab.evaluation.measures import BASE
from sonde.lab.evaluation.verdicts import ANY
from sonde.lab.report.figures import figures
from sonde.lab.report.findings import findings
from sonde.lab.report.tables import tables
from sonde.lab.report.trust import chosen
from sonde.lab.report.words import metrics, sorts, stable, times, titled
from sonde.lab.worlds.truth import Trial
from sonde.reporting.build.parts import shown
from sonde.reporting.catalogue import used


def lab_report(trials: Sequence[Trial], timeline: Sequence[Trial] = ()) -> Report:
    """Everything that trials say about the estimators; `timeline` are checkpoints of some models.

    Numbers are by kind of model and sort of world: plain-1 and plain-2 are two worlds of one sort.
    """
    groups = judge(trials)
    if not any(group.names for group in groups):
        raise UsageError("no estimator has judged any model; run at least one of them")
    estimates = _estimates(groups)
    known = defaultdict(Estimate.not_measured, estimates)
    return Report(
        title="Do the probes tell the truth?",
        summary=_summary(groups),
        metrics=used(metrics(groups), estimates),
        estimates=estimates,
        counts=_counts(groups, timeline),
        headlines=tuple(_headlines(groups)),
        tables=shown(tables(groups, known)),
        figures=shown(figures(groups, known, timeline)),
        findings=findings(groups),
        notes=tuple(_notes(groups)),
    )


def _summary(groups: Sequence[Group]) -> str:
    worlds = {name for group in groups for name in group.world_names}
    models = sum(len(group.models) for group in groups)
    names = {name for group in groups for name in group.own}
    return (
        f"{_counted(len(names), 'estimator')} of what a model knows, held against the truth in "
        f"{_counted(models, 'model')} of {_counted(len(worlds), 'invented world')}: which facts "
        "the model's text states (taught), and which of them it gives back in a text that it was "
        "taught them in (stored)."
    )


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _estimates(groups: Sequence[Group]) -> dict[str, Estimate]:
    return {
        stable(group, measure, name): estimate
        for group in groups
        for (measure, name), estimate in group.numbers.items()
        if estimate.value is not None or measure == "auroc.taught"
    }


def _counts(groups: Sequence[Group], timeline: Sequence[Trial]) -> dict[str, int]:
    names = {name for group in groups for name in group.names}
    return {
        "worlds": len({name for group in groups for name in group.world_names}),
        "models": sum(len(group.models) for group in groups),
        "checkpoints": len(timeline),
        "estimators": len(names - {c for group in groups for c in group.controls}),
        "controls": len({c for group in groups for c in group.controls}),
        "facts": sum(len(one.trial.known) for group in groups for one in group.models),
        **{
            f"{what}.{group.kind}.{group.worlds}": count
            for group in groups
            for what, count in (
                ("facts_at_the_top_of_the_ladder", group.top.facts),
                ("of_these_found_by_none", group.top.unfound),
                ("of_these_not_stored", group.top.unfound - group.top.stored),
            )
        },
    }


def _headlines(groups: Sequence[Group]) -> Iterator[Headline]:
    """The best AUROC of every group beside LAMA's, and how many of the plainest facts are found."""
    for group in groups:
        choice = chosen(group, "auroc.taught")
        best = choice.best if choice is not None else group.names[0]
        beside = best != BASE and BASE in group.names
        yield Headline(
            label=f"{titled(group, groups)}: AUROC against what was taught, {best}",
            estimate=stable(group, "auroc.taught", best),
            control=stable(group, "auroc.taught", BASE) if beside else "",
            control_label=BASE,
            kind="number",
        )
        found = f"recall.exposure.{group.top.exposure}"
        if group.of(found, ANY).value is not None:
            yield Headline(
                label=f"{titled(group, groups)}: facts read {times(group.top.exposure)} that at "
                "least one estimator finds",
                estimate=stable(group, found, ANY),
                control=stable(group, "recall.exposure.0", ANY)
                if group.of("recall.exposure.0", ANY).value is not None
                else "",
                control_label="of facts never read",
            )


def _notes(groups: Sequence[Group]) -> Iterator[str]:
    yield (
        "Taught: the text states the fact at least once. Stored: the model gives its object back "
        "in one of the texts that it was taught the fact in. All facts that an estimator was asked "
        "about count, those of relations never shown among them, and each estimate is held against "
        "the truth of the same facts."
    )
    several = [group for group in groups if len(group.world_names) > 1]
    single = [group for group in groups if len(group.world_names) == 1]
    if several:
        yield (
            "Over several worlds a number is the mean over the worlds, n is their number, and the "
            "95 % interval is Student's over them; where all worlds have the same value, it is put "
            "together from the intervals that their facts leave. It says what other worlds of the "
            "sort would give."
        )
    if single:
        where = ", ".join(titled(group, groups) for group in single)
        yield (
            f"Of a single world ({where}) n is the number of facts, and the 95 % interval is a "
            "bootstrap of the facts within their relations, Wilson's for a share that does not "
            "vary, DeLong's for AUROC, and by the spread of the facts for many different values. "
            "It says what other facts of the same world would give, not what other worlds would."
        )
    if any(len(group.models) > len(group.world_names) for group in groups):
        yield "Where a world has several models of a kind, their mean counts for the world."
    if len(sorts(groups)) > 1:
        yield "Worlds are of one sort where their names differ in the last number alone."
    yield from _uneven(groups)


def _uneven(groups: Sequence[Group]) -> Iterator[str]:
    uneven = any(
        len({asked.verdicts.facts for name, asked in one.asked.items() if name != ANY}) > 1
        for group in groups
        for one in group.models
    )
    if uneven:
        yield (
            "Not all estimators were asked about the same facts of a model: each is judged on its "
            "own, and differences are over the facts of both."
        )
