"""`bins`: how often answers are right where a number of the facts is low and where it is high.

For every number that facts have, such as popularity: accuracy in bins of equally many facts, and
whether it rises, over all facts and within relations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sonde.analysis.readings import Asked, Reading
from sonde.core.facts import Dataset
from sonde.core.reports import Curves, Estimate, Metric, Table
from sonde.core.words import told_apart, written
from sonde.metrics.estimates import ByFact
from sonde.metrics.trends import Trend, by_decades, trend
from sonde.reporting.build.figures import WHISKERS, curve
from sonde.reporting.build.parts import shown
from sonde.reporting.build.tables import Field, table
from sonde.stats.intervals import widening

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
    """A number of the facts: its name, that of its estimates, its bins and its trend."""

    name: str
    id: str
    decades: bool
    bins: Sequence[Bin]
    trend: Trend


@dataclass(frozen=True, slots=True)
class Bins:
    """Accuracy by every number of the facts."""

    name: ClassVar[str] = "bins"

    def applies(self, dataset: Dataset) -> bool:
        """Whether some fact that is asked about has a number."""
        frames = (dataset.split_frame(relation.id) for relation in dataset.asked_relations())
        return any(frame["numbers"].list.len().sum() for frame in frames)

    def read(self, asked: Asked) -> Reading | None:
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
            tables=shown((*map(_bin_table, found), _trend_table(found))),
            figures=shown(map(_figure, found)),
            findings=shown(_finding(number, looks) for number in found),
        )


def _binned(facts: DataFrame, ids: tuple[str, ...], seed: int) -> Iterator[Binned]:
    """Every number with its bins and its trend; facts that do not have it are left out."""
    from polars import col

    rows = facts.select("owner", "cluster", "accuracy", "numbers").explode("numbers")
    rows = rows.drop_nulls("numbers").unnest("numbers").filter(col("value").is_finite())
    for (name,), part in rows.group_by("name", maintain_order=True):
        numbers, values = (part[c].to_numpy().astype(np.float64) for c in ("value", "accuracy"))
        owner, cluster = (part[c].to_numpy().astype(np.int64) for c in ("owner", "cluster"))
        edges = quantile_edges(numbers)
        if len(edges) < 3:
            continue
        by_fact = ByFact(ids=ids, relation=owner, subject=cluster, seed=seed)
        place = np.searchsorted(edges[1:-1], numbers, side="right")
        yield Binned(
            name=str(name),
            id=re.sub(r"[^\w-]+", "_", str(name)),
            decades=by_decades(numbers),
            bins=[_bin(by_fact, numbers, values, place == k) for k in range(len(edges) - 1)],
            trend=trend(numbers, values, owner, cluster, seed),
        )


def quantile_edges(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where bins of about equally many facts begin, and where the last ends.

    Equal numbers are never parted, so that there may be fewer bins.

    >>> quantile_edges(np.arange(1.0, 21.0)).tolist()
    [1.0, 11.0, 20.0]
    """
    count = min(BINS, len(numbers) // LEAST)
    if count < 2:
        return np.zeros(0)
    ordered = np.sort(numbers)
    firsts = ordered[[len(ordered) * k // count for k in range(1, count)]]
    inner = np.unique(firsts[firsts > ordered[0]])
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
        Field(number.name.replace("_", " "), lambda each: each.label, help="lowest to highest"),
        Field("facts", lambda each: each.estimate.n, "count"),
        Field(ACCURACY.label, lambda each: each.estimate, "percent", ACCURACY.sentence),
    ]
    return table(
        number.bins, fields, id=f"bins-{number.id}",
        title=f"Accuracy by {number.name.replace('_', ' ')}",
        note="Bins of about equally many facts; equal numbers are never parted. Means over facts.",
    )  # fmt: skip


def _trend_table(found: Sequence[Binned]) -> Table:
    fields: list[Field[Binned]] = [
        Field("number", lambda each: each.name.replace("_", " ")),
        Field(TREND.label, lambda each: each.trend.overall, "number", TREND.sentence),
        Field(WITHIN.label, lambda each: each.trend.within, "number", WITHIN.sentence),
        Field(SLOPE.label, lambda each: each.trend.slope, "points", SLOPE.sentence),
        Field("slope is with each", _step),
    ]
    note = "Rank correlations are Spearman's. Intervals: a bootstrap over subjects in relations."
    return table(found, fields, id="trends", title="Trends of accuracy", note=note)


def _step(number: Binned) -> str:
    return "power of ten" if number.decades else "standard deviation"


def _figure(number: Binned) -> Curves:
    title = number.name.replace("_", " ")
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
    """What the trend comes to; of several trends each must hold among them."""
    title, first, last = number.name.replace("_", " "), number.bins[0], number.bins[-1]
    both = {"": number.trend.overall, " within relations": number.trend.within}
    clear = {where: each for where, each in both.items() if _holds(each, looks)}
    if not clear:
        of = f", one of {looks} trends that are looked at" if looks > 1 else ""
        told_of = both[""]
        return (
            f"Accuracy does not clearly go with {title}: rank correlation {written(told_of)}{of}."
        )
    where, told_of = next(iter(clear.items()))
    way = "rises" if (told_of.value or 0) > 0 else "falls"
    only = "" if len(clear) == 2 else " alone" if where else ", but not clearly within relations"
    span = f": {_percent(first)} in the lowest bin, {_percent(last)} in the highest"
    ends = "" if where else span
    return f"Accuracy {way} with {title}{where}{only}{ends}; rank correlation {written(told_of)}."


def _percent(each: Bin) -> str:
    return f"{each.estimate.value or 0:.1%}"


def _holds(estimate: Estimate, looks: int) -> bool:
    """Whether a trend is told from none where several are looked at."""
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return False
    value, times = estimate.value, widening(looks)
    ends = (value - (value - estimate.low) * times, value + (estimate.high - value) * times)
    return told_apart(replace(estimate, low=ends[0], high=ends[1]))


COMPONENT = Bins()
