"""What a number is called, how it is headed and explained: columns of tables, and metrics."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal

Unit = Literal["percent", "points", "number", "count"]
"""Points are differences of shares, which have a sign."""

ColumnKind = Unit | Literal["text", "verdict"]
Better = Literal["higher", "lower", "nearer 0", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A table column: how it is headed, shown and explained; `detail` is for wide pages only."""

    title: str
    kind: ColumnKind = "text"
    help: str = ""
    detail: bool = False


@dataclass(frozen=True, slots=True)
class Metric:
    """A number that reports hold: defined once, for tables, headlines, pages, JSON and documents.

    `id` is what the stable names of its estimates begin with, `label` heads its columns, `sentence`
    says what it is. `better`: which way, where there is one. A word in braces is put in by `of`:
    `Metric("p_at_{k}", "P@{k}", …).of(k=10)`. `wide` and `bare` are for columns: `detail` and
    `without_interval` give the same metric so.
    """

    id: str
    label: str
    unit: Unit = "percent"
    sentence: str = ""
    _: KW_ONLY
    better: Better = "higher"
    wide: bool = False
    bare: bool = False

    def at(self, over: str = "") -> str:
        """The name of its estimate over something: `p_at_1.relation.P36`; alone, of everything.

        >>> Metric("p_at_{k}", "P@{k}").of(k=10).at("relation.P36")
        'p_at_10.relation.P36'
        """
        return f"{self.id}.{over}" if over else self.id

    def of(self, **values: object) -> Metric:
        """The metric with these values in the place of the words in braces."""
        id, label, sentence = (
            text.format(**values) for text in (self.id, self.label, self.sentence)
        )
        return replace(self, id=id, label=label, sentence=sentence)

    def named(self, label: str, sentence: str = "") -> Metric:
        """The same under another label, where its own is too long or says too little."""
        return replace(self, label=label, sentence=sentence or self.sentence)

    def under(self, place: str) -> Metric:
        """The same of one place, such as a number of examples, to be averaged over others.

        >>> Metric("accuracy", "accuracy").under("n.5").at("relation.P36")
        'accuracy.n.5.relation.P36'
        """
        return replace(self, id=self.at(place))

    def detail(self, wide: bool = True) -> Metric:
        """The same for a column of wide pages only."""
        return replace(self, wide=wide)

    def without_interval(self) -> Metric:
        """The same for a column of values alone."""
        return replace(self, bare=True)

    def controlled(
        self,
        how: str = "always answering the commonest object",
        paired: str = "paired by fact; from −1 to 1",
    ) -> tuple[Metric, Metric]:
        """What the majority control reaches of it, and how far above that a model is.

        >>> [metric.id for metric in Metric("mrr", "MRR").controlled()]
        ['control.majority.mrr', 'above_control.mrr']
        """
        unit: Unit = "points" if self.unit == "percent" else self.unit
        of_control, less = f"{self.label} of {how}", f"minus the majority control's, {paired}"
        return (
            Metric(f"control.majority.{self.id}", "majority", self.unit, of_control, better=""),
            Metric(f"above_control.{self.id}", "above", unit, f"{self.label} {less}"),
        )

    @property
    def help(self) -> str:
        """What it is, and which way is better where that is not upwards."""
        ways = {"lower": "lower is better", "nearer 0": "best near 0"}
        return "; ".join(part for part in (self.sentence, ways.get(self.better)) if part)

    @property
    def column(self) -> Column:
        """How a table heads it."""
        return Column(title=self.label, kind=self.unit, help=self.help, detail=self.wide)
