"""What a probe declares about its report, without importing reports."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import polars as pl

if TYPE_CHECKING:
    from sonde.evaluation.tables import Results

Over = Literal["relations", "facts"]
Sentence = tuple[str, Mapping[str, Any]]  # id of a template in reports/sentences.py, its values
Kind = Literal["table", "intervals", "lines", "bars", "shares", "histogram", "heat", "strip"]


class Exhibit(NamedTuple):
    """A table or figure, from a frame.

    The columns that a figure reads, with `color` the name of a series:

    - intervals: label, color, x, low, high, n, text; one row per label and color
    - lines: x (number or text), y, low, high, color; with a column `label` points are not joined
    - bars: label, color, x, part (of x), text; drawn from left to right
    - histogram: x (left edges), y, color
    - shares: label, color, x; the parts of a label add up to 1
    - heat: x and y (texts), color (number), text
    - strip: y (a title per row), label (a token), color (its weight)

    `units` maps a column to percent, points, number, count, p or bar. Two axes in
    percent get a diagonal. Colors of a heat map or strip are on a scale from 0 to `limit`, by
    default the largest.
    """

    id: str
    title: str
    frame: pl.DataFrame
    units: Mapping[str, str] = {}
    kind: Kind = "table"
    note: str = ""
    x_label: str = ""
    y_label: str = ""
    limit: float = 0.0

    def _repr_html_(self) -> str:
        from sonde.reports.notebook import exhibit_html

        return exhibit_html(self)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How the report of a probe is laid out.

    Args:
        headlines: the metrics that the report opens with; the first is in its title.
        over: whether a headline counts every relation the same, or every fact.
        title: a line about the settings, such as "few-shot, 4 examples".
        verdict: the metric by which runs are compared; by default the first headline.
        columns: further metrics of the relation table.
        browse: columns of the searchable table of facts.
        notes: sentences on method.
        extra: makes further tables and figures from the results and the estimates.
        compared: makes tables and figures of several runs, from their results by name.
        lead: the ids of exhibits of `extra` that the report opens with, not its headlines.
        finding: the title and the summary as sentences, from results, estimates and the names of
            model and dataset; by default the first headline next to its control.
    """

    headlines: Sequence[str]
    over: Over = "relations"
    title: str = ""
    verdict: str = ""
    columns: Sequence[str] = ()
    browse: Sequence[str] = ("relation", "subject", "gold", "answer", "correct", "rank")
    notes: Sequence[str] = ()
    extra: "Callable[[Results, pl.DataFrame], Iterable[Exhibit]] | None" = None
    compared: "Callable[[Mapping[str, Results]], Iterable[Exhibit]] | None" = None
    lead: Sequence[str] = ()
    finding: "Callable[[Results, pl.DataFrame, str, str], Iterable[Sentence]] | None" = None
