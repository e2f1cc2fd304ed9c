"""A report as data: sentences, tables, figures, the facts to search. Knows no format that shows it.

`build` makes the report of a run. Cards, plans, checks and labs make theirs by hand, from the same
parts: `Report(title="…", summary=["…"], sections=[Section("tables", "Tables", [Table(…)])])`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from sonde.core.errors import UsageError, nearest
from sonde.evaluation.layout import Exhibit, Over
from sonde.reports.cells import Estimate as Estimate
from sonde.reports.sentences import Line
from sonde.reports.sentences import text as text

if TYPE_CHECKING:
    from sonde.evaluation.estimate import Metric

Table = Figure = Exhibit


@dataclass(frozen=True, kw_only=True, eq=False)
class Facts:
    """The facts that a page searches, a row each.

    Args:
        frame: `id`, then the columns to show; `share` has the share of a fact's prompts that are
            correct, null where it is excluded; `prompts` how many there are. Further columns that
            end in `.share` belong to an answer of that name.
        units: of columns; "answer" gets a ✓ or ✗.
        filters: label of a filter and the outcomes that it shows; the first shows all.
        outcome: of each row, a number.
        start: the filter that is selected at first.
        depth: every prompt of some rows, as of `prompts_of_facts`; `model` is the number of its
            model, if there are several.
        models: their names, if there are several.
        command: shows a fact that the page leaves out.
    """

    frame: pl.DataFrame
    units: Mapping[str, str]
    filters: Sequence[tuple[str, Sequence[int]]]
    outcome: Sequence[int]
    start: int = 0
    depth: Callable[[Sequence[int]], pl.DataFrame] | None = None
    models: Sequence[str] = ()
    command: str = ""
    id: str = "facts"

    @property
    def noun(self) -> str:
        """Where a fact has a row for each task or cue, the rows are no facts."""
        return "facts" if self.frame["id"].is_unique().all() else "rows"

    def shares(self, answer: str) -> str:
        """The column with the shares of an answer that are correct."""
        return name if (name := f"{answer}.share") in self.frame.columns else "share"

    @property
    def shown(self) -> list[str]:
        """The columns that are shown."""
        hidden = ("id", "share", "prompts")
        return [c for c in self.frame.columns if c not in hidden and not c.endswith(".share")]


Item = Line | Exhibit | Facts


@dataclass(frozen=True)
class Section:
    id: str
    title: str
    items: Sequence[Item]
    folded: bool = False


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Report:
    """What is shown, in reading order: the title, the summary with `lead` next to it, warnings
    (a heading and its sentences), sections.

    Args:
        kicker: what the report is about, above the title.
        lead: figures or tables next to the summary.
        estimates: every number, as ESTIMATES or by names of the JSON export.
        over: whether a number without a suffix counts every relation the same, or every fact.
        runs: what the runs in the estimates are, for the names of the JSON export.
        metrics: what the estimates are.
        provenance: where the numbers come from.
    """

    title: Line
    kicker: str = ""
    summary: Sequence[Line] = ()
    lead: Sequence[Exhibit] = ()
    warnings: Sequence[tuple[str, Sequence[Line]]] = ()
    sections: Sequence[Section] = ()
    estimates: "pl.DataFrame | Mapping[str, Estimate]" = field(default_factory=dict)
    over: Over = "relations"
    runs: str = "control"
    metrics: "Sequence[Metric]" = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Report: {text(self.title)}>"

    def items(self) -> Iterator[Item]:
        """Everything in it but title, summary and warnings."""
        yield from self.lead
        for section in self.sections:
            yield from section.items

    def __getitem__(self, id: str) -> Exhibit | Facts:
        """The table or figure of that id."""
        parts = {item.id: item for item in self.items() if isinstance(item, Exhibit | Facts)}
        if id not in parts:
            raise UsageError(f"this report has no table or figure {id!r}; {nearest(id, parts)}")
        return parts[id]

    # imported late: a report is made without what shows it

    def to_html(self) -> str:
        """A page that needs nothing else."""
        from sonde.reports.html import render_page

        return render_page(self)

    def to_terminal(self, width: int = 80, *, brief: bool = False) -> str:
        """Plain text."""
        from sonde.reports.terminal import as_text

        return as_text(self, width, brief=brief)

    def to_json(self) -> dict[str, Any]:
        """The numbers with their dotted names, and the sentences; no tables."""
        from sonde.reports.export import as_json

        return as_json(self)

    def to_csv(self, folder: str | Path) -> list[Path]:
        """A file for each table, for the numbers of each figure and for the estimates."""
        from sonde.reports.export import write_csv

        return write_csv(self, Path(folder))

    def to_latex(self, folder: str | Path) -> list[Path]:
        """A file for each table and figure, as a booktabs table."""
        from sonde.reports.export import write_latex

        return write_latex(self, Path(folder))

    def to_svg(self, folder: str | Path) -> list[Path]:
        """A file for each figure."""
        from sonde.reports.export import write_svg

        return write_svg(self, Path(folder))

    def to_markdown(self) -> str:
        """The report as text for an issue or a README."""
        from sonde.reports.export import as_markdown

        return as_markdown(self)

    def _repr_html_(self) -> str:
        from sonde.reports.notebook import report_html

        return report_html(self)
