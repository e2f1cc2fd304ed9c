"""What the reports of runs of one probe say side by side: headlines, tables, figures, model sizes.

Works for any probe. Few runs stand in columns; many stand in rows, as the papers print models. Of a
long table the first number is shown, and the others can be searched. Knows reports and where models
come from, nothing of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from operator import or_

from sonde.analysis.runs import BILLION, UNKNOWN, Compared, families, family_names, relation_name
from sonde.analysis.sides.figures import side_figures
from sonde.analysis.sides.lines import (
    CONTROL,
    Lines,
    Row,
    common_columns,
    common_rows,
    headline_lines,
    heads,
    place,
    shared_headlines,
    shared_tables,
    table_lines,
)
from sonde.core.reports import Cell, Column, Curves, Estimate, Figure, Headline, Report, Table
from sonde.metrics.estimates import RELATIONS
from sonde.reporting.build.figures import WHISKERS, curve
from sonde.reporting.build.parts import shown

FEW_RUNS = 5
"""Up to so many runs stand in columns."""

FEW_ROWS = 10
"""Up to so many rows of a table become columns, where runs stand in rows."""

ROOM, CELL = 54, 14
"""Characters that a terminal has for such columns, and that each takes at least; a page shows all.
"""

PRINTED, MOST_PRINTED = 20, 40
"""Rows from which all numbers but the first are to be searched, and from which that one is too."""

MOST_ROWS = 20_000
BY_RUN = "{}, run by run"


def side_tables(runs: Sequence[Compared], reports: Sequence[Report]) -> Iterator[Table]:
    """The headlines of all runs, then every table that all reports have."""
    for lines in headline_lines(reports):
        yield from _laid_out(lines, runs)
    for tables in shared_tables(reports):
        rows = common_rows(tables)
        if rows and len(runs) > FEW_RUNS and len(rows[0]) > FEW_ROWS:
            yield _long(tables, runs)
        else:
            for lines in table_lines(tables):
                yield from _laid_out(lines, runs)


def _laid_out(lines: Lines, runs: Sequence[Compared]) -> Iterator[Table]:
    """The lines as a table, or the first number and the others where they are many."""
    few = len(runs) <= FEW_RUNS
    first, *others = lines.numbers
    if not others or (len(lines.lines) if few else len(runs) * len(lines.numbers)) <= PRINTED:
        yield _table(lines, runs, few)
        return
    yield _table(lines.of([first]), runs, few)
    title = f"{lines.title}: further numbers"
    rest = replace(lines.of(others), id=f"{lines.id}-more", title=title)
    yield replace(_table(rest, runs, few), browsable=True)


def _table(lines: Lines, runs: Sequence[Compared], few: bool) -> Table:
    """One table of lines, which say their number where there are several."""
    several = len(lines.numbers) > 1
    columns, rows = (_in_columns if few else _in_rows)(lines, runs)
    number = "" if several or lines.numbers[0] in ("", "value") else f": {lines.numbers[0]}"
    return Table(
        id=lines.id,
        title=BY_RUN.format(f"{lines.title}{number}"),
        columns=(Column(title="number"), *columns) if several else tuple(columns),
        rows=tuple(rows if several else (row[1:] for row in rows)),
        note=lines.note,
        browsable=len(rows) > MOST_PRINTED,
    )


Laid = tuple[Sequence[Column], Sequence[Row]]
"""Columns, and rows which have the name of the number in front."""


def _in_columns(lines: Lines, runs: Sequence[Compared]) -> Laid:
    """A row for each line, a column for each run."""
    columns = [replace(lines.likeness, title=run.name, help="") for run in runs]
    return (*lines.heads, *columns), [(x.number, *x.row, *x.cells) for x in lines.lines]


def _in_rows(lines: Lines, runs: Sequence[Compared]) -> Laid:
    """A row for each run, once for each number, and a column for each row of the table."""
    at = {(line.number, line.row): line.cells for line in lines.lines}
    called, known = list(dict.fromkeys(line.row for line in lines.lines)), _lineage(runs)
    columns = [
        Column(title="run"),
        *(column for column, _ in known),
        *(
            replace(lines.likeness, title=title, help="", detail=wide)
            for title, wide in _titles(called)
        ),
    ]
    rows: list[Row] = [
        (
            number,
            run.name,
            *(cell(run) for _, cell in known),
            *(at[number, row][i] if (number, row) in at else None for row in called),
        )
        for number in lines.numbers
        for i, run in enumerate(runs)
    ]
    return columns, rows


def _titles(rows: Sequence[Row]) -> list[tuple[str, bool]]:
    """Rows as titles of columns, each with whether it is for wide pages only, as controls are.

    A single cell goes up to a comma or a colon where that tells rows apart, a control as it is.

    >>> _titles([("Acc@1, mean over pairs",), ("PFD: how far frames move",)])
    [('Acc@1', False), ('PFD', False)]
    >>> _titles([("question", "lemmas"), ("question", "equal names"), ("statement", "option")])
    [('question, lemmas', False), ('question, equal names', False), ('statement, option', True)]
    """
    whole = [", ".join(str(cell) for cell in row if cell not in (None, "")) for row in rows]
    controls = [title.startswith(CONTROL) for title in whole]
    short = [
        title if control else title.partition(",")[0].partition(":")[0]
        for title, control in zip(whole, controls, strict=True)
    ]
    single = all(len(row) == 1 for row in rows) and len(set(short)) == len(short)
    titles = short if single else whole
    sizes = (0 if c else max(CELL, len(t) + 2) for t, c in zip(titles, controls, strict=True))
    wide = [end > ROOM for end in accumulate(sizes)]
    return list(zip(titles, map(or_, wide, controls), strict=True))


def _lineage(runs: Sequence[Compared]) -> list[tuple[Column, Callable[[Compared], Cell]]]:
    """What is known of the runs' models, each where it is known of any."""
    every: list[tuple[Column, Callable[[Compared], Cell]]] = [
        (
            Column(title="family", detail=True),
            lambda run: None if run.lineage.family == UNKNOWN else run.lineage.family,
        ),
        (
            Column(title="billions", kind="number", help="of parameters"),
            lambda run: run.lineage.size and run.lineage.size / BILLION,
        ),
        (
            Column(title="stage", help="base or fine-tuned", detail=True),
            lambda run: run.lineage.stage or None,
        ),
    ]
    return [(column, cell) for column, cell in every if any(cell(run) for run in runs)]


