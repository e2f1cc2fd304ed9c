"""What a report says of several languages: tables, heat maps, sentences. Knows numbers by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from sonde.analysis.readings import Asked, Reading
from sonde.analysis.readings.languages.numbers import (
    ACCURACY,
    AGREEMENT,
    LESS,
    METRICS,
    ONLY,
    RANKC,
    Couple,
    Shared,
    at,
)
from sonde.core.reports import Estimate, Estimates, Figure, Metric, Table
from sonde.core.words import in_points, told_apart, written
from sonde.metrics.estimates import FACTS, RELATIONS
from sonde.reporting.build.figures import heat
from sonde.reporting.build.parts import shown
from sonde.reporting.build.tables import Field, table

NAMED = 3
"""Pairs of languages that a finding names."""

FEW = 6
"""Rows of a table that belongs to the first screen."""

DASH = "–"


def read(asked: Asked) -> Reading | None:
    """Compare every language with every other."""
    facts = Shared(asked)
    if len(facts.languages) < 2:
        return None
    estimates = dict(facts.estimates())
    couples = list(combinations(facts.languages, 2))
    return Reading(
        metrics=METRICS,
        estimates=estimates,
        counts=facts.counts(),
        tables=shown(_by_language(facts, estimates), _by_couple(facts, couples, estimates)),
        figures=shown(*_figures(facts.languages, estimates)),
        findings=shown(*_findings(couples, estimates)),
        notes=_notes(facts),
    )


def _by_language(facts: Shared, estimates: Estimates) -> Table:
    def accuracy(over: str) -> Field[str]:
        words = over.removeprefix("mean_").replace("_", " ")
        return Field(
            f"accuracy {words}",
            lambda language: estimates[ACCURACY.at(f"{language}.{over}")],
            "percent",
            ACCURACY.sentence,
        )

    fields: list[Field[str]] = [
        Field("language", lambda language: language),
        accuracy(RELATIONS),
        accuracy(FACTS),
        Field("facts", lambda language: estimates[ACCURACY.at(f"{language}.{FACTS}")].n, "count"),
    ]
    made = table(facts.languages, fields, id="by-language", title="By language")
    return replace(made, leads=len(facts.languages) <= FEW)


def _by_couple(facts: Shared, couples: Sequence[Couple], estimates: Estimates) -> Table:
    def number(metric: Metric, title: str = "", turned: bool = False) -> Field[Couple]:
        def cell(couple: Couple) -> Estimate:
            return estimates[metric.at(f"{at(couple[::-1] if turned else couple)}.{FACTS}")]

        return Field(title or metric.label, cell, metric.unit, metric.help)

    fields: list[Field[Couple]] = [
        Field("languages", lambda couple: f" {DASH} ".join(couple)),
        number(RANKC),
        number(AGREEMENT),
        number(ONLY, "1st only"),
        number(ONLY, "2nd only", turned=True),
        number(LESS),
        Field("in both", lambda couple: int(facts.both(couple).sum()), "count", detail=True),
        Field(
            "other candidates",
            lambda couple: facts.ranked[couple].other,
            "count",
            "facts left out of RankC: their candidates are not the same things",
            detail=True,
        ),
    ]
    made = table(
        couples,
        fields,
        id="by-two-languages",
        title="Every two languages",
        note="Of the facts that were asked in both. 1st only, 2nd only: known in that language and "
        "not in the other. Differences hold together (Bonferroni).",
    )
    return replace(made, leads=len(couples) <= FEW)


def _figures(languages: Sequence[str], estimates: Estimates) -> Iterator[Figure]:
    def alike(metric: Metric, row: str, column: str) -> float | None:
        if row == column:
            return 1.0
        names = (metric.at(f"{at(c)}.{FACTS}") for c in ((row, column), (column, row)))
        return next((estimates[name].value for name in names if name in estimates), None)

    ranked = any(n.startswith(RANKC.id) and e.value is not None for n, e in estimates.items())
    metric = RANKC if ranked else AGREEMENT
    yield heat(
        languages,
        languages,
        [[alike(metric, row, column) for column in languages] for row in languages],
        id="languages-alike",
        title=f"{metric.label} of every two languages",
        unit=metric.unit,
        note=f"{metric.sentence[:1].upper()}{metric.sentence[1:]}.",
    )
    yield heat(
        languages,
        languages,
        [
            [None if a == b else estimates[ONLY.at(f"{at((a, b))}.{FACTS}")] for b in languages]
            for a in languages
        ],
        id="known-in-one-language",
        title="Known in the language of the row and not in that of the column",
        note="Share of the facts that were asked in both.",
    )


def _findings(couples: Sequence[Couple], estimates: Estimates) -> Iterator[str]:
    if len(couples) == 1:
        yield from _one_couple(couples[0], estimates)
    apart = {couple: estimates[LESS.at(f"{at(couple)}.{FACTS}")] for couple in couples}
    told = [couple for couple in couples if told_apart(apart[couple])]
    told.sort(key=lambda couple: -abs(apart[couple].value or 0.0))
    parts = [
        f"in {first} than in {second} ({in_points(apart[couple])})"
        for couple in told[:NAMED]
        for first, second in [couple if (apart[couple].value or 0.0) > 0 else couple[::-1]]
    ]
    if parts:
        more = f", and so for {len(told) - NAMED} other pairs" if len(told) > NAMED else ""
        yield f"Clearly more facts are right {', '.join(parts)}{more}."
    elif any(difference.value is not None for difference in apart.values()):
        yield "No two languages are told apart by how many facts are right."


def _one_couple(couple: Couple, estimates: Estimates) -> Iterator[str]:
    """What is said of two languages where there are no others."""
    rankc, same = (estimates[m.at(f"{at(couple)}.{FACTS}")] for m in (RANKC, AGREEMENT))
    only = [estimates[ONLY.at(f"{at(c)}.{FACTS}")] for c in (couple, couple[::-1])]
    if rankc.value is not None:
        yield f"RankC of {couple[0]} and {couple[1]} is {written(rankc)}, over {rankc.n:,} facts."
    if same.value is not None:
        shares = [f"{written(e, '.1%')} in {c} only" for e, c in zip(only, couple, strict=True)]
        yield (
            f"First answers name the same thing for {written(same, '.1%')} of {same.n:,} facts; "
            f"known are {' and '.join(shares)}."
        )


def _notes(facts: Shared) -> tuple[str, ...]:
    if all(np.isnan(ranked.values).all() for ranked in facts.ranked.values()):
        return ("RankC was not measured: no two languages rank the same candidates.",)
    return (
        "RankC: Σ w_j · |first j of one ∩ first j of the other| / j over the ranks j of N "
        "candidates, w_j = e^(N−j) / Σ e^(N−k); the candidates that both languages have and rank, "
        "by the scores that answers are chosen by, the mean of a fact's prompts. Facts that name "
        "other candidates in the two languages are left out of it and counted, as are those with "
        "fewer than two.",
    )
