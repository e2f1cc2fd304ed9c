"""What a probe reports: estimates with intervals, counts, tables and figures as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value with its 95 % interval and the number of things it averages; None = not measured."""

    value: float | None
    low: float | None
    high: float | None
    n: int

    @classmethod
    def not_measured(cls) -> Estimate:
        """An estimate nobody could make: there was nothing to average."""
        return cls(value=None, low=None, high=None, n=0)


Cell = str | int | float | bool | Estimate | None
ColumnKind = Literal["text", "count", "percent", "number", "verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A table column: how it is headed, shown and explained."""

    title: str
    kind: ColumnKind = "text"
    help: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under typed columns; a `browsable` one can be long and is searched, not printed."""

    id: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    browsable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One estimate per label of a figure."""

    name: str
    values: tuple[Estimate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DotPlot:
    """Estimates with their intervals, one row per label, one colour per series."""

    id: str
    title: str
    axis: str
    labels: tuple[str, ...]
    series: tuple[Series, ...]
    note: str = ""


Figure = DotPlot


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """A number that belongs at the top, with the control it must be read against.

    All three name entries of the report's `estimates`.
    """

    label: str
    estimate: str
    control: str = ""
    difference: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything a probe found, ready to be shown anywhere.

    `estimates` and `counts` have stable, documented names such as `p_at_1.mean_over_relations`.
    """

    title: str
    summary: str
    estimates: Mapping[str, Estimate]
    counts: Mapping[str, int] = field(default_factory=dict)
    headlines: tuple[Headline, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    findings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
