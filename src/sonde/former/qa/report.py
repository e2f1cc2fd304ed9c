"""The numbers and the report of `qa`. Knows what lists of answers hold, no prompts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from sonde.core.facts import Dataset, slot_values
from sonde.core.reports import Estimate, Estimates, Headline, Metric, Report, Table
from sonde.core.words import against_control, counted
from sonde.metrics.abstention import ABSTENTION
from sonde.metrics.estimates import RELATIONS, ByFact, Resampled
from sonde.metrics.judged import around
from sonde.metrics.verdicts import Bools, Floats
from sonde.former.qa.judge import Members, Outcomes
from sonde.prompting.few_shot import question
from sonde.reporting.build.figures import dots_by_relation
from sonde.reporting.build.parts import (
    Written,
    above_on_relations,
    abstentions,
    headline,
    nothing_said,
    shown,
    unconcluded,
)
from sonde.reporting.build.tables import Field, browse, by_place, by_relation, drawn, titled
from sonde.reporting.catalogue import shares

PRECISION, RECALL, F1, WHOLE, ANY = shares(
    ("precision", "precision", "mean share of the named things that are right", "higher"),
    ("recall", "recall", "mean share of the right things that are named", "higher"),
    ("f1", "F1", "mean of each fact's F1: the harmonic mean of precision and recall", "higher"),
    (
        "exact_set",
        "whole set",
        "share of facts with every right answer and no other",
        "higher",
    ),
    ("any_right", "any", "share of facts with a right answer in the list", "higher"),
)
F1_OF_MEANS = Metric(
    "f1_of_means",
    "F1 of means",
    "percent",
    "harmonic mean of mean precision and mean recall, as KAMEL's tables have it",
)
MAJORITY, ABOVE = F1.controlled(paired="paired by fact")
MEANS = (F1, PRECISION, RECALL, WHOLE, ANY, MAJORITY, ABOVE)
METRICS = (*MEANS, F1_OF_MEANS, *ABSTENTION)

SIZES = {"1": (1, 1), "2": (2, 2), "3": (3, 3), "4-5": (4, 5), "6+": (6, np.inf)}
"""Facts by how many right answers they have."""

SHOWN = 20_000
ALIKE = 5e-4
"""Shares that read alike."""

MANY = 0.2
"""The share from which answers that are not as they should be are worth a sentence."""


def build_report(
    dataset: Dataset, outcomes: Outcomes, *, notes: tuple[str, ...], attempts: Sequence[str]
) -> Report:
    """Everything that is reported about some lists; `attempts`: settings to try if all is empty."""
    seed, relations = dataset.selection.seed, outcomes.relations
    silent, answers = abstentions(outcomes.judged, seed), _written(outcomes)
    estimates = {**_estimates(outcomes, seed), **silent.estimates}
    heads = (
        headline(F1, RELATIONS, control=MAJORITY, above=ABOVE),
        headline(PRECISION, RELATIONS),
        headline(RECALL, RELATIONS),
        headline(F1_OF_MEANS, RELATIONS),
        headline(WHOLE, RELATIONS),
        headline(ANY.named("At least one right answer"), RELATIONS),
    )
    told = [h for h in heads if h in (heads[0], heads[-1]) or _differ(estimates, h, heads[0])]
    empty = answers.mostly_empty
    concluded = () if empty else (
        against_control("F1", estimates[ABOVE.at(RELATIONS)]),
        above_on_relations(estimates, ABOVE, relations),
        *_findings(outcomes),
    )  # fmt: skip
    return Report(
        title=f"Questions with lists of answers on {dataset.name}",
        summary=_summary(estimates, outcomes, answers),
        metrics=METRICS,
        estimates=estimates,
        counts={**_counts(dataset, outcomes), **silent.counts},
        headlines=(*(unconcluded(h) if empty else h for h in told), *silent.headlines),
        tables=shown(
            *_tables(estimates, outcomes),
            *silent.tables,
            _fact_table(outcomes, seed),
        ),
        figures=shown(
            dots_by_relation(
                estimates,
                relations,
                {"model": F1, "majority control": MAJORITY},
                id="f1-by-relation",
                axis="F1",
                title="F1 of every relation beside the majority control",
            ),
        ),
        findings=shown(nothing_said([answers], attempts), *concluded, *silent.findings),
        notes=notes,
        judged=outcomes.judged,
    )


def _differ(estimates: Estimates, one: Headline, other: Headline) -> bool:
    """Whether two headlines read differently: of single answers most numbers are the same."""
    numbers = [
        (estimate.value or 0.0, *estimate.ends)
        for estimate in (estimates[one.estimate], estimates[other.estimate])
    ]
    return any(abs(a - b) >= ALIKE for a, b in zip(*numbers, strict=True))


def _estimates(outcomes: Outcomes, seed: int) -> dict[str, Estimate]:
    """Over relations, over facts, of each relation, and by what the right answers are."""
    by_fact = ByFact.of(outcomes.relations, outcomes.relation, outcomes.subject, seed)
    numbers = _values(outcomes)
    together = by_fact.together({metric.id: columns for metric, columns in numbers.items()})
    parts = {place: _within(numbers, among) for place, among in _parts(outcomes)}
    estimates: dict[str, Estimate] = {}
    for metric in MEANS:
        estimates |= together[metric.id].means(metric.id, by_fact.ids)
        for place, columns in parts.items():
            made_there = by_fact.resampled(*columns[metric])
            estimates[metric.at(place)] = made_there.mean_over_facts()
    precision, recall = together[PRECISION.id], together[RECALL.id]
    estimates[F1_OF_MEANS.at(RELATIONS)] = _f1_of_means(precision, recall)
    return estimates


Columns = dict[Metric, tuple[Floats, Floats | None]]


def _values(outcomes: Outcomes) -> Columns:
    """One value a fact for each metric, and what is taken from it."""
    members = outcomes.members
    f1 = np.array([each.f1 for each in members], dtype=np.float64)
    guessed = np.array([each.f1 for each in outcomes.guessed], dtype=np.float64)

    def column(values: Iterable[float]) -> tuple[Floats, None]:
        return np.array([*values], dtype=np.float64), None

    return {
        F1: (f1, None),
        PRECISION: column(each.precision for each in members),
        RECALL: column(each.recall for each in members),
        WHOLE: column(float(_whole(each)) for each in members),
        ANY: column(float(each.right > 0) for each in members),
        MAJORITY: (guessed, None),
        ABOVE: (f1, guessed),
    }


def _whole(members: Members) -> bool:
    return members.right == members.objects and not members.wrong


def _parts(outcomes: Outcomes) -> Iterator[tuple[str, Bools]]:
    """Facts by what their right answers are, and by how many there are; empty parts are none."""
    for kind, among in (("literal", outcomes.literal), ("entity", ~outcomes.literal)):
        if among.any():
            yield f"answers.{kind}", among
    for size, (least, most) in SIZES.items():
        among = (outcomes.objects >= least) & (outcomes.objects <= most)
        if among.any():
            yield f"objects.{size}", among


def _within(numbers: Columns, among: Bools) -> Columns:
    return {
        metric: (np.where(among, values, np.nan), minus)
        for metric, (values, minus) in numbers.items()
    }


def _f1_of_means(precision: Resampled, recall: Resampled) -> Estimate:
    """Both were drawn alike, so their harmonic mean can be taken draw by draw."""
    means = [each.mean_over_relations() for each in (precision, recall)]
    if any(mean.value is None for mean in means):
        return Estimate.not_measured()
    p, r = (
        np.mean([each.draws(name) for name in each.samples], axis=0) for each in (precision, recall)
    )
    draws = np.divide(2 * p * r, p + r, out=np.zeros_like(p), where=p + r > 0)
    low, high = (mean.value or 0.0 for mean in means)
    value = 2 * low * high / (low + high) if low + high else 0.0
    return around(value, draws, means[0].n)


def _written(outcomes: Outcomes) -> Written:
    said = outcomes.answers["said"]
    return Written(what="answers", empty=int((said == "").sum()), total=len(said))


def _summary(estimates: Estimates, outcomes: Outcomes, answers: Written) -> str:
    if answers.mostly_empty:
        return f"{answers.empty:,} of {answers.total:,} answers are empty."
    f1, control = (estimates[metric.at(RELATIONS)].value for metric in (F1, MAJORITY))
    if f1 is None or control is None:
        return "No question was answered."
    count = len(outcomes.relations)
    over = f", averaged over {count} relations" if count > 1 else ""
    return (
        f"F1 of the answers is {f1:.1%}{over} ({len(outcomes.facts):,} questions); always "
        f"answering the commonest object gives {control:.1%}."
    )


def _counts(dataset: Dataset, outcomes: Outcomes) -> dict[str, int]:
    members = outcomes.members
    return {
        "questions": len(outcomes.facts),
        "right_answers": sum(each.objects for each in members),
        "things_named": sum(each.right + each.wrong for each in members),
        "facts_with_several_answers": int((outcomes.objects > 1).sum()),
        "empty_answers": _written(outcomes).empty,
        "unfinished_answers": int((~outcomes.answers["finished"]).sum()),
        "relations_without_questions": len(dataset.asked_relations()) - len(outcomes.relations),
    }


def _tables(estimates: Estimates, outcomes: Outcomes) -> Iterator[Table | None]:
    columns = (F1, MAJORITY, ABOVE, PRECISION, RECALL, WHOLE.detail(), ANY.detail())
    yield by_relation(estimates, outcomes.relations, columns)
    labels = {"answers.literal": "numbers and dates", "answers.entity": "names of things"}
    labels |= {f"objects.{size}": f"right answers: {size}" for size in SIZES}
    there = {labels[place]: place for place, _ in _parts(outcomes)}
    yield by_place(
        estimates, there, columns, head="facts", id="by-answers", title="By the right answers",
        note="Means over facts.",
    ) if len(there) > 2 else None  # fmt: skip


def _fact_table(outcomes: Outcomes, seed: int) -> Table:
    chosen = drawn([fact.id for fact in outcomes.facts], seed, SHOWN)
    facts = [outcomes.facts[number] for number in chosen]
    owners = outcomes.relation[chosen].tolist()
    members = [outcomes.members[number] for number in chosen]
    fields: list[Field[int]] = [
        Field("relation", [titled(outcomes.relations[owner]) for owner in owners]),
        Field("subject", [fact.subject.name for fact in facts]),
        Field(
            "question",
            [
                question(outcomes.templates[owner], fact.subject.name, "qa", slot_values(fact))
                for owner, fact in zip(owners, facts, strict=True)
            ],
            help="what stands before it is not shown",
        ),
        Field("correct", ["; ".join(e.name for e in fact.objects) for fact in facts]),
        Field("answer", [text.strip() for text in outcomes.answers["text"][chosen]]),
        Field("right", [f"{m.right} of {m.objects}" for m in members], help="of the right ones"),
        Field("wrong", [m.wrong for m in members], "count", "things named that are not right"),
        Field("F1", [m.f1 for m in members], "percent"),
        Field(
            "verdict",
            outcomes.judged.verdicts().gather(chosen).replace("empty", "wrong").to_list(),
            "verdict",
            "right: one right answer is in the list",
        ),
    ]
    total = len(outcomes.facts)
    return browse(range(len(chosen)), fields, id="facts", title="Facts", total=total)


def _findings(outcomes: Outcomes) -> Iterator[str]:
    counts, total = outcomes.members, len(outcomes.facts)
    cut = int((~outcomes.answers["finished"]).sum())
    named, right = (sum(m.right + m.wrong for m in counts), sum(m.objects for m in counts))
    if right > total:
        yield (
            f"The answers name {counted(named, 'thing', 'things')}; {right:,} are right for these "
            f"{total:,} questions."
        )
    if cut > MANY * total:
        yield (
            f"{cut:,} of {total:,} answers did not end within the most tokens allowed: the model "
            "goes on instead of closing the list."
        )
