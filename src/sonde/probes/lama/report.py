"""LAMA's report: estimates by name, the tables and the figure. Knows outcomes, no prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sonde.core.facts import Dataset, Relation
from sonde.core.reports import Cell, Column, DotPlot, Estimate, Headline, Report, Series, Table
from sonde.core.words import above_zero, against_control
from sonde.metrics.estimates import Resampled, Sample
from sonde.probes.lama.tally import Columns, Outcomes, Shown
from sonde.stats.intervals import Floats

KINDS = ("1-1", "N-1", "N-M")
CONTROL = "control.majority.p_at_1"
ABOVE = "above_control.p_at_1"


Value = Callable[[Columns], Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How the facts were put, as far as a report says it."""

    uhn: str
    filled: bool
    capitals: bool = False
    punctuation: bool = False


def build_report(dataset: Dataset, outcomes: Outcomes, *, k: int, asking: Asking) -> Report:
    """Everything LAMA reports about some outcomes."""
    relations, scored = dataset.asked_relations(), outcomes.scored()
    estimates = _estimates(relations, _metrics(scored, k), dataset.selection.seed)
    return Report(
        title=f"LAMA on {dataset.name}",
        summary=_summary(estimates, scored),
        estimates=estimates,
        counts=_counts(dataset, outcomes, scored),
        headlines=_headlines(k),
        tables=(
            _kind_table(estimates, k),
            _relation_table(relations, estimates, outcomes.majority, k),
            _fact_table(relations, outcomes),
        ),
        figures=(_figure(relations, estimates),),
        findings=_findings(relations, estimates),
        notes=_notes(asking),
    )


def _metrics(scored: Mapping[str, Columns], k: int) -> Iterator[tuple[str, dict[str, Sample]]]:
    """One value per fact for every metric, grouped by relation; one metric at a time."""
    unguessable = {r: columns.where(~columns.guessable) for r, columns in scored.items()}
    yield "p_at_1", _samples(scored, _right)
    yield f"p_at_{k}", _samples(scored, lambda c: (c.ranks <= k).astype(np.float64))
    yield "mrr", _samples(scored, _reciprocal)
    yield CONTROL, _samples(scored, _by_majority)
    yield ABOVE, _samples(scored, _right, _by_majority)
    yield "uhn.p_at_1", _samples(unguessable, _right)
    yield "uhn.mrr", _samples(unguessable, _reciprocal)


def _right(columns: Columns) -> Floats:
    return np.asarray(columns.ranks == 1, dtype=np.float64)


def _reciprocal(columns: Columns) -> Floats:
    return np.asarray(1 / columns.ranks, dtype=np.float64)


def _by_majority(columns: Columns) -> Floats:
    return columns.by_majority.astype(np.float64)


def _samples(
    groups: Mapping[str, Columns], value: Value, minus: Value | None = None
) -> dict[str, Sample]:
    """Values by relation; the facts of one subject share a prompt and so make a cluster."""
    return {
        relation: Sample(
            values=value(columns),
            clusters=columns.clusters,
            minus=None if minus is None else minus(columns),
        )
        for relation, columns in groups.items()
    }


def _estimates(
    relations: Sequence[Relation],
    metrics: Iterable[tuple[str, Mapping[str, Sample]]],
    seed: int,
) -> dict[str, Estimate]:
    estimates = {}
    for metric, samples in metrics:
        resampled = Resampled(samples, seed)
        estimates[f"{metric}.mean_over_relations"] = resampled.mean_over_relations()
        estimates[f"{metric}.mean_over_facts"] = resampled.mean_over_facts()
        for kind in KINDS:
            only = {r.id for r in relations if r.kind == kind}
            estimates[f"{metric}.kind.{kind}"] = resampled.mean_over_relations(only)
        for relation in relations:
            estimates[f"{metric}.relation.{relation.id}"] = resampled.relation(relation.id)
    return estimates


