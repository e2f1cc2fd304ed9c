"""Facts that change with time, of any probe: was a wrong answer right once, or only later?

An answer is right by its probe, or if another fact says so of the subject at the date asked about.
Else it is outdated if it was right at an earlier date, too new if it becomes right at a later one,
or wrong. Beside these shares: how they go from year to year, and the year at which most answers are
right. Knows judged prompts and facts, no probe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sonde.analysis.readings import Asked, Reading
from sonde.core.dates import holds, in_order
from sonde.core.fact_frames import DATES
from sonde.core.reports import Curves, Estimate, Estimates, Metric, Table
from sonde.core.words import listed, written
from sonde.metrics.estimates import FACTS, RELATIONS
from sonde.metrics.judged import Floats, Judged, around, stream
from sonde.prompting.matching import cleaned
from sonde.reporting.build.figures import curve
from sonde.reporting.build.tables import by_place
from sonde.stats.intervals import resampled_rates

if TYPE_CHECKING:
    from polars import DataFrame

RIGHT = Metric(
    "dates.right", "right", "percent", "share of answers that are right at the date asked about"
)
OUTDATED = Metric(
    "dates.outdated",
    "outdated",
    "percent",
    "share of answers that were right of the subject at an earlier date",
    better="lower",
)
TOO_NEW = Metric(
    "dates.too_new",
    "too new",
    "percent",
    "share of answers that become right of the subject at a later date only",
    better="lower",
)
WRONG = Metric(
    "dates.wrong", "wrong", "percent", "share of answers that are right at no date", better="lower"
)
FIT = Metric(
    "dates.fit",
    "right then",
    "percent",
    "share of all answers, whatever date they were asked about, that are right in a year",
)
BEST = Metric(
    "dates.best_year",
    "best year",
    "number",
    "the year in which most answers are right, the first of several",
    better="",
)
VERDICTS = (RIGHT, OUTDATED, TOO_NEW, WRONG)
METRICS = (*VERDICTS, FIT, BEST)

ENOUGH = 0.5
"""Years in which fewer subjects are known than this share of the fullest year are not fitted."""


About = tuple[str, str]
"""A relation and a subject."""


class Span(NamedTuple):
    """Names of what was right of a subject from a date to another; open where these are empty."""

    names: frozenset[str]
    first: str
    last: str


class Question(NamedTuple):
    """What a pair asks: of which subject of which relation, and about which time."""

    about: About
    first: str
    last: str

    @property
    def year(self) -> str:
        """The year that is asked about, or the first that the fact is right in."""
        return (self.first or self.last)[:4]


class Timelines:
    """What was right of each subject when, and which of it an answer says."""

    def __init__(self, asked: Asked, facts: DataFrame) -> None:
        self._judged = asked.judged
        self._spans: dict[About, list[Span]] = {}
        self._said: dict[tuple[About, int, int], list[Span]] = {}
        for relation in asked.judged.relations:
            columns = asked.dataset.frame(relation.id).select("subject_id", "object_names", *DATES)
            for subject, objects, *dates in columns.iter_rows():
                if any(dates):
                    names = frozenset(name for own in objects for name in own)
                    own = self._spans.setdefault((relation.id, subject), [])
                    own.append(Span(names, *_valid(*dates)))
        told = facts.select("pair", "relation", "subject_id", *DATES).iter_rows()
        self.questions = {
            pair: Question((relation, subject), *((dates[0],) * 2 if dates[0] else _valid(*dates)))
            for pair, relation, subject, *dates in told
            if any(dates)
        }

    def verdict(self, pair: int, template: int, answer: int) -> Metric:
        """What an answer is that the probe does not take for right."""
        about, first, last = self.questions[pair]
        said = self.said(about, template, answer)
        over = [not in_order(first, span.last) for span in said]
        to_come = [not in_order(span.first, last) for span in said]
        if not all(map(or_, over, to_come)):
            return RIGHT
        return OUTDATED if any(over) else TOO_NEW if any(to_come) else WRONG

    def known(self, about: About, year: str) -> bool:
        """Whether it is known what was right of a subject in a year."""
        return any(holds(year, span.first, span.last) for span in self._spans[about])

    def said(self, about: About, template: int, answer: int) -> list[Span]:
        """The times when an answer was right of a subject."""
        key = about, template, answer
        if key not in self._said:
            text, says = self._judged.answers[answer], self._judged.says or self._is
            self._said[key] = [s for s in self._spans[about] if says(text, s.names, template)]
        return self._said[key]

    def _is(self, text: str, names: Collection[str], _: int) -> bool:
        return text in (map(cleaned, names) if self._judged.way == "written" else names)


def _valid(date: str, first: str, last: str) -> tuple[str, str]:
    """From when to when a fact is right; at its date where it does not say."""
    return (first, last) if first or last else (date, date)


def read(asked: Asked) -> Reading | None:
    """Shares of right, outdated, too new and wrong answers; by year; the year of best fit."""
    facts = asked.facts()
    times = Timelines(asked, facts)
    if not times.questions:
        return None
    years = sorted({question.year for question in times.questions.values()})
    fit, best, tied = fitted(asked.judged, times, years, asked.dataset.selection.seed)
    estimates = {**_shares(asked, facts, times, years), **fit, BEST.id: best}
    return Reading(
        metrics=METRICS,
        estimates=estimates,
        counts={"facts_with_a_date": len(times.questions)},
        tables=_tables(estimates, years),
        figures=_figures(estimates, years),
        findings=tuple(_findings(estimates, best, tied)),
        notes=(
            "By the facts of the dataset an answer is right if any of them makes it right of "
            "the subject at the date asked about, else outdated if it was right earlier, else "
            "too new if it becomes right later. The year of best fit is looked for among the "
            "years asked about, each over the subjects of which the dataset says what was "
            "right then.",
        ),
    )


def verdicts(judged: Judged, times: Timelines) -> Floats:
    """Of each pair the shares of its answers by VERDICTS; nan where it has no date."""
    grid = judged.grid
    counts = np.zeros((len(judged.pairs), len(VERDICTS)))
    columns = (grid.pair, grid.template, grid.answer, grid.right)
    rows = Counter(zip(*(column.tolist() for column in columns), strict=True))
    for (pair, template, answer, right), count in rows.items():
        if pair in times.questions:
            found = RIGHT if right else times.verdict(pair, template, answer)
            counts[pair, VERDICTS.index(found)] += count
    total = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, total, out=np.full_like(counts, np.nan), where=total > 0)
    return np.asarray(shares)


def _shares(
    asked: Asked, facts: DataFrame, times: Timelines, years: Sequence[str]
) -> dict[str, Estimate]:
    shares = verdicts(asked.judged, times)[facts["pair"].to_numpy()]
    told = (times.questions.get(pair) for pair in facts["pair"])
    of_year = np.array([question.year if question else "" for question in told])
    by_fact = asked.by_fact(facts)
    estimates: dict[str, Estimate] = {}
    for metric, values in zip(VERDICTS, shares.T, strict=True):
        resampled = by_fact.resampled(values)
        estimates |= resampled.means(metric.id, by_fact.ids)
        for year in years:
            own = by_fact.resampled(np.where(of_year == year, values, np.nan))
            estimates[metric.at(f"year.{year}")] = own.mean_over_facts()
    return estimates


def fitted(
    judged: Judged, times: Timelines, years: Sequence[str], seed: int
) -> tuple[dict[str, Estimate], Estimate, list[str]]:
    """The share of all answers that are right in each year, and the year in which most are.

    Every subject of a relation counts the same. Intervals are the bootstrap over subjects. Of years
    that tie the first counts; all are told, and the interval holds them.
    """
    table = fit_table(judged, times, years)
    rates = resampled_rates(table, np.arange(len(table)), stream(seed, "dates"))
    subjects = (~np.isnan(table)).sum(axis=0)
    ends = [
        around(float(own[0]), own[1:][~np.isnan(own[1:])], n) if n else Estimate.not_measured()
        for own, n in zip(rates.T, subjects.tolist(), strict=True)
    ]
    fit = {FIT.at(f"year.{year}"): end for year, end in zip(years, ends, strict=True)}
    full = (subjects > 0) & (subjects >= ENOUGH * subjects.max())
    if full.sum() < 2 or not np.nan_to_num(rates[0]).max() > 0:
        return fit, Estimate.not_measured(), []
    fitting, shares = np.array(years)[full], np.nan_to_num(rates[:, full])
    tied = fitting[np.isclose(shares[0], shares[0].max(), rtol=0, atol=1e-12)].tolist()
    best = fitting.astype(np.float64)[shares.argmax(axis=1)]
    found = around(float(tied[0]), best[1:], len(table))
    return fit, replace(found, high=max(found.ends[1], float(tied[-1]))), tied


def fit_table(judged: Judged, times: Timelines, years: Sequence[str]) -> Floats:
    """Of each subject of a relation the share of its answers that are right in each year.

    nan where it is not known what was.
    """
    said: dict[About, Counter[tuple[int, int]]] = {}
    columns = (judged.grid.pair, judged.grid.template, judged.grid.answer)
    for pair, *key in zip(*(column.tolist() for column in columns), strict=True):
        if pair in times.questions:
            said.setdefault(times.questions[pair].about, Counter())[key[0], key[1]] += 1

    def share(about: About, answers: Counter[tuple[int, int]], year: str) -> float:
        if not times.known(about, year):
            return np.nan
        right = (
            count
            for answer, count in answers.items()
            if any(holds(year, s.first, s.last) for s in times.said(about, *answer))
        )
        return sum(right) / answers.total()

    return np.array([[share(*own, year) for year in years] for own in said.items()])


def _tables(estimates: Estimates, years: Sequence[str]) -> tuple[Table, ...]:
    whole = by_place(
        estimates,
        {"all relations": RELATIONS, "all facts": FACTS},
        VERDICTS,
        head="over",
        id="dates",
        title="Right, outdated, too new, wrong",
    )
    by_year = by_place(
        estimates,
        {year: f"year.{year}" for year in years},
        [*VERDICTS, FIT],
        head="year",
        id="dates-by-year",
        title="By the year asked about",
        note="'right then' is of all answers, whatever year they were asked about.",
    )
    return whole, by_year


def _figures(estimates: Estimates, years: Sequence[str]) -> tuple[Curves, ...]:
    if len(years) < 2:
        return ()
    curves = (
        curve(m.label, [(i, estimates[m.at(f"year.{year}")]) for i, year in enumerate(years)])
        for m in (RIGHT, OUTDATED, TOO_NEW, FIT)
    )
    figure = Curves(
        id="dates-by-year",
        title="Answers by the year asked about",
        x_axis="year",
        y_axis="share of answers",
        curves=tuple(curves),
        x_labels=tuple(years),
        note="'right then' is of all answers, whatever year they were asked about. Whiskers are "
        "95 % intervals.",
    )
    return (figure,)


def _findings(estimates: Estimates, best: Estimate, tied: Sequence[str]) -> Iterator[str]:
    right, outdated, new = (estimates[m.at(FACTS)] for m in (RIGHT, OUTDATED, TOO_NEW))
    yield (
        f"Of the answers to facts with a date {written(right, '.1%')} are right, "
        f"{written(outdated, '.1%')} outdated and {written(new, '.1%')} too new."
    )
    if tied:
        then = written(estimates[FIT.at(f"year.{tied[0]}")], ".1%")
        which = f"year {written(best, '.0f')} best: {then} of them are right then"
        if len(tied) > 1:
            which = f"years {listed(tied)} equally well: {then} of them are right in each"
        yield f"The answers fit the {which}."
