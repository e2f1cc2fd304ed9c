"""LAMA's numbers and report: estimates, tables and the figure. Knows outcomes, no prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sonde.core.facts import Dataset, Relation
from sonde.core.reports import Estimate, Estimates, Headline, Metric, Report, Table
from sonde.core.words import against_control, counted
from sonde.metrics.estimates import FACTS, RELATIONS, ByFact
from sonde.former.lama.judge import Outcomes, Shown
from sonde.reporting.build.figures import dots_by_relation
from sonde.reporting.build.parts import COMMONEST, above_on_relations, headline, shown
from sonde.reporting.build.tables import Field, browse, by_place, by_relation, titled
from sonde.stats.intervals import Floats

P1 = Metric("p_at_1", "P@1", "percent", "share of facts whose first answer is right")
PK = Metric("p_at_{k}", "P@{k}", "percent", "share of facts right among the first {k} answers")
MRR = Metric("mrr", "MRR", "number", "mean of 1/rank of the correct answer")
MAJORITY, ABOVE = P1.controlled()
K_MAJORITY, K_ABOVE = PK.controlled("always answering the {k} most common objects")
OWN_MAJORITY = replace(
    MAJORITY, sentence="P@1 of always choosing the commonest of a fact's own options"
)
UHN = Metric(
    "uhn.p_at_1",
    "UHN P@1",
    "percent",
    "P@1 over the facts that UHN keeps: the name does not give the answer away",
)
UHN_MRR = Metric("uhn.mrr", "UHN MRR", "number", "MRR over the facts that UHN keeps")

METRICS = (P1, PK, MRR, MAJORITY, ABOVE, K_MAJORITY, K_ABOVE, UHN, UHN_MRR)


KINDS = ("1-1", "N-1", "N-M")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How the facts were put, as far as a report says it."""

    uhn: str
    filled: bool
    capitals: bool = False
    punctuation: bool = False
    own: bool = False


def build_report(dataset: Dataset, outcomes: Outcomes, *, k: int, asking: Asking) -> Report:
    """Everything LAMA reports about some outcomes."""
    relations, top_k = dataset.asked_relations(), PK.of(k=k)
    majority = OWN_MAJORITY if asking.own else MAJORITY
    estimates = _estimates(relations, outcomes, k, dataset.selection.seed)
    columns = [P1, majority, ABOVE, UHN.detail(), top_k.detail(), MRR.detail()]
    return Report(
        title=f"LAMA on {dataset.name}",
        summary=_summary(estimates, outcomes, asking.own),
        metrics=(
            *(P1, top_k, MRR, majority, ABOVE),
            *(K_MAJORITY.of(k=k), K_ABOVE.of(k=k), UHN, UHN_MRR),
        ),
        estimates=estimates,
        counts=_counts(dataset, outcomes),
        headlines=_headlines(k, asking.own),
        tables=shown(
            _kind_table(relations, estimates, columns),
            _relation_table(relations, estimates, outcomes.facts.majority, columns),
            _fact_table(relations, outcomes),
        ),
        figures=shown(
            dots_by_relation(
                estimates,
                relations,
                {"model": P1, "majority control": MAJORITY},
                id="p-at-1-by-relation",
                title="P@1 of every relation beside the majority control",
                axis="P@1",
            ),
        ),
        findings=shown(
            against_control("Overall P@1", estimates[ABOVE.at(RELATIONS)]),
            above_on_relations(estimates, ABOVE, relations),
        ),
        notes=_notes(asking),
        judged=outcomes.judged,
    )


def _estimates(
    relations: Sequence[Relation], outcomes: Outcomes, k: int, seed: int
) -> dict[str, Estimate]:
    facts, pair = outcomes.facts, outcomes.judged.grid.pair
    # the facts of one subject share a prompt
    by_fact = ByFact.of(relations, facts.relations[pair], facts.subjects[pair], seed)
    estimates: dict[str, Estimate] = {}
    numbers = {metric.id: (values, minus) for metric, values, minus in _values(outcomes, k)}
    for id, resampled in by_fact.together(numbers).items():
        estimates |= resampled.means(id, by_fact.ids)
        for kind in KINDS:
            only = {r.id for r in relations if r.kind == kind}
            estimates[f"{id}.kind.{kind}"] = resampled.mean_over_relations(only)
    return estimates


def _values(outcomes: Outcomes, k: int) -> Iterator[tuple[Metric, Floats, Floats | None]]:
    """One value for each fact that could be answered, and what is taken from it, by metric."""
    judged = outcomes.judged
    assert judged.rank is not None and judged.guessable is not None
    right, reciprocal = judged.grid.right.astype(np.float64), 1 / judged.rank
    among_k = (judged.rank <= k).astype(np.float64)
    rank = outcomes.facts.majority_rank[judged.grid.pair]
    majority = (rank == 1).astype(np.float64)
    majority_k = ((rank > 0) & (rank <= k)).astype(np.float64)
    yield P1, right, None
    yield PK.of(k=k), among_k, None
    yield K_MAJORITY.of(k=k), majority_k, None
    yield K_ABOVE.of(k=k), among_k, majority_k
    yield MRR, reciprocal, None
    yield MAJORITY, majority, None
    yield ABOVE, right, majority
    yield UHN, np.where(judged.guessable, np.nan, right), None
    yield UHN_MRR, np.where(judged.guessable, np.nan, reciprocal), None


