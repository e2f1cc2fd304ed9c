"""Where the command line writes: results to stdout, everything else to stderr.

Most of what is written comes from others: datasets, models, paths, servers. So no text is read as
markup or emoji here, and nothing in it steers the terminal; colours come from styles alone.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich import progress as bars
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook
from rich.segment import Segment
from rich.table import Table

from sonde.core.errors import StoreError
from sonde.core.words import legible
from sonde.reporting.render.json import json_text
from sonde.reporting.render.terminal_text import line

PLAIN: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}


def output() -> Console:
    """Results. Wide enough to be read where there is no terminal."""
    return _guarded(Console(width=None if sys.stdout.isatty() else 100, **PLAIN))


def errors() -> Console:
    """Messages and progress."""
    return _guarded(Console(stderr=True, soft_wrap=True, **PLAIN))


def say(text: str, *, soft_wrap: bool = False) -> None:
    """Print a result; whoever wrote the text, it is shown as it is."""
    output().print(line(text), soft_wrap=soft_wrap)


def tell(text: str, style: str = "") -> None:
    """Print a message; whoever wrote the text, it is shown as it is."""
    errors().print(line(text, style))


def print_json(value: Mapping[str, Any]) -> None:
    """Print a result for other programs."""
    typer.echo(json_text(value))


def print_table(
    titles: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: Container[int] = (),
    title: str | None = None,
    padding: tuple[int, ...] = (0, 2, 0, 0),
) -> None:
    """Print rows under their titles, cells shown as they are; `right` columns end on the right."""
    table = Table(title=title, title_justify="left", box=None, padding=padding)  # type: ignore[arg-type]
    for i, name in enumerate(titles):
        table.add_column(line(name), justify="right" if i in right else "left")
    for row in rows:
        table.add_row(*(line(str(cell)) for cell in row))
    output().print(table)


class Guard(RenderHook):
    """Lets no character through that a terminal obeys, whatever is printed and however."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Wrap what is about to be printed."""
        return [Guarded(inner=each) for each in renderables]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """Something to print, with the characters of its texts spelt out; the styles are rich's own."""

    inner: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self.inner, options):
            yield segment if segment.control else Segment(legible(segment.text), segment.style)


def _guarded(console: Console) -> Console:
    console.push_render_hook(Guard())
    return console


class Messages(logging.Handler):
    """What sonde and its libraries have to say, above the progress bar where there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one message."""
        level = "" if record.levelno < logging.WARNING else f"{record.levelname.lower()}: "
        tell(level + record.getMessage())


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show that something is going on; nothing without a terminal."""
    console = errors()
    if not console.is_terminal:
        yield
        return
    with console.status(line(what)):
        yield


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with the time left; nothing without a terminal."""
    with _bar(what, bars.TextColumn("elapsed"), bars.TimeElapsedColumn()) as tick:
        yield lambda done, total: tick(done, total, "")


def training(what: str) -> AbstractContextManager[Callable[[int, int, str], None]]:
    """A bar that also says how training goes; nothing without a terminal."""
    return _bar(what, bars.TextColumn("{task.fields[how]}", markup=False))


@contextmanager
def _bar(what: str, *columns: bars.ProgressColumn) -> Iterator[Callable[[int, int, str], None]]:
    console = errors()
    before = (
        bars.SpinnerColumn(),
        bars.TextColumn("{task.description}", markup=False),
        bars.BarColumn(),
    )
    after = (bars.TextColumn("left"), bars.TimeRemainingColumn())
    shown = (*before, bars.MofNCompleteColumn(), *columns, *after)
    with bars.Progress(*shown, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(legible(what), total=None, how="")

        def tick(done: int, total: int, how: str) -> None:
            bar.update(task, completed=done, total=total, how=legible(how))

        yield tick


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say of a failure of the system that this file or folder cannot be written."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
