"""The report of a lab: every estimator of what a model knows, held against what it was taught.

Knows trials alone, nothing of files, training or models.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from polars import DataFrame, Expr, col

from sonde.core.errors import UsageError
from sonde.core.reports import Estimate, Headline, Report, Table
from sonde.lab.evaluation.judging import ANY, Group, Trial, judge
from sonde.lab.evaluation.measures import (
    BASE,
    CAUSES,
    EVERY,
    FOUND,
    GUESSABLE,
    STORED,
    TAUGHT,
    metrics,
)
from sonde.lab.report.figures import figures
from sonde.lab.report.findings import chosen, findings, times
from sonde.lab.report.tables import tables
from sonde.reports.legacy import Field, table, without_none


def lab_report(trials: Sequence[Trial], timeline: Sequence[Trial] = ()) -> Report:
    """Everything that trials say about the estimators; `timeline` are checkpoints of some models.

    Numbers are by kind of model and sort of world: plain-1 and plain-2 are two worlds of one sort.
    """
    groups = judge(trials)
    if not any(group.names for group in groups):
        raise UsageError("no estimator has judged any model; run at least one of them")
    estimates = _estimates(groups)
    known = defaultdict(Estimate.not_measured, estimates)
    exposures = sorted({step for group in groups for step in group.ladder})
    return Report(
        title="Do the probes tell the truth?",
        summary=_summary(groups),
        metrics=tuple(metrics(exposures)),
        estimates=estimates,
        counts=_counts(groups, timeline),
        headlines=tuple(_headlines(groups)),
        tables=without_none(*tables(groups, known)),
        figures=without_none(*figures(groups, known, timeline)),
        findings=findings(groups),
        notes=tuple(_notes(groups)),
    )


def _summary(groups: Sequence[Group]) -> str:
    worlds = {name for group in groups for name in group.world_names}
    models = sum(len(group.trials) for group in groups)
    names = {name for group in groups for name in group.estimators}
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
        f"{measure}.{group.place(name)}": estimate
        for group in groups
        for (measure, name), estimate in group.numbers.items()
        if estimate.value is not None or measure == "auroc.taught"
    }


def _counts(groups: Sequence[Group], timeline: Sequence[Trial]) -> dict[str, int]:
    names = {name for group in groups for name in group.names}
    return {
        "worlds": len({name for group in groups for name in group.world_names}),
        "models": sum(len(group.trials) for group in groups),
        "checkpoints": len(timeline),
        "estimators": len(names - {c for group in groups for c in group.controls}),
        "controls": len({c for group in groups for c in group.controls}),
        "facts": sum(len(trial.facts) for group in groups for trial in group.trials),
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
            label=f"{group.title}: AUROC against what was taught, {best}",
            estimate=f"auroc.taught.{group.place(best)}",
            control=f"auroc.taught.{group.place(BASE)}" if beside else "",
            control_label=BASE,
            kind="number",
        )
        top, never = f"recall.exposure.{group.top.exposure}", "recall.exposure.0"
        if group.of(top, ANY).value is not None:
            asked = group.of(never, ANY).value is not None
            yield Headline(
                label=f"{group.title}: facts read {times(group.top.exposure)} that at least one "
                "estimator finds",
                estimate=f"{top}.{group.place(ANY)}",
                control=f"{never}.{group.place(ANY)}" if asked else "",
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
        where = ", ".join(group.title for group in single)
        yield (
            f"Of a single world ({where}) n is the number of facts, and the 95 % interval is a "
            "bootstrap of the facts within their relations, Wilson's for a share that does not "
            "vary, and DeLong's for AUROC. It says what other facts of the same world would give, "
            "not what other worlds would."
        )
    if any(len(group.trials) > len(group.world_names) for group in groups):
        yield "Where a world has several models of a kind, their mean counts for the world."
    if not groups[0].alone:
        yield "Worlds are of one sort where their names differ in the last number alone."
    asked = (_asked(trial) for group in groups for trial in group.trials)
    if any(len(facts) > 1 for facts in asked):
        yield (
            "Not all estimators were asked about the same facts of a model: each is judged on its "
            "own, and differences are over the facts of both."
        )


def _asked(trial: Trial) -> set[tuple[str, ...]]:
    """The facts that the estimators of a model were asked about, as many as differ."""
    return {tuple(verdicts.frame["fact"]) for verdicts in trial.verdicts}


def brief(trial: Trial, beside: str) -> Report:
    """LAMA on one model in a single table: told how often, stored, found.

    `beside` is a model of which no truth is known.
    """
    asked = trial.beside(next(v for v in trial.verdicts if v.estimator == BASE))
    n, stored, untaught = len(asked), _count(asked, STORED), _count(asked, ~TAUGHT)
    found, missed = _count(asked, FOUND), _count(asked, STORED & ~FOUND)
    claimed, guessed = _count(asked, FOUND & ~TAUGHT), _count(asked, FOUND & GUESSABLE)
    return Report(
        title=f"And a model whose knowledge is known: {trial.model}",
        summary="It comes with sonde and was trained on a made-up text, so it is written down "
        f"which facts it was taught, and how often. LAMA says that {found / n:.1%} of {n:,} facts "
        f"are known; {1 - untaught / n:.1%} were taught, and {stored / n:.1%} are stored.",
        estimates={},
        findings=(
            f"LAMA misses {missed:,} of the {stored:,} facts that are stored.",
            f"LAMA finds {claimed:,} of the {untaught:,} facts that were never taught; "
            f"{guessed:,} of these can be guessed.",
        ),
        tables=(_by_exposure(asked),),
        notes=(
            f"Nobody can draw this table for {beside}: nobody knows which facts its text states.",
            "Every estimator against the same truth: sonde lab validate --shipped (docs/trust.md).",
        ),
    )


def _by_exposure(asked: DataFrame) -> Table:
    """Facts asked, stored and found, by how often the text states them; and all of them."""
    parts = {
        "0, nor any of its relation": CAUSES["unshown"].where,
        "0, not guessable": CAUSES["not_guessable"].where,
        "0, guessable": GUESSABLE,
        **{
            str(times): col("exposure") == times
            for times in asked.filter(TAUGHT)["exposure"].unique().sort()
        },
        "all": EVERY,
    }
    fields: list[Field[str]] = [
        Field("facts asked", lambda part: _count(asked, parts[part]), "count"),
        Field("stored", lambda part: _count(asked, parts[part] & STORED), "count"),
        Field("found by LAMA", lambda part: _count(asked, parts[part] & FOUND), "count"),
    ]
    return table(
        [part for part, where in parts.items() if _count(asked, where)],
        [Field[str]("times stated in the text", str), *fields],
        id="exposure",
        title="What it was taught, what it stored, what LAMA finds",
        note="Stored: the model gives it back in a text that it read. Guessable: the commonest "
        "object of its relation, or one that goes with a word of the subject's name.",
    )


def _count(asked: DataFrame, where: Expr) -> int:
    return len(asked.filter(where))