def _long(tables: Sequence[Table], runs: Sequence[Compared]) -> Table:
    """Every row of every run under the columns that all tables have, to be searched."""
    first, rows, columns = tables[0], common_rows(tables), common_columns(tables)
    places = [[place(table, column) for column in columns] for table in tables]
    long = [
        (*row, run.name, *(of_run[row][at] for at in own))
        for row in rows[0]
        for run, of_run, own in zip(runs, rows, places, strict=True)
    ]
    return Table(
        id=first.id,
        title=BY_RUN.format(first.title),
        columns=(*first.columns[: heads(first)], Column(title="run"), *columns),
        rows=tuple(long[:MOST_ROWS]),
        note=" ".join(filter(None, (_cut(len(long)), first.note))),
        browsable=True,
    )


def _cut(rows: int) -> str:
    return f"The first {MOST_ROWS:,} of {rows:,} rows." if rows > MOST_ROWS else ""


FEW_RELATIONS = 12
"""Curves that can be told apart in a figure."""

Points = list[tuple[float, Estimate]]
"""A number at the size of each model of a family, in billions of parameters."""


def against_size(runs: Sequence[Compared], reports: Mapping[str, Report]) -> Iterator[Curves]:
    """The first headline that all reports have, where a family has models of two sizes."""
    headlines, lines = shared_headlines([*reports.values()]), families(runs)
    if not headlines or not lines:
        return
    first = headlines[0]
    named = dict(zip(family_names([*lines]), lines.values(), strict=True))
    overall = {name: _points(own, reports, first.estimate) for name, own in named.items()}
    yield _figure(first, "", f"{first.label}, against size", overall, f"A family each. {WHISKERS}")
    for name, members in named.items():
        of_relations = {
            relation_name(relation): _points(members, reports, _in_relation(first, relation.id))
            for relation in members[0].judged.relations
        }
        most = sorted(of_relations, key=lambda label: -_moved(of_relations[label]))[:FEW_RELATIONS]
        left = len(of_relations) - len(most)
        yield _figure(
            first,
            f"-relations-{name}",
            f"{first.label.partition(',')[0]} in each relation, against size: {name}",
            {label: of_relations[label] for label in of_relations if label in most},
            f"{WHISKERS}{f' {left:,} relations that move less are left out.' if left else ''}",
        )