def _summary(estimates: Estimates, outcomes: Outcomes, own: bool) -> str:
    value, control = estimates[P1.at(RELATIONS)].value, estimates[MAJORITY.at(RELATIONS)].value
    if value is None or control is None:
        return "No fact could be scored: no object is a single token of this model's vocabulary."
    grid = outcomes.judged.grid
    relations, facts = len(np.unique(grid.relations[grid.pair])), len(grid)
    over = f", averaged over {relations} relations" if relations > 1 else ""
    always = (
        "choosing the commonest of a fact's own options"
        if own
        else "answering the commonest object"
    )
    asked = counted(facts, "fact", "facts")
    skipped = ""
    if outcomes.asked > facts:
        skipped = (
            f"{outcomes.asked - facts:,} of {counted(outcomes.asked, 'fact is', 'facts are')} not "
            "scored, because no correct object is one token of the model (--answer score includes "
            "them). "
        )
    return (
        f"{skipped}The first answer is right for {value:.1%} of facts{over} ({asked}); "
        f"always {always} gives {control:.1%}."
    )


def _counts(dataset: Dataset, outcomes: Outcomes) -> dict[str, int]:
    answered, guessable = len(outcomes.judged.grid), outcomes.judged.guessable
    return {
        "asked": outcomes.asked,
        "scored": answered,
        "skipped_not_one_token": outcomes.asked - answered,
        "ties": int(outcomes.tied.sum()),
        "uhn_dropped": 0 if guessable is None else int(guessable.sum()),
    }


def _headlines(k: int, own: bool) -> tuple[Headline, ...]:
    control = "always the commonest of a fact's own options" if own else COMMONEST
    return (
        headline(P1, RELATIONS, control=MAJORITY, above=ABOVE, control_label=control),
        headline(P1, FACTS, control=MAJORITY, above=ABOVE, control_label=control),
        headline(UHN.named("P@1 on UHN"), RELATIONS),
        headline(
            PK.of(k=k),
            RELATIONS,
            control=K_MAJORITY.of(k=k),
            above=K_ABOVE.of(k=k),
            control_label=f"always the {k} most common {'options' if own else 'objects'}",
        ),
        headline(MRR, RELATIONS),
    )


def _kind_table(
    relations: Sequence[Relation], estimates: Estimates, columns: Sequence[Metric]
) -> Table:
    typed = any(relation.kind for relation in relations)
    kinds = {kind: f"kind.{kind}" for kind in KINDS} if typed else {}
    return by_place(
        estimates,
        kinds | {"all relations": RELATIONS, "all facts": FACTS},
        columns,
        head="type" if typed else "mean",
        id="by-type",
        title="By relation type" if typed else "Over relations and over facts",
        note="Types and 'all relations' average over relations, 'all facts' over facts."
        if typed
        else "",
    )


def _relation_table(
    relations: Sequence[Relation],
    estimates: Estimates,
    majority: Mapping[str, str],
    columns: Sequence[Metric],
) -> Table:
    typed = any(relation.kind for relation in relations)
    kind = Field[Relation]("type", lambda r: r.kind or "", detail=True)
    commonest = Field[Relation](
        "commonest object",
        lambda r: majority.get(r.id, ""),
        help="what the majority control answers",
        detail=True,
    )
    first, last = [kind] if typed else [], [commonest] if majority else []
    return by_relation(estimates, relations, [*first, *columns, *last])


def _fact_table(relations: Sequence[Relation], outcomes: Outcomes) -> Table:
    titles = {r.id: titled(r) for r in relations}
    fields: list[Field[Shown]] = [
        Field("relation", lambda s: titles[s.relation]),
        Field("subject", lambda s: s.subject),
        Field("prompt", lambda s: s.prompt),
        Field(
            "correct",
            lambda s: ", ".join(s.objects),
            help="every object that counts as correct",
        ),
        Field("top answers", _top_answers, help="the likeliest answers with their probability"),
        Field(
            "probability",
            lambda s: s.probability,
            "percent",
            "of all correct names together",
        ),
        Field("rank", lambda s: s.rank, "count", "of the best correct name; 1 is best"),
        Field("verdict", _verdict, "verdict"),
    ]
    return browse(outcomes.shown, fields, id="facts", title="Facts", total=outcomes.asked)


def _top_answers(shown: Shown) -> str:
    return ", ".join(f"{name} ({share:.1%})" for name, share in shown.top)


def _verdict(shown: Shown) -> str:
    rank = shown.rank
    return "skipped" if rank is None else "right" if rank == 1 else "wrong"


def _notes(asking: Asking) -> tuple[str, ...]:
    scored = "scored every object of the relation as an option"
    if asking.own:
        scored = "scored the options that each fact names"
    way = "filled a single mask" if asking.filled else scored
    if asking.filled and asking.own:
        way += (
            "; of the options that each fact names, the likeliest is its answer. Only options of "
            "one token can be filled in"
        )
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
