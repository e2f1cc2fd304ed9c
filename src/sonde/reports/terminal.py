"""A report in a terminal: the same sections in the same order, in columns of text.

Nothing is read as markup, and control characters of texts are shown escaped.
"""

from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from sonde.evaluation.layout import Exhibit
from sonde.reports.cells import (
    Column,
    escape_control_characters,
    format_cell,
    format_number,
    rich_table,
    text_columns,
)
from sonde.reports.model import Facts, Item, Report
from sonde.reports.sentences import Line, text

ROWS, FACTS = 60, 10  # rows of a table, facts
BRIEF = ("varied", "answers", "facts", "changed")  # sections of a run that a brief report has


def show(report: Report, console: Console, *, brief: bool = False) -> None:
    """Print a report; a brief one fits on few screens and names what it leaves out."""
    if report.kicker:
        console.print(Text(escape_control_characters(report.kicker), "dim"))
    console.print(Text(text(report.title), "bold"))
    if report.summary:
        console.print()
        console.print(_paragraph(report.summary))
    for heading, lines in report.warnings:
        console.print(
            Panel(
                _paragraph(lines),
                title=Text(heading, "bold"),
                title_align="left",
                border_style="yellow",
            )
        )
    for lead in report.lead:
        console.print(Group(*_parts(lead, console.width)))
    left = []
    for section in report.sections:
        if brief and (section.folded or (report.lead and section.id not in BRIEF)):
            left.append(section.title)
            continue
        console.print()
        console.print(Text(section.title, "bold underline"))
        for item in section.items:
            console.print(Group(*_parts(item, console.width)))
    if left:
        console.print(Text(f"\nNot shown: {'; '.join(left)}.", "dim"))


def as_text(report: Report, width: int = 80, *, brief: bool = False) -> str:
    """The report without colors."""
    console = Console(width=width, color_system=None, markup=False, highlight=False, emoji=False)
    with console.capture() as captured:
        show(report, console, brief=brief)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


def _paragraph(lines: Sequence[Line]) -> Text:
    return Text(" ".join(map(text, lines)).replace("\u00a0", " "))


def _parts(item: Item, width: int) -> Iterator[RenderableType]:
    if isinstance(item, Facts):
        yield from _facts(item, width)
        return
    if not isinstance(item, Exhibit):
        yield _paragraph([item])
        return
    yield Text()
    yield Text(escape_control_characters(item.title), "bold")
    if item.kind == "strip":
        yield from _strips(item)
    else:
        shown, dropped = _fitting(text_columns(item), width)
        rows = len(shown[0].cells) if shown else 0
        yield rich_table([column._replace(cells=column.cells[:ROWS]) for column in shown])
        if rows > ROWS:
            yield Text(f"{rows - ROWS:,} more rows in the HTML report", "dim")
        if dropped:
            yield Text(f"In the HTML report also: {', '.join(dropped)}", "dim")
    if item.note:
        yield Text(escape_control_characters(item.note), "dim")


def _fitting(every: list[Column], width: int) -> tuple[list[Column], list[str]]:
    """The first columns that fit next to each other, and the names of the others."""
    room = width
    fitting: list[Column] = []
    for column in every:
        longest = max(map(len, (column.head, *column.cells)), default=0) + 2
        room -= longest if column.numeric else min(longest, 14)
        if room < -2 and len(fitting) > 1:
            break
        fitting.append(column)
    return fitting, [column.head for column in every[len(fitting) :]]


def _strips(item: Exhibit) -> Iterator[Text]:
    """Each token with its weight in brackets."""
    unit = item.units.get("color", "number")
    for (title,), tokens in item.frame.partition_by("y", as_dict=True, maintain_order=True).items():
        yield Text(format_cell(title), "bold")
        line = Text()
        for token, weight in tokens.select("label", "color").iter_rows():
            line.append(format_cell(token))
            if weight:
                line.append(f"[{format_number(weight, unit)}]", "blue" if weight > 0 else "red")
        yield line


def _facts(item: Facts, width: int) -> Iterator[RenderableType]:
    """The first facts that a page shows, and how many there are of each kind."""
    wanted = item.filters[item.start][1]
    rows = [row for row, outcome in enumerate(item.outcome) if outcome in wanted]
    part = item.frame[rows[:FACTS]]
    shown = []
    for name in item.shown:
        unit, values = item.units.get(name, ""), part[name].to_list()
        if unit == "answer":
            shares = part[item.shares(name)]
            marks = {None: "–", 0.0: "✗", 1.0: "✓"}
            texts = ("(empty)" if value == "" else format_cell(value) for value in values)
            cells = [f"{marks.get(s, '~')} {v}" for s, v in zip(shares, texts, strict=True)]
        elif unit == "share":
            cells = ["–" if v is None else f"{v[0]:.0f} of {v[1]:.0f}" for v in values]
        else:
            cells = [format_cell(value, unit) for value in values]
        shown.append(Column(name, cells, part[name].dtype.is_numeric()))
    shown, _ = _fitting(shown, width)
    yield rich_table(shown)
    counts = ((label, sum(o in of for o in item.outcome)) for label, of in item.filters)
    listed = ", ".join(f"{label} {n:,}" for label, n in counts if n)
    yield Text(
        f"{part.height} of {len(rows):,} {item.noun}; {listed}. One in depth: {item.command}", "dim"
    )