def _summary(estimates: Mapping[str, Estimate], scored: Mapping[str, Columns]) -> str:
    value = estimates["p_at_1.mean_over_relations"].value
    control = estimates[f"{CONTROL}.mean_over_relations"].value
    if value is None or control is None:
        return "No fact could be scored: no object is a single token of this model's vocabulary."
    over = f", averaged over {len(scored)} relations" if len(scored) > 1 else ""
    facts = sum(map(len, scored.values()))
    return (
        f"The first answer is right for {value:.1%} of facts{over} ({facts:,} facts); "
        f"always answering the commonest object gives {control:.1%}."
    )


def _counts(dataset: Dataset, outcomes: Outcomes, scored: Mapping[str, Columns]) -> dict[str, int]:
    answered = sum(map(len, scored.values()))
    return {
        **dataset.notes,
        "asked": outcomes.asked,
        "scored": answered,
        "skipped_not_one_token": outcomes.asked - answered,
        "ties": sum(int(columns.tied.sum()) for columns in scored.values()),
        "uhn_dropped": sum(int(columns.guessable.sum()) for columns in scored.values()),
    }


def _headlines(k: int) -> tuple[Headline, ...]:
    over = "mean_over_relations"
    first = Headline(
        label="P@1, mean over relations",
        estimate=f"p_at_1.{over}",
        control=f"{CONTROL}.{over}",
        control_label="always the commonest object",
        difference=f"{ABOVE}.{over}",
    )
    facts = Headline(
        label="P@1, mean over facts",
        estimate="p_at_1.mean_over_facts",
        control=f"{CONTROL}.mean_over_facts",
        control_label="always the commonest object",
        difference=f"{ABOVE}.mean_over_facts",
    )
    return (
        first,
        facts,
        Headline(label="P@1 on UHN, mean over relations", estimate=f"uhn.p_at_1.{over}"),
        Headline(label=f"P@{k}, mean over relations", estimate=f"p_at_{k}.{over}"),
        Headline(label="MRR, mean over relations", estimate=f"mrr.{over}", kind="number"),
    )


def _metric_columns(k: int) -> tuple[Column, ...]:
    """The metrics as columns; those after the control's are for wide pages only."""
    return (
        Column(title="P@1", kind="percent", help="share of facts whose first answer is right"),
        Column(
            title="majority", kind="percent", help="P@1 of always answering the commonest object"
        ),
        Column(
            title="above", kind="percent", help="P@1 minus the majority control, paired by fact"
        ),
        Column(
            title="UHN P@1",
            kind="percent",
            help="P@1 where the name does not give it away",
            detail=True,
        ),
        Column(
            title=f"P@{k}",
            kind="percent",
            help=f"share of facts right among the first {k}",
            detail=True,
        ),
        Column(
            title="MRR", kind="number", help="mean of 1/rank of the correct answer", detail=True
        ),
    )


def _metric_cells(estimates: Mapping[str, Estimate], over: str, k: int) -> tuple[Estimate, ...]:
    names = ("p_at_1", CONTROL, ABOVE, "uhn.p_at_1", f"p_at_{k}", "mrr")
    return tuple(estimates[f"{name}.{over}"] for name in names)


def _kind_table(estimates: Mapping[str, Estimate], k: int) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (kind, *_metric_cells(estimates, f"kind.{kind}", k)) for kind in KINDS
    ]
    rows.append(("all relations", *_metric_cells(estimates, "mean_over_relations", k)))
    rows.append(("all facts", *_metric_cells(estimates, "mean_over_facts", k)))
    return Table(
        id="by-type",
        title="By relation type",
        columns=(Column(title="type"), *_metric_columns(k)),
        rows=tuple(rows),
        note="Types and 'all relations' average over relations, 'all facts' over facts.",
    )


def _relation_table(
    relations: Sequence[Relation],
    estimates: Mapping[str, Estimate],
    majority: Mapping[str, str],
    k: int,
) -> Table:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            r.id,
            r.label,
            r.kind,
            *_metric_cells(estimates, f"relation.{r.id}", k),
            majority.get(r.id, ""),
        )
        for r in relations
    )
    head = (
        Column(title="relation"),
        Column(title="label"),
        Column(title="type", detail=True),
    )
    tail = Column(title="commonest object", help="what the majority control answers", detail=True)
    return Table(
        id="by-relation",
        title="By relation",
        columns=(*head, *_metric_columns(k), tail),
        rows=rows,
    )


