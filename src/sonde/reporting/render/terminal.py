"""Show a report in the terminal, readable at 80 columns. Knows nothing of colours' meaning.

Colour only repeats what the words say. Browsable tables and most figures are left to the HTML page;
a histogram is drawn in one line, a small heat map is written as a table, and heat strips are whole.
Where there are no colours the weights of tokens stand in their place, so that nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from sonde.core.reports import (
    Cell,
    Column,
    Estimate,
    Figure,
    HeatMap,
    HeatRow,
    HeatStrip,
    Histogram,
    Report,
    Table,
)
from sonde.reporting.build.parts import trimmed
from sonde.reporting.render import cells
from sonde.reporting.render.numbers import FAINT, Shade, parted, signed_weight, to_table, visible
from sonde.reporting.render.terminal_text import line

MOST_ROWS = 60
TEXT = 10  # letters of a text at least, where there are more
MOST_FINDINGS = 3
MOST_BLOCKS = 40
BLOCKS = " ▁▂▃▄▅▆▇█"
# from grey to a full colour, which shows on dark and on light ground; the words on it are white
GREY, TOWARDS, AWAY = (0x70, 0x75, 0x7A), (0x0B, 0x5F, 0xD0), (0xB8, 0x4A, 0x00)
VERDICT_STYLES = {"right": "green", "wrong": "red", "skipped": "dim"}


def show(report: Report, console: Console, *, brief: bool = False) -> None:
    """Print a report: title, summary, headline numbers, findings, tables, counts and notes.

    In brief it fits on a screen: the headline numbers, or else the first table, and some findings.
    """
    console.print()
    console.print(line(report.title, "bold"))
    if report.summary:
        console.print(line(report.summary))
    report = trimmed(report)
    for part in brief_parts(report, console) if brief else parts(report, console):
        console.print(part)
    console.print()


def brief_parts(report: Report, console: Console) -> Iterator[RenderableType]:
    """What is to be seen first, and a line that names the rest."""
    if report.headlines:
        yield from section("Headline numbers", headlines(report, apart=False))
        yield indent(line("Brackets hold 95% intervals.", "dim"))
    for table in leading(report):
        yield from table_section(table, console)
    if report.findings:
        yield from section("Findings", listed(report.findings[:MOST_FINDINGS]))
    for figure in report.figures:
        if isinstance(figure, HeatStrip):
            yield from figure_section(figure, console)
    if counted := [(name, count) for name, count in report.counts.items() if count]:
        yield Text()
        words = (f"{cells.spoken(name)} {cells.fixed(count, 0)}" for name, count in counted)
        yield line(f"Counts: {', '.join(words)}.", "dim")
    if rest := not_in_brief(report):
        yield line(f"Not shown: {rest}; --all-tables prints what a terminal can show.", "dim")


def leading(report: Report) -> tuple[Table, ...]:
    """The tables that lead or, without any headline number, the first that is not for browsing."""
    first = [] if report.headlines else [t for t in report.tables if not t.browsable][:1]
    return tuple(table for table in report.tables if table.leads or table in first)


def not_in_brief(report: Report) -> str:
    """What a brief report leaves out, counted."""
    tables = len(report.tables) - len(leading(report))
    figures = sum(not isinstance(figure, HeatStrip) for figure in report.figures)
    findings = len(report.findings[MOST_FINDINGS:])
    left_out = (
        (findings, "1 more finding", "more findings"),
        (tables, "1 table", "tables"),
        (figures, "1 figure", "figures"),
        (len(report.notes), "1 note", "notes"),
    )
    named = [one if n == 1 else f"{n} {many}" for n, one, many in left_out if n]
    return " and ".join(filter(None, (", ".join(named[:-1]), *named[-1:])))


def parts(report: Report, console: Console) -> Iterator[RenderableType]:
    """The sections of a report below its summary, in reading order."""
    if report.headlines:
        yield from section("Headline numbers", headlines(report))
        yield indent(line("Brackets hold 95% intervals.", "dim"))
    elif report.estimates:
        yield from section("Estimates", grid(cells.estimates_table(report), console))
    if report.findings:
        yield from section("Findings", listed(report.findings))
    for table in report.tables:
        if not table.browsable:
            yield from table_section(table, console)
    for figure in report.figures:
        yield from figure_section(figure, console)
    if report.counts:
        yield from section("Counts", counts(report))
    if report.notes:
        yield from section("Notes", listed(report.notes))
    yield from left_out(report)


def section(title: str, body: RenderableType) -> Iterator[RenderableType]:
    """A heading and what it heads."""
    yield Text()
    yield line(title, "bold cyan")
    yield indent(body)


def indent(body: RenderableType) -> Padding:
    """The body, two columns in from the left."""
    return Padding(body, (0, 0, 0, 2))


def bare_grid() -> Grid:
    """A grid without lines, its columns two spaces apart."""
    return Grid.grid(padding=(0, 2, 0, 0))


def headlines(report: Report, *, apart: bool = True) -> Grid:
    """Each headline number over its control and the difference between them; `apart`: spaced."""
    rows = bare_grid()
    rows.add_column(overflow="fold")
    rows.add_column(justify="right", no_wrap=True)
    rows.add_column(no_wrap=True)
    rows.add_column(no_wrap=True)
    for i, headline in enumerate(report.headlines):
        if i and apart:
            rows.add_row()
        add_headline(rows, cells.read_headline(headline, report))
    return rows


def add_headline(rows: Grid, read: cells.Read) -> None:
    """Up to three rows: the number, its control, the difference."""
    add_written(rows, line(read.label, "bold"), cells.written(read.estimate, read.scale), "bold")
    if read.control is not None:
        label = Text("control: ").append_text(line(read.control_name, "dim"))
        add_written(rows, indent(label), cells.written(read.control, read.scale))
    if read.difference is not None:
        words = cells.written_difference(read.difference, read.scale)
        add_written(rows, indent(Text("difference")), words)


def add_written(rows: Grid, label: RenderableType, words: cells.Written, style: str = "") -> None:
    """One row: a label, a value, its interval and its n."""
    rows.add_row(label, Text(words.value, style), Text(words.interval), Text(words.n, "dim"))


def listed(sentences: tuple[str, ...]) -> Grid:
    """Sentences, each behind a bullet and wrapped under itself."""
    rows = Grid.grid(padding=(0, 1, 0, 0))
    rows.add_column(width=1)
    rows.add_column(overflow="fold")
    for sentence in sentences:
        rows.add_row("•", line(sentence))
    return rows


def counts(report: Report) -> Grid:
    """What was counted, numbers right-aligned."""
    rows = bare_grid()
    rows.add_column(overflow="fold")
    rows.add_column(justify="right", no_wrap=True)
    for name, count in report.counts.items():
        rows.add_row(line(cells.spoken(name)), cells.fixed(count, 0))
    return rows


def table_section(table: Table, console: Console) -> Iterator[RenderableType]:
    """A table under its title, with its note and word of any rows left out."""
    yield from section(table.title, grid(table, console))
    if len(table.rows) > MOST_ROWS:
        more = cells.fixed(len(table.rows) - MOST_ROWS, 0)
        yield indent(line(f"… and {more} more rows in the HTML report.", "dim"))
    if table.note:
        yield indent(line(table.note, "dim"))


def grid(table: Table, console: Console) -> Grid:
    """The table with intervals beside values where the console is wide enough, else under them."""
    table = without_detail(table)
    flat = drawn(table, between=" ")
    unbounded = console.options.update(max_width=1000)  # else the answer always fits
    if Measurement.get(console, unbounded, flat).minimum <= console.width - 2:
        return flat
    return drawn(table, between="\n")


def without_detail(table: Table) -> Table:
    """The table without the columns that are for wide pages only."""
    kept = [i for i, column in enumerate(table.columns) if not column.detail]
    return replace(
        table,
        columns=tuple(table.columns[i] for i in kept),
        rows=tuple(tuple(row[i] for i in kept) for row in table.rows),
    )


def drawn(table: Table, between: str) -> Grid:
    """The table with value and interval apart by a space or a line break."""
    table_n = cells.with_n(table)
    headed = any(column.title for column in table.columns)
    rows = Grid(
        box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, show_header=headed
    )
    shown, texts = table_n.rows[:MOST_ROWS], []
    for i, column in enumerate(table_n.columns):
        column_cells = [row[i] for row in shown]
        aligned = between == " " and any(isinstance(cell, Estimate) for cell in column_cells)
        width = value_width(column_cells, column) if aligned else 0
        texts.append([cell_shown(cell, column, between, width) for cell in column_cells])
        add_column(rows, column, texts[-1], left=aligned or column.kind in ("text", "verdict"))
    for row in zip(*texts, strict=True):
        rows.add_row(*row)
    return rows


def value_width(found: Sequence[Cell], column: Column) -> int:
    """The width of the longest value among estimates, so that they can stand right-aligned."""
    return max(len(cells.number(c.value, column.kind)) for c in found if isinstance(c, Estimate))


def add_column(rows: Grid, column: Column, texts: Sequence[Text], left: bool) -> None:
    """A column under its title; only text may wrap, and not letter by letter."""
    widths = (max(map(len, text.plain.splitlines()), default=0) for text in texts)
    longest = max(widths, default=0)
    rows.add_column(
        line(column.title),
        justify="left" if left else "right",
        overflow="fold",
        no_wrap=column.kind != "text",
        min_width=min(longest, TEXT) if column.kind == "text" else longest,
    )


def cell_shown(cell: Cell, column: Column, between: str, width: int) -> Text:
    """A cell; an estimate with its interval."""
    shown = cells.shown_cell(cell, column.kind)
    if shown.kind == "verdict":
        words = " ".join(part for part in (shown.mark, shown.value) if part)
        return line(words, VERDICT_STYLES.get(shown.value, ""))
    parts = (shown.value.rjust(width), shown.interval)
    return line(between.join(part for part in parts if part))


def figure_section(figure: Figure, console: Console) -> Iterator[RenderableType]:
    """A figure that a terminal can show: a histogram, heat strips, a heat map of few columns."""
    if isinstance(figure, Histogram) and any(figure.counts):
        yield from section(figure.title, line(sparkline(figure)))
        places = (figure.axis, *(f"{n} {cells.number(v, figure.kind)}" for n, v in figure.marks))
        yield indent(line("; ".join(places), "dim"))
    elif isinstance(figure, HeatStrip):
        yield from section(figure.title, strips(figure, console))
        if figure.note:
            yield indent(line(figure.note, "dim"))
    elif isinstance(figure, HeatMap):
        table = numbered(figure)
        longest = max((len(name) for name in figure.rows), default=0)
        room = console.width - min(longest, 30) - 4
        if sum(max(len(column.title), 6) + 2 for column in table.columns[1:]) <= room:
            yield from table_section(table, console)


def numbered(figure: HeatMap) -> Table:
    """A heat map as a table; where rows and columns are the same, columns have numbers for names.

    >>> names = ("a", "b")
    >>> square = HeatMap(id="h", title="", rows=names, columns=names, values=((1, 0),) * 2)
    >>> [column.title for column in numbered(square).columns], numbered(square).rows[1]
    (['', '1', '2'], ('2 b', 1, 0))
    """
    if figure.rows == figure.columns:
        rows = tuple(f"{k} {name}" for k, name in enumerate(figure.rows, 1))
        columns = tuple(str(k) for k in range(1, len(rows) + 1))
        figure = replace(figure, rows=rows, columns=columns)
    return replace(to_table(figure), note=figure.note)


def sparkline(figure: Histogram) -> str:
    """The counts as blocks between the first and the last edge, at most some forty of them.

    >>> made = Histogram(id="h", title="", axis="", edges=(0, 0.5, 1), counts=(1, 4))
    >>> sparkline(made)
    '0.0% ▂█ 100.0%'
    """
    group = -(-len(figure.counts) // MOST_BLOCKS)
    sums = [sum(figure.counts[i : i + group]) for i in range(0, len(figure.counts), group)]
    heights = (-(-8 * n // max(sums)) for n in sums)  # rounded up: what is there is seen
    ends = (cells.number(edge, figure.kind) for edge in (figure.edges[0], figure.edges[-1]))
    return "{} {} {}".format(next(ends), "".join(BLOCKS[h] for h in heights), next(ends))


def left_out(report: Report) -> Iterator[RenderableType]:
    """A line that names what only the HTML report shows."""
    hidden = (figure for figure in report.figures if not isinstance(figure, HeatStrip))
    names = [f"figure “{figure.title}”" for figure in hidden]
    names += [
        f"table “{t.title}” ({cells.fixed(len(t.rows), 0)} rows)"
        for t in report.tables
        if t.browsable
    ]
    if names:
        yield Text()
        yield line("In the HTML report: " + "; ".join(names) + ".", "dim")


def strips(plot: HeatStrip, console: Console) -> Group:
    """The scale and every row; in colour if the console has any."""
    coloured = console.color_system is not None
    width = max(20, console.width - 2)
    parts: list[RenderableType] = [strip_scale(plot, coloured)]
    for row in plot.rows:
        parts += [Text(), strip_heading(row), *strip_body(row, plot.limit, coloured, width)]
    return Group(*parts)


def strip_scale(plot: HeatStrip, coloured: bool) -> Text:
    """What the colours or the signs mean."""
    far = f"{cells.plain_number(plot.limit)} {plot.unit}".strip()
    if not coloured:
        words = f"+ {plot.towards}, − {plot.away}"
        return Text(f"{words}; {plot.unit}" if plot.unit else words, "dim")
    scale = Text()
    for words, end in ((plot.away, -1.0), (plot.towards, 1.0)):
        scale.append(f" {words} ", ground(end)).append("  ")
    return scale.append(f"full colour: {far}", "dim")


def strip_heading(row: HeatRow) -> Text:
    """A row's label and what is said about it."""
    heading = Text(visible(row.label), "bold")
    return heading.append(f"  {visible(row.note)}", "dim") if row.note else heading