def _in_relation(headline: Headline, id: str) -> str:
    """The name of a headline's number in one relation."""
    return f"{headline.estimate.removesuffix(f'.{RELATIONS}')}.relation.{id}"


def _points(members: Sequence[Compared], reports: Mapping[str, Report], name: str) -> Points:
    missing = Estimate.not_measured()
    return [
        ((run.lineage.size or 0) / BILLION, reports[run.name].estimates.get(name, missing))
        for run in members
    ]


def _moved(points: Points) -> float:
    """How far a number goes up or down from the smallest to the largest model."""
    values = [estimate.value for _, estimate in points if estimate.value is not None]
    return abs(values[-1] - values[0]) if values else 0.0


def _figure(
    headline: Headline, after: str, title: str, lines: Mapping[str, Points], note: str
) -> Curves:
    return Curves(
        id=f"scaling{after}",
        title=title,
        kind="percent" if headline.kind in ("percent", "points") else "number",
        x_axis="parameters in billions",
        y_axis=headline.label,
        x_kind="number",
        curves=tuple(curve(name, points) for name, points in lines.items()),
        note=note,
    )


def with_sides(report: Report, runs: Sequence[Compared]) -> Report:
    """The report of several runs with what their own reports share, where all have one.

    What the report shows already, by its id, is not shown again.
    """
    if any(run.report is None for run in runs):
        return report
    runs = ordered(runs)
    reports = {run.name: run.report for run in runs if run.report is not None}
    tables, figures = ({part.id for part in parts} for parts in (report.tables, report.figures))
    drawn = chain(side_figures(reports), against_size(runs, reports))
    new: tuple[Figure, ...] = shown(*(figure for figure in drawn if figure.id not in figures))
    return replace(
        report,
        estimates={**_estimates(reports), **report.estimates},
        tables=(
            *report.tables,
            *shown(*(t for t in side_tables(runs, [*reports.values()]) if t.id not in tables)),
        ),
        figures=(*report.figures, *new),
        notes=(*report.notes, _note(report, reports)),
    )


def ordered(runs: Sequence[Compared]) -> list[Compared]:
    """Runs of one family together, from the smallest to the largest, a base model before those made
    from it; families and other runs in the order given."""
    families = [run.lineage.family for run in runs]

    def place(numbered: tuple[int, Compared]) -> tuple[float, float, bool, int]:
        i, run = numbered
        if run.lineage.family == UNKNOWN:
            return i, 0, False, i
        size = run.lineage.size or float("inf")
        return families.index(run.lineage.family), size, run.lineage.stage != "base", i

    return [run for _, run in sorted(enumerate(runs), key=place)]


def _estimates(reports: Mapping[str, Report]) -> dict[str, Estimate]:
    """The headlines' numbers of every run by name, their controls and differences."""
    shared = shared_headlines([*reports.values()])
    names = dict.fromkeys(n for h in shared for n in (h.estimate, h.control, h.difference) if n)
    return {
        f"{name}.run.{run}": report.estimates[name]
        for name in names
        for run, report in reports.items()
        if name in report.estimates
    }


def _note(report: Report, reports: Mapping[str, Report]) -> str:
    """What the tables and figures of single runs are of."""
    shared = report.counts.get("prompts")
    judged = {run: own.judged for run, own in reports.items() if own.judged is not None}
    prompts = {run: len(of_run.grid) for run, of_run in judged.items()}
    first = (
        "Tables and figures run by run are those of each run's own report, read on the facts that "
        "all runs were asked"
    )
    if all(count == shared for count in prompts.values()):
        return f"{first}: all of them in the same prompts."
    counted = ", ".join(f"{run} {count:,}" for run, count in prompts.items())
    same = "" if shared is None else f", of which {shared:,} are the same in all runs"
    return (
        f"{first}. Each counts all of its prompts about these facts{same} ({counted}): where "
        "settings or vocabularies differ, so does what is averaged."
    )
