"""Facts that change with time, of any probe: was a wrong answer right once, or only later?

An answer that is not right is outdated if it was right of the subject at an earlier date, too new
if it becomes right at a later one, else wrong. Beside these shares: how they go from year to year,
and the year at which most answers are right. Knows judged prompts and facts, no probe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from sonde.analysis.readings import Asked, Reading
from sonde.core.dates import holds, in_order
from sonde.core.fact_frames import DATES
from sonde.core.facts import Dataset
from sonde.core.reports import Curves, Estimate, Estimates, Metric, Table
from sonde.core.words import written
from sonde.metrics.estimates import ByFact
from sonde.metrics.judged import Floats, Judged, around, stream
from sonde.prompting.matching import OWN, correct, language_of
from sonde.reporting.build.figures import curve
from sonde.reporting.build.tables import by_place
from sonde.reporting.catalogue import FACTS, RELATIONS
from sonde.stats.intervals import resampled_rates

if TYPE_CHECKING:
    from polars import DataFrame

RIGHT = Metric(
    "dates.right", "right", "percent", "share of answers that are right at the date asked"
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
    "dates.best_year", "best year", "number", "the year in which most answers are right", better=""
)
VERDICTS = (RIGHT, OUTDATED, TOO_NEW, WRONG)
METRICS = (*VERDICTS, FIT, BEST)

ENOUGH = 0.5
"""Years in which fewer subjects are known than this share of the fullest year are not fitted."""


class Span(NamedTuple):
    """Names of what was right of a subject from a date to another; open where these are empty."""

    names: frozenset[str]
    first: str
    last: str


class Question(NamedTuple):
    """What a pair asks: of which subject of which relation, and about which time."""

    about: tuple[str, str]
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
        self._spans: dict[tuple[str, str], list[Span]] = {}
        self._said: dict[tuple[tuple[str, str], int], list[Span]] = {}
        relations = asked.judged.relations
        self._languages = {r.id: language_of(OWN, r.language) for r in relations}
        for relation in relations:
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

    def verdict(self, pair: int, answer: int) -> Metric:
        """What a wrong answer is."""
        _, first, last = self.questions[pair]
        said = self.said(self.questions[pair].about, answer)
        if any(not in_order(first, span.last) for span in said):
            return OUTDATED
        return TOO_NEW if any(not in_order(span.first, last) for span in said) else WRONG

    def known(self, about: tuple[str, str], year: str) -> bool:
        """Whether it is known what was right of a subject in a year."""
        return any(holds(year, span.first, span.last) for span in self._spans[about])

    def said(self, about: tuple[str, str], answer: int) -> list[Span]:
        """The times when an answer was right of a subject."""
        if (about, answer) not in self._said:
            text, written = self._judged.answers[answer], self._judged.way == "written"
            language = self._languages[about[0]]
            self._said[about, answer] = [
                span
                for span in self._spans[about]
                if (correct(text, span.names, language) if written else text in span.names)
            ]
        return self._said[about, answer]


def _valid(date: str, first: str, last: str) -> tuple[str, str]:
    """From when to when a fact is right; at its date where it does not say."""
    return (first, last) if first or last else (date, date)


class DatesReading:
    """Reads what became of facts that change with time."""

    name: ClassVar[str] = "dates"

    def applies(self, dataset: Dataset) -> bool:
        """Whether some fact has a date, or a time when it is right."""
        from polars import any_horizontal, col

        dated = any_horizontal(col(DATES) != "").any()
        return any(dataset.frame(r.id).select(dated).item() for r in dataset.asked_relations())

    def read(self, asked: Asked) -> Reading | None:
        """Shares of right, outdated, too new and wrong answers; by year; the year of best fit."""
        facts = asked.facts()
        times = Timelines(asked, facts)
        if not times.questions:
            return None
        years = sorted({question.year for question in times.questions.values()})
        fit, best = fitted(asked.judged, times, years, asked.dataset.selection.seed)
        estimates = {**_shares(asked, facts, times, years), **fit, BEST.id: best}
        return Reading(
            metrics=METRICS,
            estimates=estimates,
            counts={"facts_with_a_date": len(times.questions)},
            tables=_tables(estimates, years),
            figures=_figures(estimates, years),
            findings=tuple(_findings(estimates, best)),
            notes=(
                "An answer that is not right is outdated if it was right of the subject at an "
                "earlier date than is asked about, else too new if it becomes right later, by the "
                "facts of the dataset. The year of best fit is looked for among the years asked "
                "about, each over the subjects of which the dataset says what was right then.",
            ),
        )


def verdicts(judged: Judged, times: Timelines) -> Floats:
    """Of each pair the shares of its answers by VERDICTS; nan where it has no date."""
    grid = judged.grid
    counts = np.zeros((len(judged.pairs), len(VERDICTS)))
    rows = Counter(zip(grid.pair.tolist(), grid.answer.tolist(), grid.right.tolist(), strict=True))
    for (pair, answer, right), count in rows.items():
        if pair in times.questions:
            found = RIGHT if right else times.verdict(pair, answer)
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
    by_fact = ByFact(
        ids=tuple(relation.id for relation in asked.judged.relations),
        relation=facts["owner"].to_numpy(),
        subject=facts["cluster"].to_numpy(),
        seed=asked.dataset.selection.seed,
    )
    estimates: dict[str, Estimate] = {}
    for metric, values in zip(VERDICTS, shares.T, strict=True):
        resampled = by_fact.resampled(values)
        estimates[metric.at(RELATIONS)] = resampled.mean_over_relations()
        estimates[metric.at(FACTS)] = resampled.mean_over_facts()
        estimates |= {metric.at(f"relation.{id}"): resampled.relation(id) for id in by_fact.ids}
        for year in years:
            own = by_fact.resampled(np.where(of_year == year, values, np.nan))
            estimates[metric.at(f"year.{year}")] = own.mean_over_facts()
    return estimates


def fitted(
    judged: Judged, times: Timelines, years: Sequence[str], seed: int
) -> tuple[dict[str, Estimate], Estimate]:
    """The share of all answers that are right in each year, and the year in which most are.

    Every subject of a relation counts the same. Intervals are the bootstrap over subjects; a year
    that ties with an earlier one is passed over.
    """
    table = fit_table(judged, times, years)
    rates = resampled_rates(table, np.arange(len(table)), stream(seed, "dates"))
    subjects = (~np.isnan(table)).sum(axis=0)
    ends = [
        around(float(own[0]), own[1:][~np.isnan(own[1:])], n)
        for own, n in zip(rates.T, subjects.tolist(), strict=True)
    ]
    fit = {FIT.at(f"year.{year}"): end for year, end in zip(years, ends, strict=True)}
    full = subjects >= ENOUGH * subjects.max()
    if full.sum() < 2 or not np.nanmax(rates[0]) > 0:
        return fit, Estimate.not_measured()
    best = np.array(years).astype(np.float64)[full][np.nan_to_num(rates[:, full]).argmax(axis=1)]
    return fit, around(float(best[0]), best[1:], len(table))


def fit_table(judged: Judged, times: Timelines, years: Sequence[str]) -> Floats:
    """Of each subject of a relation the share of its answers that are right in each year.

    nan where it is not known what was.
    """
    said: dict[tuple[str, str], Counter[int]] = {}
    for pair, answer in zip(judged.grid.pair.tolist(), judged.grid.answer.tolist(), strict=True):
        if pair in times.questions:
            said.setdefault(times.questions[pair].about, Counter())[answer] += 1

    def share(about: tuple[str, str], answers: Counter[int], year: str) -> float:
        if not times.known(about, year):
            return np.nan
        right = (
            count
            for answer, count in answers.items()
            if any(holds(year, s.first, s.last) for s in times.said(about, answer))
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


def _findings(estimates: Estimates, best: Estimate) -> Iterator[str]:
    right, outdated, new = (estimates[m.at(FACTS)] for m in (RIGHT, OUTDATED, TOO_NEW))
    yield (
        f"Of the answers to facts with a date {written(right, '.1%')} are right, "
        f"{written(outdated, '.1%')} outdated and {written(new, '.1%')} too new."
    )
    if best.value is not None:
        then = estimates[FIT.at(f"year.{best.value:04.0f}")]
        yield (
            f"The answers fit the year {written(best, '.0f')} best: {written(then, '.1%')} of them "
            "are right then."
        )


COMPONENT = DatesReading()
