"""`bins`: how often answers are right where a number of the facts is low and where it is high.

For every number that facts have, such as popularity: accuracy in bins of equally many facts, and
whether it rises, over all facts and within relations.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sonde.analysis.readings import Asked, Reading
from sonde.core.reports import Curves, Estimate, Metric, Table
from sonde.core.words import LEVEL, shown_p, written
from sonde.metrics.estimates import ByFact
from sonde.metrics.trends import Trend, by_decades, trend
from sonde.reporting.build.figures import WHISKERS, curve
from sonde.reporting.build.parts import shown
from sonde.reporting.build.tables import Field, table

if TYPE_CHECKING:
    from polars import DataFrame

BINS = 5
LEAST = 10
"""The most bins, and the fewest facts of one."""

ACCURACY = Metric("bin_accuracy", "accuracy", "percent", "share right of facts in a bin")
TREND = Metric(
    "trend", "trend", "number", "rank correlation of a number with accuracy, over all facts",
    better="",
)  # fmt: skip
WITHIN = Metric(
    "trend_within", "trend within relations", "number",
    "the same among facts of one relation", better="",
)  # fmt: skip
SLOPE = Metric(
    "slope", "slope", "points",
    "rise of accuracy, within relations, with each power of ten of a number, or with each standard "
    "deviation of one that does not span several", better="",
)  # fmt: skip
METRICS = (ACCURACY, TREND, WITHIN, SLOPE)


class Bin(NamedTuple):
    """Facts whose number lies from `low` to `high`, ends included."""

    low: float
    high: float
    estimate: Estimate

    @property
    def label(self) -> str:
        """Its ends in words."""
        return told(self.low) if self.low == self.high else f"{told(self.low)} – {told(self.high)}"


class Binned(NamedTuple):
    """A number of the facts: what it is called, also in estimates, its bins and its trend."""

    title: str
    id: str
    decades: bool
    bins: Sequence[Bin]
    trend: Trend


def read(asked: Asked) -> Reading | None:
    """Every number that enough facts have."""
    seed = asked.dataset.selection.seed
    ids = tuple(relation.id for relation in asked.judged.relations)
    found = list(_binned(asked.facts(), ids, seed))
    if not found:
        return None
    looks = len(found) * (2 if len(ids) > 1 else 1)  # of one relation both trends are one
    estimates: dict[str, Estimate] = {}
    for number in found:
        estimates |= {
            ACCURACY.at(f"{number.id}.{place}"): each.estimate
            for place, each in enumerate(number.bins, 1)
        }
        trends = (number.trend.overall, number.trend.within, number.trend.slope)
        named = zip((TREND, WITHIN, SLOPE), trends, strict=True)
        estimates |= {metric.at(number.id): estimate for metric, estimate in named}
    return Reading(
        metrics=METRICS,
        estimates=estimates,
        tables=shown(*map(_bin_table, found), _trend_table(found)),
        figures=shown(*map(_figure, found)),
        findings=shown(*(_finding(number, looks) for number in found)),
    )


def _binned(facts: DataFrame, ids: tuple[str, ...], seed: int) -> Iterator[Binned]:
    """Every number with its bins and its trend; facts that do not have it are left out."""
    from polars import col

    rows = facts.select("owner", "cluster", "accuracy", "numbers").explode("numbers")
    rows = rows.drop_nulls("numbers").unnest("numbers").filter(col("value").is_finite())
    ids_of, titles = _ids(rows["name"].unique()), _titles(rows["name"].unique())
    for (name,), part in rows.group_by("name", maintain_order=True):
        numbers, values = (part[c].to_numpy().astype(np.float64) for c in ("value", "accuracy"))
        owner, cluster = (part[c].to_numpy().astype(np.int64) for c in ("owner", "cluster"))
        edges = quantile_edges(numbers)
        if len(edges) < 3:
            continue
        by_fact = ByFact(ids=ids, relation=owner, subject=cluster, seed=seed)
        place = np.searchsorted(edges[1:-1], numbers, side="right")
        yield Binned(
            title=titles[str(name)],
            id=ids_of[str(name)],
            decades=by_decades(numbers),
            bins=[_bin(by_fact, numbers, values, place == k) for k in range(len(edges) - 1)],
            trend=trend(numbers, values, owner, cluster, seed),
        )


def _ids(names: Iterable[str]) -> dict[str, str]:
    """Each number as a part of the names of its estimates, no two alike.

    >>> _ids(["page views", "page_views"])
    {'page_views': 'page_views', 'page views': 'page_views-2'}
    """
    plain = {name: re.sub(r"[^\w-]+", "_", name) for name in names}
    found: dict[str, str] = {}
    for name in sorted(plain, key=lambda name: (plain[name] != name, name)):  # who need not change
        further = (f"{plain[name]}-{k}" for k in count(2))
        found[name] = next(id for id in chain([plain[name]], further) if id not in found.values())
    return found


def _titles(names: Iterable[str]) -> dict[str, str]:
    """Each number in words; those that would be called alike as they are written."""
    plain = {name: name.replace("_", " ") for name in names}
    often = Counter(plain.values())
    return {name: title if often[title] == 1 else name for name, title in plain.items()}


def quantile_edges(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where bins of about equally many facts begin, and where the last ends.

    Equal numbers are never parted, and a bin of too few facts goes to the smaller of its
    neighbours, so that there may be fewer bins.

    >>> quantile_edges(np.arange(1.0, 21.0)).tolist()
    [1.0, 11.0, 20.0]
    """
    bins = min(BINS, len(numbers) // LEAST)
    if bins < 2:
        return np.zeros(0)
    ordered = np.sort(numbers)
    inner = np.unique(ordered[[len(ordered) * k // bins for k in range(1, bins)]])
    while len(inner):
        sizes = np.bincount(np.searchsorted(inner, ordered, side="right"), minlength=len(inner) + 1)
        fewest = int(sizes.argmin())
        if sizes[fewest] >= LEAST:
            break
        around = np.array([np.inf, *sizes, np.inf])[[fewest, fewest + 2]]
        inner = np.delete(inner, fewest - 1 if around[0] <= around[1] else fewest)
    return np.array([ordered[0], *inner, ordered[-1]])


def _bin(
    by_fact: ByFact, numbers: NDArray[np.float64], values: NDArray[np.float64],
    among: NDArray[np.bool_],
) -> Bin:  # fmt: skip
    own = by_fact.resampled(np.where(among, values, np.nan)).mean_over_facts()
    return Bin(float(numbers[among].min()), float(numbers[among].max()), own)


def told(number: float) -> str:
    """A number as an edge is labelled.

    >>> told(1234567.0), told(0.125), told(12.0)
    ('1,234,567', '0.125', '12')
    """
    return f"{number:,.0f}" if number == round(number) else f"{number:,.4g}"


def _bin_table(number: Binned) -> Table:
    fields: list[Field[Bin] | Metric] = [
        Field(number.title, lambda each: each.label, help="lowest to highest"),
        Field("facts", lambda each: each.estimate.n, "count"),
        Field(ACCURACY.label, lambda each: each.estimate, "percent", ACCURACY.sentence),
    ]
    return table(
        number.bins, fields, id=f"bins-{number.id}",
        title=f"Accuracy by {number.title}",
        note="Bins of about equally many facts; equal numbers are never parted. Means over facts.",
    )  # fmt: skip


def _trend_table(found: Sequence[Binned]) -> Table:
    fields: list[Field[Binned]] = [
        Field("number", lambda each: each.title),
        Field(TREND.label, lambda each: each.trend.overall, "number", TREND.sentence),
        Field("p", lambda each: shown_p(each.trend.overall.p), help="of the trend"),
        Field(WITHIN.label, lambda each: each.trend.within, "number", WITHIN.sentence),
        Field("p within", lambda each: shown_p(each.trend.within.p), help="of the trend within"),
        Field(SLOPE.label, lambda each: each.trend.slope, "points", SLOPE.sentence),
        Field("slope is with each", _step),
    ]
    note = (
        "Rank correlations are Spearman's. p: permutation tests, in which numbers are dealt anew "
        "to subjects, of all relations or of their own; not corrected for several trends. "
        f"Intervals: a bootstrap over subjects in relations; they reach to 0 unless p < {LEVEL}."
    )
    return table(found, fields, id="trends", title="Trends of accuracy", note=note)


def _step(number: Binned) -> str:
    return "power of ten" if number.decades else "standard deviation"


def _figure(number: Binned) -> Curves:
    title = number.title
    points = ((float(place), each.estimate) for place, each in enumerate(number.bins))
    return Curves(
        id=f"bins-{number.id}",
        title=f"Accuracy by {title}",
        x_axis=f"{title}, in bins of about equally many facts",
        y_axis="accuracy",
        x_kind="number",
        x_labels=tuple(each.label for each in number.bins),
        curves=(curve("model", points),),
        note=WHISKERS,
    )


def _finding(number: Binned, looks: int) -> str:
    """What the trend comes to: its test decides, corrected for all trends that are looked at."""
    title, first, last = number.title, number.bins[0], number.bins[-1]
    both = {"": number.trend.overall, " within relations": number.trend.within}
    clear = {where: each for where, each in both.items() if _holds(each, looks)}
    if not clear:
        return f"Accuracy does not clearly go with {title}: {_told(both[''], looks)}."
    where, told_of = next(iter(clear.items()))
    way, *other = ("rises" if (each.value or 0) > 0 else "falls" for each in clear.values())
    only = " alone" if where else ", but not clearly within relations"
    if other:
        only = "" if other == [way] else f", but {other[0]} within relations"
    span = f": {_percent(first)} in the lowest bin, {_percent(last)} in the highest"
    ends = "" if where else span
    return f"Accuracy {way} with {title}{where}{only}{ends}; {_told(told_of, looks)}."


def _percent(each: Bin) -> str:
    return f"{each.estimate.value or 0:.1%}"


def _told(trend: Estimate, looks: int) -> str:
    """A trend with its p in a sentence."""
    if trend.p is None:
        return f"rank correlation {written(trend)}"
    of = f" (corrected for {looks} trends, unlike the interval)" if looks > 1 else ""
    return f"rank correlation {written(trend)}, p {shown_p(_corrected(trend.p, looks))}{of}"


def _corrected(p: float, looks: int) -> float:
    """Where so many trends are looked at (Bonferroni)."""
    return min(1.0, p * looks)


def _holds(estimate: Estimate, looks: int) -> bool:
    """Whether a trend is told from none where several are looked at."""
    return estimate.p is not None and _corrected(estimate.p, looks) < LEVEL
