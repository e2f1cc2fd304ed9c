"""The card of a dataset as a report: what it holds, what it gives away, how much can be guessed.

    described relations → numbers → tables, figures and findings

Knows nothing of files, pages or where the dataset came from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite

import numpy as np

from sonde.cards import tables
from sonde.cards.alike import LEAST
from sonde.cards.guesses import FOLDS
from sonde.cards.numbers import (
    BAYES,
    DOUBLED,
    EASY,
    IN_NAME,
    MAJORITY,
    METRICS,
    PRIOR,
    PROMPTED,
    SEEN,
    numbers,
)
from sonde.cards.relations import Described, described
from sonde.core.errors import UsageError
from sonde.core.facts import Dataset, Selection
from sonde.core.reports import (
    Curves,
    Estimate,
    Estimates,
    Figure,
    Headline,
    Histogram,
    Metric,
    Report,
)
from sonde.core.train_test_overlap import TEST
from sonde.core.words import counted, listed, written
from sonde.reports.legacy import (
    RELATIONS,
    curve,
    headline,
    without_none,
)

RANKS = 20
"""Commonest objects whose share is drawn."""

WIDE = 100.0
"""From so many times the smallest number on, the powers of ten are drawn."""


def card(dataset: Dataset, *, split: str = TEST, alike: float = LEAST, seed: int = 0) -> Report:
    """The card of a whole dataset; `split` is the one that would be asked about.

    Texts are near-duplicates from the share `alike` of their character trigrams in common on.
    """
    if not 0 < alike <= 1:
        raise UsageError(f"alike must be above 0 and at most 1, not {alike}")
    selection = Selection(split=split, seed=seed)
    dataset = replace(dataset, selection=selection) if split == TEST else dataset.select(selection)
    relations = list(described(dataset, seed, alike))
    estimates = numbers(relations, seed)
    return Report(
        title=f"Data card: {dataset.name} {dataset.card.version}",
        summary=_summary(dataset, relations),
        estimates=estimates,
        counts={**dataset.notes, **_counts(relations)},
        headlines=tuple(_headlines(relations, estimates)),
        tables=without_none(
            tables.about(dataset.card, dataset.fingerprint, citation(dataset)),
            tables.contents(dataset),
            tables.splits(relations),
            tables.between_splits(relations),
            tables.languages(relations, estimates),
            tables.relation_tags(relations),
            tables.fact_tags(relations),
            tables.by_relations(relations),
            tables.answers(relations, estimates),
            tables.guessability(relations, estimates),
            tables.leaks(relations, estimates),
            *tables.lists(relations),
        ),
        figures=without_none(*_figures(relations)),
        findings=without_none(*_findings(relations, estimates, split)),
        notes=tuple(_notes(relations, split, alike)),
        metrics=METRICS,
    )


def citation(dataset: Dataset) -> str:
    """How to name the dataset so that others find exactly the same facts."""
    card = dataset.card
    sources = f" Sources: {'; '.join(card.sources)}." if card.sources else ""
    return f"{card.name}, version {card.version}, content {dataset.fingerprint}.{sources}"


def _summary(dataset: Dataset, relations: Sequence[Described]) -> str:
    sizes = sum((d.splits for d in relations), Counter())
    templates = sum(len(d.relation.templates) for d in relations)
    named = sorted({d.relation.language for d in relations} - {""})
    languages = f", in {listed(named)}" if named else ""
    split = ", ".join(f"{name} {size:,}" for name, size in sorted(sizes.items()))
    return (
        f"{counted(len(relations), 'relation', 'relations')}, "
        f"{counted(templates, 'template', 'templates')}, "
        f"{counted(sizes.total(), 'fact', 'facts')} ({split}){languages}. "
        f"Licence: {dataset.card.licence}."
    )


def _counts(relations: Sequence[Described]) -> dict[str, int]:
    return {
        "leaking_facts": sum(len(d.leaks) for d in relations),
        "telling_templates": sum(len({t for t, _, _ in d.given_away}) for d in relations),
        **{
            f"near_duplicate_{what}": sum(len(twins(d)) for d in relations)
            for what, twins in tables.TWINS.items()
        },
    }


def _headlines(relations: Sequence[Described], estimates: Estimates) -> Iterator[Headline]:
    prior = (PRIOR, "Class prior guesses right")
    commonest = (MAJORITY, f"The {_commonest(relations)} is right")
    for metric, label in (
        (BAYES, "Naive Bayes guesses right"),
        prior if _trained(estimates) else commonest,
        (IN_NAME, "Object in the subject's name"),
        (SEEN, "Facts also in train or dev"),
        (PROMPTED, "Answer in the fact's own prompt"),
        (DOUBLED, "Facts with a near-duplicate"),
    ):
        if estimates[metric.at(RELATIONS)].value is not None:
            yield headline(metric.named(label), RELATIONS)


def _commonest(relations: Sequence[Described]) -> str:
    """What always the same guess is, of the relation's objects or of each fact's options."""
    own = any(d.spread.own for d in relations)
    return "commonest of a fact's own options" if own else "commonest object"


def _trained(estimates: Estimates) -> bool:
    """Whether some relation has training facts, so that there is a class prior."""
    return estimates[PRIOR.at(RELATIONS)].value is not None


def _figures(relations: Sequence[Described]) -> Iterator[Figure]:
    asked = [d for d in relations if d.subjects]
    if not asked:
        return
    yield _covered(asked)
    values: dict[str, list[float]] = {}
    for d in asked:
        for name, own in d.numbers.items():
            values.setdefault(name, []).extend(own)
    for name, own in values.items():
        if finite := [value for value in own if isfinite(value)]:
            yield histogram(name, finite)


def _covered(asked: Sequence[Described]) -> Curves:
    """What share the commonest answers have: on average, and where it is highest and lowest."""
    shares = {d.relation.id: d.spread.covered(RANKS) for d in asked}
    ends = sorted(asked, key=lambda d: (shares[d.relation.id][0], d.relation.id))
    rows = [own + [own[-1]] * (RANKS - len(own)) for own in shares.values()]
    lines = {"mean over relations": [float(value) for value in np.mean(rows, axis=0)]}
    for d in dict.fromkeys((ends[-1], ends[0])) if len(asked) > 1 else ():
        lines[d.relation.title] = shares[d.relation.id]
    return Curves(
        id="answers",
        title="How many answers a few cover",
        x_axis="commonest answers",
        y_axis="share of correct answers",
        x_kind="number",
        curves=tuple(
            curve(name, [(float(k), _value(y)) for k, y in enumerate(own, 1)])
            for name, own in lines.items()
        ),
        note="Of all correct answers of the facts asked about. Beside the mean, the relation "
        "whose commonest answer has the largest share, and the one where it has the smallest.",
    )


def _value(value: float) -> Estimate:
    return Estimate(value=value, low=None, high=None, n=1)


def histogram(name: str, values: Sequence[float]) -> Histogram:
    """How a number of the facts is spread; by powers of ten where it spans several."""
    data = np.asarray(values, dtype=np.float64)
    tens = data.min() > 0 and data.max() >= WIDE * data.min()
    drawn = np.log10(data) if tens else data
    low, high = float(drawn.min()), float(drawn.max())
    edges = np.linspace(low, high if high > low else low + 1.0, RANKS + 1)
    note = f"{len(data):,} facts from {data.min():,.6g} to {data.max():,.6g}."
    return Histogram(
        id=f"number-{name}",
        title=f"Facts by {name}",
        kind="number",
        axis=f"{name}, as a power of ten" if tens else name,
        edges=tuple(edges.tolist()),
        counts=tuple(np.histogram(drawn, edges)[0].tolist()),
        marks=(("median", float(np.median(drawn))),),
        note=note,
    )


def _findings(relations: Sequence[Described], estimates: Estimates, split: str) -> Iterator[str]:
    mean = {m: estimates[m.at(RELATIONS)] for m in (BAYES, PRIOR, MAJORITY, IN_NAME, SEEN, EASY)}
    if mean[MAJORITY].value is None:
        yield f"No fact stands in split {split!r}: what can be guessed was not measured."
        return
    counts = _counts(relations)
    known = _trained(estimates)
    commonest = _commonest(relations)
    always = f"always naming the {commonest}"
    if known:
        same = "always the same answer" if commonest == "commonest object" else f"the {commonest}"
        always = f"the class prior, {same},"
    told = f"naive Bayes is right for {written(mean[BAYES], '.1%')} of facts"
    if mean[BAYES].value is None:
        told = "naive Bayes guesses nothing, for there is no other fact to count"
    yield (
        f"By the words of the subject's name alone, {told}; {always} is right for "
        f"{written(mean[PRIOR if known else MAJORITY], '.1%')} (means over relations). Only above "
        "that a score tells of knowledge."
    )
    yield _where("naive Bayes is right", BAYES, relations, estimates)
    if counts["leaking_facts"]:
        facts = counted(
            counts["leaking_facts"], "fact of train or dev has", "facts of train or dev have"
        )
        yield f"{facts} the names of a test fact: whoever trains on them has seen the answer."
    yield _where("the object's name stands in the subject's", IN_NAME, relations, estimates)
    if counts["telling_templates"]:
        told = counted(counts["telling_templates"], "template holds", "templates hold")
        yield f"{told} an answer of the relation."
    twins = {what: counts[f"near_duplicate_{what}"] for what in tables.TWINS}
    if any(twins.values()):
        told = ", ".join(f"{number:,} {what}" for what, number in twins.items() if number)
        yield f"Near-duplicates: {told} have another of the relation that is nearly the same."


def _where(what: str, metric: Metric, relations: Sequence[Described], estimates: Estimates) -> str:
    """The relations in which something holds for more than half of the facts."""
    values = {
        d.relation.title: estimates[metric.at(f"relation.{d.relation.id}")] for d in relations
    }
    high = [(e.value or 0.0, name) for name, e in values.items() if (e.value or 0.0) > 0.5]
    names = [f"{name} ({value:.0%})" for value, name in sorted(high, reverse=True)]
    if not names:
        return ""
    share = counted(len(names), "relation", "relations")
    return f"For more than half of the facts of {share} {what}: {listed(names, 5)}."


def _notes(relations: Sequence[Described], split: str, least: float) -> Iterator[str]:
    folded = [d.relation.title for d in relations if d.subjects and not d.guesses.counted]
    yield (
        f"Facts asked about are those of split {split!r}. Class prior and naive Bayes are counted "
        "on the split 'train' without facts that leak, exactly as the controls of these names."
    )
    if any(d.spread.own for d in relations):
        yield "Where all facts of a relation name wrong objects, guesses choose among their own."
    if folded:
        everywhere = len(folded) == len(relations)
        whose = "no relation has any" if everywhere else f"there are none of {listed(folded)}"
        yield (
            f"Without training facts ({whose}), naive Bayes is counted on the facts themselves: "
            f"subjects in {FOLDS} parts, each guessed by counts of the others; there is no class "
            "prior."
        )
    yield (
        "Near-duplicates: texts are folded to lower-case words without punctuation; two are alike "
        f"where at least {least:.0%} of all character trigrams of both are in both and their "
        "numbers, Roman ones too, are the same. Facts: of one relation, with an object of the same "
        "name and subjects of different identifiers; templates: with subject and answer in the "
        "same order."
    )
    yield (
        "A fact leaks where a name of its subject and a name of its object are those of a test "
        "fact of the relation. A template holds an answer where a name of any object of the "
        "relation stands in it as words."
    )
    yield (
        "Intervals are 95 %: of facts like these, by a bootstrap over subjects within relations. "
        "Entropy and sizes describe the set as it is and have none."
    )