def _fact_table(relations: Sequence[Relation], outcomes: Outcomes) -> Table:
    labels = {r.id: r.label for r in relations}
    columns = (
        Column(title="relation"),
        Column(title="subject"),
        Column(title="prompt"),
        Column(title="correct", help="every object that counts as correct"),
        Column(title="top answers", help="the likeliest answers with their probability"),
        Column(title="probability", kind="percent", help="of all correct names together"),
        Column(title="rank", kind="count", help="of the best correct name; 1 is best"),
        Column(title="verdict", kind="verdict"),
    )
    return Table(
        id="facts",
        title="Facts",
        columns=columns,
        rows=tuple(_fact_row(shown, labels) for shown in outcomes.shown),
        note=_left_out(len(outcomes.shown), outcomes.asked),
        browsable=True,
    )


def _left_out(shown: int, asked: int) -> str:
    if shown == asked:
        return ""
    return f"{shown:,} of the {asked:,} facts, drawn by the seed; every number counts them all."


def _fact_row(shown: Shown, labels: Mapping[str, str]) -> tuple[Cell, ...]:
    fact, judgement = shown.fact, shown.judgement
    verdict = "skipped" if judgement.rank is None else "right" if judgement.rank == 1 else "wrong"
    return (
        f"{fact.relation} {labels[fact.relation]}",
        fact.subject.name,
        shown.prompt,
        ", ".join(entity.name for entity in fact.objects),
        ", ".join(f"{name} ({share:.1%})" for name, share in judgement.top[:3]),
        judgement.probability,
        judgement.rank,
        verdict,
    )


def _figure(relations: Sequence[Relation], estimates: Mapping[str, Estimate]) -> DotPlot:
    def value(relation: Relation) -> float:
        return estimates[f"p_at_1.relation.{relation.id}"].value or 0.0

    ordered = sorted(relations, key=lambda r: (-value(r), r.id))
    return DotPlot(
        id="p-at-1-by-relation",
        title="P@1 of every relation beside the majority control",
        axis="P@1",
        labels=tuple(f"{r.id} {r.label}" for r in ordered),
        series=(
            Series(
                name="model",
                values=tuple(estimates[f"p_at_1.relation.{r.id}"] for r in ordered),
            ),
            Series(
                name="majority control",
                values=tuple(estimates[f"{CONTROL}.relation.{r.id}"] for r in ordered),
            ),
        ),
        note="Whiskers are 95 % intervals.",
    )


def _findings(relations: Sequence[Relation], estimates: Mapping[str, Estimate]) -> tuple[str, ...]:
    above = estimates[f"{ABOVE}.mean_over_relations"]
    if above.value is None:
        return ()
    first = against_control("Overall P@1", above)
    rows = [(r, estimates[f"{ABOVE}.relation.{r.id}"]) for r in relations]
    measured = [(r, e) for r, e in rows if e.value is not None]
    not_above = [f"{r.id} {r.label}" for r, e in measured if not above_zero(e)]
    if not not_above:
        return (first, "The model is clearly above the control on every relation.")
    return (
        first,
        f"The model is clearly above the control on {len(measured) - len(not_above)} of "
        f"{len(measured)} relations. It is not on: {', '.join(not_above)}.",
    )


def _notes(asking: Asking) -> tuple[str, ...]:
    scored = "scored every object of the relation as an option"
    way = "filled a single mask" if asking.filled else scored
    asked = " or that the probed model guesses from a part of it" if asking.uhn == "names" else ""
    capitals = " Sentences begin with a capital." if asking.capitals else ""
    wanted = asking.punctuation and not asking.filled
    closing = " A causal model's closing punctuation is scored with the option." if wanted else ""
    return (
        f"The model {way}. Ties count as wrong.{capitals}{closing}",
        f"UHN leaves out facts whose object stands in the subject's name{asked}.",
        "Intervals are 95 %. Within one relation: Wilson's for a share, Newcombe's for the paired "
        "difference to the control, a bootstrap over subjects where a subject has several facts. "
        "Averages: a bootstrap over subjects within relations.",
    )
