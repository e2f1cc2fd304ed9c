"""What a probe reports: estimates with intervals, counts, tables and figures as plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, TypeVar

from sonde.core.errors import UsageError, nearest
from sonde.core.metric import Better as Better
from sonde.core.metric import Column as Column
from sonde.core.metric import ColumnKind as ColumnKind
from sonde.core.metric import Metric as Metric
from sonde.core.metric import Unit as Unit
from sonde.core.notebook import html

FLAT = 1e-12
"""An interval that is no wider than this has no width: what is left is rounding."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Estimate:
    """A value with its 95 % interval and the number of things it averages; None = not measured.

    An interval without width is none. It is what resampling gives where nothing varies, and would
    be too sure: other facts may differ. `p` is that of a test: a paired one of a difference on few
    facts, where an interval may be too sure as well, or a permutation test of a trend.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    p: float | None = None

    def __post_init__(self) -> None:
        if self.low is not None and self.high is not None and self.high - self.low <= FLAT:
            object.__setattr__(self, "low", None)
            object.__setattr__(self, "high", None)

    def __repr__(self) -> str:
        if self.value is None:
            return "<Estimate: not measured>"
        low, high = self.ends
        ends = "" if self.low is None else f" [{low:.6g}, {high:.6g}]"
        return f"<Estimate {self.value:.6g}{ends}, n = {self.n:,}>"

    @property
    def ends(self) -> tuple[float, float]:
        """Where its interval ends; the value itself where it has none."""
        value = 0.0 if self.value is None else self.value
        return value if self.low is None else self.low, value if self.high is None else self.high

    @classmethod
    def not_measured(cls) -> Estimate:
        """An estimate nobody could make: there was nothing to average."""
        return cls(value=None, low=None, high=None, n=0)


Estimates = Mapping[str, Estimate]
"""Estimates by their stable names: `p_at_1.mean_over_relations`."""

Cell = str | int | float | bool | Estimate | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Table:
    """Rows under typed columns; a `browsable` one can be long and is searched, not printed.

    One that `leads` belongs to the first screen.
    """

    id: str
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Cell, ...]]
    note: str = ""
    browsable: bool = False
    leads: bool = False

    def __repr__(self) -> str:
        return f"<Table {self.id!r}: {len(self.rows):,} rows, {len(self.columns)} columns>"

    def _repr_html_(self) -> str:
        return html(self)


class Rows(Sequence[tuple[Cell, ...]]):
    """Rows of a table that are made when one is first looked at; how many is known before."""

    def __init__(self, count: int, make: Callable[[], Sequence[tuple[Cell, ...]]]) -> None:
        self._count, self._make = count, make

    @cached_property
    def _made(self) -> tuple[tuple[Cell, ...], ...]:
        return tuple(self._make())

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, at: Any) -> Any:
        return self._made[at]

    def __eq__(self, other: object) -> bool:
        return self._made == (other._made if isinstance(other, Rows) else other)

    def __hash__(self) -> int:
        return hash(self._made)

    def __repr__(self) -> str:
        return repr(self._made)

    def __add__(self, more: tuple[tuple[Cell, ...], ...]) -> tuple[tuple[Cell, ...], ...]:
        return (*self._made, *more)

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self._made,)  # copies are made of what is there


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One estimate per label of a figure."""

    name: str
    values: tuple[Estimate, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Picture:
    """What every figure has; `kind` is the scale of its values."""

    id: str
    title: str
    kind: Literal["percent", "number"] = "percent"
    note: str = ""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id!r}: {self.title}>"

    def _repr_html_(self) -> str:
        return html(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Labelled(Picture):
    """Estimates with their intervals: for each label one of every series."""

    axis: str
    labels: tuple[str, ...]
    series: tuple[Series, ...]

    def __post_init__(self) -> None:
        for series in self.series:
            if len(series.values) != len(self.labels):
                raise ValueError(f"figure {self.id}: {series.name} needs one value per label")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DotPlot(Labelled):
    """Estimates as dots, one row per label, one colour per series."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A line through points, such as confidence against accuracy in ten bins.

    `low` and `high` are the ends of the points' intervals. Points not `joined` stand alone.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    sizes: tuple[int, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    joined: bool = True

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ValueError(f"curve {self.name}: needs one y per x")
        if self.sizes and len(self.sizes) != len(self.x):
            raise ValueError(f"curve {self.name}: needs one size per point, or none")
        if len(self.low) != len(self.high) or len(self.low) not in (0, len(self.x)):
            raise ValueError(f"curve {self.name}: needs one interval per point, or none")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Curves(Picture):
    """Curves over one pair of axes; `diagonal` draws where x and y are equal.

    `kind` is that of y, and of x too without an `x_kind`; `marks` are named places on the x axis.
    With `x_labels` every x stands at or near the place of a label, counted from 0. A point whose
    size is below `least` is not drawn: so few say nothing.
    """

    x_axis: str
    y_axis: str
    curves: tuple[Curve, ...]
    diagonal: bool = False
    x_kind: Literal["percent", "number"] | None = None
    marks: tuple[tuple[str, float], ...] = ()
    x_labels: tuple[str, ...] = ()
    least: int = 0

    def __post_init__(self) -> None:
        last = len(self.x_labels) - 0.5
        if self.x_labels and any(not -0.5 < x < last for c in self.curves for x in c.x):
            raise ValueError(f"figure {self.id}: a point stands beside no label of the x axis")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Histogram(Picture):
    """How often values fall between edges; `marks` are named places on the axis."""

    axis: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    marks: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        if len(self.edges) != len(self.counts) + 1:
            raise ValueError(f"figure {self.id}: {len(self.counts)} counts need one edge more")
        if any(a >= b for a, b in pairwise(self.edges)):
            raise ValueError(f"figure {self.id}: edges must rise")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Strip(Picture):
    """Many values a row, each a small dot that tells its name: one per template, say."""

    axis: str
    labels: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    names: tuple[tuple[str, ...], ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        if len(self.values) != len(self.labels):
            raise ValueError(f"figure {self.id}: needs a row of values per label")
        widths = [len(row) for row in self.values]
        for what, rows in (("name", self.names), ("group", self.groups)):
            if rows and [len(row) for row in rows] != widths:
                raise ValueError(f"figure {self.id}: needs one {what} per value")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Boxes(Picture):
    """A box over the middle half of each row's values, which stand in it as dots.

    Whiskers reach the lowest and the highest value; `names` tell what the values are of.
    """

    axis: str
    labels: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    names: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        if len(self.values) != len(self.labels):
            raise ValueError(f"figure {self.id}: needs the values of each box")
        widths = [len(row) for row in self.values]
        if self.names and [len(row) for row in self.names] != widths:
            raise ValueError(f"figure {self.id}: needs one name per value of a box")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HeatMap(Picture):
    """A value for each row and column; None is shown as not measured."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        widths = [len(row) for row in self.values]
        if widths != [len(self.columns)] * len(self.rows):
            raise ValueError(f"figure {self.id}: needs one value per row and column")
        if not self.low < self.high:
            raise ValueError(f"figure {self.id}: low {self.low} must be below high {self.high}")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Bars(Labelled):
    """Estimates as bars, side by side for each label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatRow:
    """A text in tokens, each with its weight; the first `folded` of them are shown as one."""

    label: str
    tokens: tuple[str, ...]
    weights: tuple[float, ...]
    note: str = ""
    folded: int = 0
    folded_name: str = ""

    def __post_init__(self) -> None:
        if len(self.tokens) != len(self.weights):
            raise ValueError(f"row {self.label}: needs one weight per token")
        if not 0 <= self.folded <= len(self.tokens):
            raise ValueError(f"row {self.label}: cannot fold {self.folded} tokens")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HeatStrip(Picture):
    """Texts whose tokens are coloured by their weights, on one scale from −`limit` to `limit`.

    `unit` is that of the weights; `towards` and `away` say what those above and below zero do.
    """

    rows: tuple[HeatRow, ...]
    limit: float
    unit: str = ""
    towards: str = "above zero"
    away: str = "below zero"

    def __post_init__(self) -> None:
        if not self.limit > 0:
            raise ValueError(f"figure {self.id}: limit {self.limit} must be above zero")


Figure = DotPlot | Curves | Histogram | Strip | Boxes | HeatMap | Bars | HeatStrip


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """A number that belongs at the top, with the control it must be read against.

    `estimate`, `control` and `difference` name entries of the report's `estimates`. `best` is what
    a model that knows everything has.
    """

    label: str
    estimate: str
    control: str = ""
    control_label: str = ""
    difference: str = ""
    kind: Unit = "percent"
    best: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Report:
    """Everything a probe found, ready to be shown anywhere.

    `estimates` and `counts` have stable, documented names such as `p_at_1.mean_over_relations`;
    `metrics` say what the estimates are. `verdict`: what a comparison comes to; its sentence is the
    title. `judged`: every prompt as the probe judged it (`sonde.metrics.judged.Judged`), for what
    is read beside the report; it is never shown itself.
    """

    title: str
    estimates: Estimates
    summary: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    headlines: tuple[Headline, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    findings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    metrics: tuple[Metric, ...] = ()
    verdict: Any = None
    judged: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        for line in self.headlines:
            for name in (line.estimate, line.control, line.difference):
                if name and name not in self.estimates:
                    raise ValueError(f"headline {line.label!r} names no estimate: {name!r}")

    def __repr__(self) -> str:
        tables, figures = f"{len(self.tables)} tables", f"{len(self.figures)} figures"
        return f"<Report {self.title!r}: {len(self.estimates):,} estimates, {tables}, {figures}>"

    def _repr_html_(self) -> str:
        return html(self)

    def table(self, id: str) -> Table:
        """The table of that id."""
        return _found(id, self.tables, "table")

    def figure(self, id: str) -> Figure:
        """The figure of that id; a notebook draws it."""
        return _found(id, self.figures, "figure")


Part = TypeVar("Part", Table, Figure)


def _found(id: str, parts: Sequence[Part], what: str) -> Part:
    named = {part.id: part for part in parts}
    if id not in named:
        raise UsageError(f"this report has no {what} {id!r}; {nearest(id, named)}")
    return named[id]