def strip_body(row: HeatRow, limit: float, coloured: bool, width: int) -> Iterator[Text]:
    """The tokens of a row."""
    fold, _, rest = parted(row, limit)
    shown = ([fold] if fold is not None else []) + rest
    if coloured:
        yield painted(shown)
    else:
        yield from weighed(shown, width)


def painted(shown: Sequence[Shade]) -> Text:
    """Tokens one after the other as the text has them, on their grounds."""
    text = Text(overflow="fold")
    for shade in shown:
        text.append(visible(shade.text), ground(shade.strength))
    return text


def ground(strength: float) -> str:
    """The ground for a weight: none for hardly any."""
    if abs(strength) < FAINT:
        return ""
    end = TOWARDS if strength > 0 else AWAY
    mixed = (round(a + (b - a) * abs(strength)) for a, b in zip(GREY, end, strict=True))
    return "#ffffff on #" + "".join(f"{part:02x}" for part in mixed)


def weighed(shown: Sequence[Shade], width: int) -> Iterator[Text]:
    """Lines of tokens over lines of their weights."""
    above, below = "", ""
    for shade in shown:
        token, weight = visible(shade.text).replace(" ", "␣"), signed_weight(shade.weight)
        room = max(cell_len(token), len(weight)) + 1
        if above and cell_len(above) + room > width + 1:
            yield from (Text(above.rstrip()), Text(below.rstrip(), "dim"))
            above, below = "", ""
        above += token + " " * (room - cell_len(token))
        below += weight.ljust(room)
    yield from (Text(above.rstrip()), Text(below.rstrip(), "dim"))
